"""hosts, and pause by county, as they are typed."""

from __future__ import annotations

import json

import pytest

from lienworker.db.database import close, execute, open_store, write
from tests.harness.node import Node


@pytest.fixture
def waiting(node: Node) -> Node:
    rows = "".join(json.dumps({"url": f"http://a.example/{k}", "state": "FL", "county": "Dixie"}) + "\n" for k in "12")
    assert node.cli("import", "-", "--format", "jsonl", stdin=rows).returncode == 0
    return node


def change(node: Node, sql: str) -> None:
    open_store(node.data)
    with write("test"):
        execute(sql)
    close()


def test_hosts_are_listed_shown_set_paused_and_forgotten(waiting: Node) -> None:
    assert "0 s (setting)" in waiting.cli("hosts", "list").stdout
    done = waiting.cli("hosts", "set", "http://a.example/1", "--delay", "2", "--concurrency", "1")
    assert "asked every 2 s (operator), 1 request at a time" in done.stdout, done.stderr
    assert "2 s (operator)" in waiting.cli("status").stdout
    waiting.cli("hosts", "pause", "a.example")
    shown = waiting.cli("hosts", "show", "a.example").stdout
    assert "2 s (operator); asked for by operator 2 s, setting 0 s" in shown
    assert "paused since" in shown
    assert "an operator has paused a.example" in waiting.cli("status").stdout
    assert waiting.cli("hosts", "resume", "a.example").returncode == 0
    assert waiting.cli("hosts", "set", "a.example", "--default").returncode == 0
    assert waiting.cli("hosts", "forget", "a.example").returncode == 0
    (found,) = json.loads(waiting.cli("hosts", "list", "--json").stdout)
    assert (found["delay"], found["delay_from"], found["paused_at"]) == (0.0, "setting", None)


def test_robots_is_overruled_only_when_asked_twice(waiting: Node) -> None:
    change(waiting, "UPDATE hosts SET robots_delay = 9")
    done = waiting.cli("hosts", "set", "a.example", "--delay", "2")
    assert "every 9 s (robots.txt)" in done.stdout
    assert "--over-robots says otherwise" in done.stderr
    over = ("hosts", "set", "a.example", "--delay", "2", "--over-robots")
    assert waiting.cli(*over, stdin="n\n").returncode == 130
    assert "9 s (robots.txt)" in waiting.cli("hosts", "show", "a.example").stdout
    assert "every 2 s (operator)" in waiting.cli(*over, "--yes").stdout


def test_a_county_is_paused_and_resumed(waiting: Node) -> None:
    done = waiting.cli("pause", "--county", "fl/dixie")
    assert "Paused: FL/dixie; 2 pages held" in done.stdout, done.stderr
    (row,) = json.loads(waiting.cli("counties", "list", "--json").stdout)
    assert row["paused"]
    assert "2 pages released" in waiting.cli("resume", "--county", "FL/Dixie").stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("hosts", "set", "a.example"), "Say --delay"),
        (("hosts", "set", "a.example", "--concurrency", "1", "--over-robots"), "belongs to --delay"),
        (("hosts", "show", "b.example"), "There is no host"),
        (("pause", "--county", "Dixie"), "such as FL/Dixie"),
        (("pause", "--county", "FL/Dixie", "--fetch"), "without lanes"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(waiting: Node, command: tuple[str, ...], words: str) -> None:
    done = waiting.cli(*command)
    assert done.returncode in (1, 2)
    assert words in done.stderr
