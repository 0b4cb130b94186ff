"""How far a job is: a bar for people at a terminal, plain lines for files and pipes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import reference_gateway
from tests.harness.node import Node, write_list

pytestmark = pytest.mark.slow
PARCELS = 25
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def file(tmp_path: Path, site: DemoSite) -> str:
    return write_list(tmp_path / "parcels.jsonl", site.parcels(PARCELS, 1))


def frames(shown: str) -> list[str]:
    """The states of the bar, one after the other, without colours."""
    return [frame for frame in COLOUR.sub("", shown).replace("\n", "\r").split("\r") if frame.startswith("[")]


def test_run_draws_a_bar_on_a_terminal(node: Node, file: str) -> None:
    code, shown = node.on_terminal("run", file)
    drawn = frames(shown)
    assert code in (0, 1), shown
    assert drawn[-1].startswith("[####################] 25/25 tasks"), drawn[-1]
    assert all(len(frame) <= 99 for frame in drawn)
    assert "\x1b[32m" in shown


def test_no_color_is_honoured_and_a_narrow_window_is_not_broken(node: Node, file: str) -> None:
    _, shown = node.on_terminal("run", file, columns=30, NO_COLOR="1")
    assert not COLOUR.search(shown)
    assert re.match(r"\[#{5,}\] 25/25 tasks", frames(shown)[-1])
    assert all(len(frame) <= 29 for frame in frames(shown))
    assert not COLOUR.search(node.on_terminal("status", NO_COLOR="1")[1].replace("\x1b[2J", ""))


def test_run_says_plain_lines_elsewhere(node: Node, file: str) -> None:
    done = node.cli("run", file)
    assert "\r" not in done.stderr
    assert not COLOUR.search(done.stderr + done.stdout)
    assert re.search(r"^25/25 tasks", done.stderr, re.M), done.stderr


def test_replay_draws_a_bar_too(node: Node, file: str) -> None:
    node.cli("run", file)
    with reference_gateway() as gateway:
        node.settings |= {"GATEWAY_URL": gateway.url, "GATEWAY_TOKEN": gateway.token}
        (total,) = node.sql("SELECT count(*) FROM outbox WHERE state = 'held'")[0]
        code, shown = node.on_terminal("outbox", "replay")
        assert code == 0, shown
        assert frames(shown)[-1].startswith(f"[####################] {total}/{total} rows")
        assert "nothing to replay" in node.cli("outbox", "replay").stdout.lower()


def test_replay_says_plain_lines_elsewhere(node: Node, file: str) -> None:
    node.cli("run", file)
    with reference_gateway() as gateway:
        node.settings |= {"GATEWAY_URL": gateway.url, "GATEWAY_TOKEN": gateway.token}
        done = node.cli("outbox", "replay")
    assert re.search(r"^(\d+)/\1 rows", done.stderr, re.M), done.stderr
    assert "\r" not in done.stderr
