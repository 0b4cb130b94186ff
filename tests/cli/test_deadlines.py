"""import --by: deadlines as they are typed, and what status says of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.harness.node import Node

ROWS = "".join(json.dumps({"url": f"http://a.example/{k}"}) + "\n" for k in range(5))


def soon(**more: float) -> datetime:
    return (datetime.now(UTC) + timedelta(**more)).replace(second=0, microsecond=0)


@pytest.mark.parametrize("drops", [False, True])
def test_a_deadline_is_kept_with_import_and_tasks(node: Node, drops: bool) -> None:
    due = soon(days=2)
    more = ("--drop-after",) if drops else ()
    done = node.cli("import", "-", "--format", "jsonl", "--by", f"{due:%Y-%m-%d %H:%M} UTC", *more, stdin=ROWS)
    assert done.returncode == 0, done.stderr
    ms = round(due.timestamp() * 1000)
    assert node.sql("SELECT due_by FROM imports") == [(ms,)]
    assert node.sql("SELECT DISTINCT due_by, expires_at IS NOT NULL FROM tasks") == [(ms, drops)]


def test_a_deadline_in_danger_is_on_the_first_line_of_status(node: Node) -> None:
    node.settings["LIENWORKER_HOST_DELAY"] = "600"
    by = f"{soon(minutes=20):%Y-%m-%dT%H:%MZ}"
    node.cli("import", "-", "--format", "jsonl", "--by", by, "--auction", "Dixie June", stdin=ROWS)
    first = node.cli("status").stdout.splitlines()[0]
    assert "of 5 of Dixie June will not make" in first
    assert "a.example has" in first
    (row,) = node.json("status")["deadlines"]
    assert (row["name"], row["tasks"]) == ("Dixie June", 5)


def test_a_zone_by_name_counts(node: Node) -> None:
    node.cli("import", "-", "--format", "jsonl", "--by", "2029-06-03 10:00 America/New_York", stdin=ROWS)
    (ms,) = node.sql("SELECT due_by FROM imports")[0]
    assert datetime.fromtimestamp(ms / 1000, UTC) == datetime(2029, 6, 3, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "2029-06-03 10:00"), "has no zone"),
        (("--by", "2029-03-11 02:30 America/New_York"), "the clocks skip that hour"),
        (("--by", "2020-06-03 10:00 UTC"), "not within the next five years"),
        (("--by", "ten o'clock"), "is no time"),
        (("--by", "2029-06-03 10:00 Atlantis/Center"), "is no time"),
        (("--auction", "Dixie"), "belong to --by"),
    ],
)
def test_what_is_no_deadline_is_one_sentence(node: Node, options: tuple[str, ...], words: str) -> None:
    done = node.cli("import", "-", "--format", "jsonl", *options, stdin=ROWS)
    assert done.returncode == 2
    assert words in done.stderr
