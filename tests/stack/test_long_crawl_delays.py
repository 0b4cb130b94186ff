"""Sites that want an hour between two requests: they get it, and nobody waits for them with a thread in hand."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.testing.county.site import demo_site
from tests.harness.node import Node, wait_until, write_list
from tests.stack.test_spacing import MeasuredSite, sites

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def up(node: Node) -> Iterator[subprocess.Popen[str]]:
    process = node.start("up")
    try:
        wait_until(node.is_up, 60, "the stack")
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)
        node.kill_everything()


def test_a_dozen_sites_that_want_an_hour_hold_up_no_other(tmp_path: Path) -> None:
    node = Node(tmp_path / "data", LIENWORKER_PROCESSES="1", LIENWORKER_THREADS="6")
    with sites(*[3600.0] * 12) as slow, demo_site() as quick:
        rows = [row | {"platform": "generic"} for site in slow for row in site.parcels(2)]
        assert node.cli("import", write_list(tmp_path / "slow.jsonl", rows)).returncode == 0
        with up(node):
            wait_until(lambda: all(len(site.log) >= 1 for site in slow), 60, "every robots.txt was read")
            assert node.cli("import", write_list(tmp_path / "quick.jsonl", quick.parcels(20))).returncode == 0
            wait_until(lambda: node.statuses().get("completed") == 20, 60, "the others are scraped")
            wait_until(
                lambda: node.sql("SELECT count(*) FROM outbox WHERE state = 'leased'") == [(0,)], 60, "given back"
            )
            next_at = node.sql("SELECT min(next_allowed_at - 1000 * unixepoch()) FROM hosts WHERE robots_delay = 3600")
        assert [_paths(site) for site in slow] == [["/robots.txt"]] * 12
        assert node.sql("SELECT count(*), max(attempts) FROM outbox WHERE state = 'waiting'") == [(24, 0)]
        assert 3_000_000 < next_at[0][0] < 3_700_000, "the hour begins with the robots.txt, and is not taken twice"


def test_when_the_hour_is_over_the_page_is_fetched_and_not_the_robots_again(tmp_path: Path) -> None:
    node = Node(tmp_path / "data", LIENWORKER_PROCESSES="1")
    with sites(3600.0) as (site,):
        row = site.parcels(1)[0] | {"platform": "generic"}
        assert node.cli("import", write_list(tmp_path / "slow.jsonl", [row])).returncode == 0
        with up(node):
            waits = "SELECT 1 FROM hosts h, outbox o WHERE h.robots_delay = 3600 AND o.state = 'waiting'"
            wait_until(lambda: node.sql(waits), 60, "the row waits")
            _an_hour_passes(node)
            wait_until(lambda: node.statuses() == {"completed": 1}, 60, "the page")
        assert len(_paths(site)) == 2
        assert _paths(site)[0] == "/robots.txt"


def test_a_redirect_within_such_a_site_is_a_failure_and_not_an_endless_round(tmp_path: Path) -> None:
    node = Node(tmp_path / "data", LIENWORKER_PROCESSES="1")
    with sites(3600.0) as (site,):
        moved = site.parcels(3)[2] | {"platform": "generic"}  # every third one is
        assert node.cli("import", write_list(tmp_path / "slow.jsonl", [moved])).returncode == 0
        with up(node):
            waits = "SELECT 1 FROM hosts h, outbox o WHERE h.robots_delay = 3600 AND o.state = 'waiting'"
            wait_until(lambda: node.sql(waits), 60, "the row waits")
            _an_hour_passes(node)
            wait_until(lambda: node.statuses() == {"failed": 1}, 60, "its end")
        assert node.sql("SELECT reason FROM tasks") == [("crawl_delay",)]
        assert len(site.log) == 2


def _paths(site: MeasuredSite) -> list[str]:
    return [path for path, _ in site.log]


def _an_hour_passes(node: Node) -> None:
    """For the host, as the database has it."""
    with contextlib.closing(sqlite3.connect(node.data / "lienworker.db", timeout=30)) as rude, rude:
        rude.execute("UPDATE hosts SET next_allowed_at = 0")
