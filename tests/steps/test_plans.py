"""Every query of a parcel's way, as it is really sent, goes by an index: no scan of a table that grows, no sort."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lienworker.db.database import all_rows, database
from lienworker.maintenance.upkeep import Chores
from lienworker.operator.rows import lanes_in_figures
from lienworker.outbox.claims import claimable, next_due
from lienworker.queries.outbox import groups_waiting
from lienworker.testing.county.site import DemoSite, demo_site
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk
from tests.harness.on_demand import gateway_tasks

#: Tables that do not grow with the work: a row a lane, a process, an endpoint, a setting, a host.
_SMALL = {
    "pauses",
    "workers",
    "turns",
    "breakers",
    "facts",
    "counters",
    "tally",
    "hosts",
    "host_paces",
    "paused_counties",
}
#: A list of ids that we pass in is no table; an index that is walked holds only the few rows that it was made for.
_SCAN = re.compile(r"SCAN (\w+)\b(?! VIRTUAL| USING (?:COVERING )?INDEX)")
#: What is sorted here: the hosts that may be asked now, and a dozen counts.
_SORTS = ("FROM backlog b JOIN hosts h", "FROM tally", 'FROM "tally"')


@pytest.fixture
def site() -> Iterator[DemoSite]:
    with demo_site() as running:
        yield running


@pytest.fixture
def sent(here: Desk) -> Iterator[list[str]]:
    """The statements of this thread, with their values."""
    found: list[str] = []
    connection = database.connection()
    connection.set_trace_callback(found.append)
    yield found
    connection.set_trace_callback(None)


def test_every_query_of_a_parcels_way_goes_by_an_index(
    here: Desk, site: DemoSite, gateway: ReferenceGateway, sent: list[str]
) -> None:
    tasks = gateway_tasks(site, 40)
    tasks[7]["target"] = site.odd_parcels()[0]  # does not exist: fails, is reported
    gateway.enqueue(*tasks)
    here.collect()
    here.fetch_and_scrape()
    here.upload()
    here.heartbeat()
    for topic in ("fetch", "scrape", "upload_raw", "upload_result", "report_failure"):
        claimable(topic, here.runtime.rules, 64)
        next_due(topic)
    Chores(here.runtime.folder, here.runtime.settings).do()
    database.connection().set_trace_callback(None)
    queries = {_shape(sql): sql for sql in sent if re.match(r"\s*(SELECT|UPDATE|INSERT|DELETE|WITH)\b", sql, re.I)}
    assert len(queries) > 60, "the trace has missed something"
    bad = {shape: plan for shape, sql in queries.items() if (plan := _bad_steps(sql))}
    assert not bad, "\n".join(f"{plan}\n    {shape}" for shape, plan in bad.items())


def test_the_status_of_the_outbox_does_not_walk_through_what_waits(here: Desk, sent: list[str]) -> None:
    groups_waiting()
    lanes_in_figures()
    database.connection().set_trace_callback(None)
    steps = [row[3] for sql in sent for row in all_rows("EXPLAIN QUERY PLAN " + sql)]
    assert steps
    assert not [step for step in steps if "outbox_waiting" in step or step.startswith("SCAN outbox")]


def _shape(sql: str) -> str:
    """The statement without its values: the same query is looked at once."""
    return re.sub(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b", "?", sql)


def _bad_steps(sql: str) -> list[str]:
    steps = [row[3] for row in all_rows("EXPLAIN QUERY PLAN " + sql)]
    may_sort = any(words in sql for words in _SORTS)
    return [step for step in steps if ("TEMP B-TREE" in step and not may_sort) or _scans(step)]


def _scans(step: str) -> bool:
    found = _SCAN.match(step)
    return found is not None and found[1] not in {*_SMALL, "CONSTANT"}
