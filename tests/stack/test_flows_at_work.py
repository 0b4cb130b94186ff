"""Flows in the real stack: every page of every parcel, spaced where it arrives, in few sessions."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import chain, pairwise
from pathlib import Path

import pytest

from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from lienworker.testing.sites import SITES, SessionSite
from tests.harness.node import Node, interrupt, wait_until, write_list
from tests.harness.pace import Lag
from tests.harness.session_sites import DELAY, all_served, served

pytestmark = pytest.mark.slow

#: What a request may come too early by: 20 ms.
_TOLERANCE = 0.02
_PARCELS = 30
PARTS = {
    "webforms": ["profile", "sales", "taxes", "values"],
    "auction": ["items", "more-1"],
    "guest": ["account", "document-1", "document-2"],
    "service": ["card", "detail", "history"],
}


def test_a_run_keeps_every_page_of_every_parcel_and_needs_one_session(tmp_path: Path) -> None:
    with all_served(SITES, tmp_path) as (sites, node):
        run_all(sites, node, tmp_path)
        assert [site.sessions_opened for site in sites.values()] == [1] * len(SITES)


@pytest.mark.alone
def test_sessions_that_end_cost_no_page_and_every_request_is_spaced_where_it_arrives(tmp_path: Path) -> None:
    with Lag() as lag, all_served(SITES, tmp_path, end_every=20) as (sites, node):
        run_all(sites, node, tmp_path)
        assert min(site.sessions_opened for site in sites.values()) > 1
    for kind, site in sites.items():
        times = [arrival.at for arrival in site.arrivals]
        early = [b - a for a, b in pairwise(times) if b - a < DELAY - _TOLERANCE - lag.at(a)]
        assert (kind, early) == (kind, [])


def run_all(sites: dict[str, SessionSite], node: Node, base: Path) -> None:
    """Run all parcels of all sites to the end, side by side: every page of each is kept."""
    rows = {kind: site.work(_PARCELS) for kind, site in sites.items()}
    done = node.cli("run", write_list(base / "list.jsonl", list(chain(*rows.values()))), timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(node.statuses()) == {"completed"}
    for kind, site in sites.items():
        assert parts_kept(node, site.name) == [PARTS[kind]] * len(rows[kind])
    node.doctor()


def parts_kept(node: Node, platform: str) -> list[list[str]]:
    """The parts of each parcel of a platform."""
    kept: dict[str, list[str]] = defaultdict(list)
    sql = "SELECT task_id, part FROM pages JOIN tasks USING (task_id) WHERE tasks.platform = ? ORDER BY 1, 2"
    for task_id, part in node.sql(sql, platform):
        kept[task_id].append(part)
    return list(kept.values())


@pytest.mark.parametrize("kind", ["webforms", "service"])
def test_each_part_is_at_the_gateway_before_the_result(kind: str, tmp_path: Path) -> None:
    with reference_gateway() as gateway, served(kind, tmp_path) as (site, node):
        gateway.configure(retry_without_tasks=1, strict=True)
        node.settings |= {
            "GATEWAY_URL": gateway.url,
            "GATEWAY_TOKEN": gateway.token,
            "LIENWORKER_GATEWAY_RETRY": "0.3",
            "LIENWORKER_TASK_EXPIRY": "50000",
        }
        gateway.enqueue(*_tasks(site, _PARCELS))
        process = node.start("up", "--mode", "ondemand")
        try:
            wait_until(lambda: len(gateway.state.results) == _PARCELS, 120)
        finally:
            interrupt(process)
            process.communicate(timeout=60)
        _assert_parts_before_results(gateway, node, len(PARTS[kind]))


def _tasks(site: SessionSite, n: int) -> list[dict[str, object]]:
    return [
        {
            "task_id": f"task-{number}",
            "type": "scrape",
            "platform": row.pop("platform"),
            "target": row,
            "priority": 3,
            "created_at": "2026-11-01T00:00:00Z",
        }
        for number, row in enumerate(site.work(n), 1)
    ]


def _assert_parts_before_results(gateway: ReferenceGateway, node: Node, parts: int) -> None:
    arrived: dict[str, list[int]] = defaultdict(list)
    task_of = dict(node.sql("SELECT sha256, task_id FROM pages"))
    for raw in gateway.state.raw_uploads:
        arrived[task_of[json.loads(raw.metadata)["raw_html_hash"]]].append(raw.seq)
    for versions in gateway.state.history.values():
        for version in versions:
            before = [seq for seq in arrived[version.row.task_id] if seq < version.seq]
            assert len(before) == parts
