"""A million rows of one slow host in front cost the others nothing. (Here: 200,000.)"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, close, database, execute, open_store, write
from lienworker.maintenance.hosts import give_up_dead_hosts
from lienworker.outbox.claims import Rules, claim_task, claimable, next_due
from lienworker.outbox.leases import Watch, WorkerLease, free
from lienworker.outbox.outcomes import give_back, try_again
from lienworker.outbox.transitions import end
from lienworker.store.counts import outbox_counts, task_counts
from tests.harness.outbox_rows import add, change, in_transaction, take

_N = 200_000
_RULES = Rules(host_delay=1.0, host_concurrency=4)
_CROWD = """
WITH RECURSIVE n (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < ?)
INSERT INTO {table} SELECT k, {columns} FROM n
"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which a slow host's rows stand in front of everybody's."""
    folder = open_store(tmp_path_factory.mktemp("crowd") / "data")
    with write("test"):
        execute("PRAGMA defer_foreign_keys = on")
        execute("INSERT INTO hosts (host) VALUES ('slow.example')")
        for table, columns, values in (
            (
                "tasks (task_id, source, url, queue, priority, created_at, received_at, updated_at)",
                "'local_file', 'http://slow.example/' || k, 'urgent', 2, '2026', '2026', '2026'",
                "'slow-' || k",
            ),
            (
                "outbox (task_id, topic, generation, host, queue, priority, state, due_at, created_at)",
                "'fetch', 1, 'slow.example', 'urgent', 2, 'waiting', 0, 0",
                "'slow-' || k",
            ),
        ):
            execute(_CROWD.format(table=table, columns=columns).replace("SELECT k,", f"SELECT {values},"), (_N,))
        execute("INSERT INTO counters VALUES ('added', 'fetch', ?)", (_N,))
    close()
    return folder.root


@pytest.fixture
def folder(crowd: Path) -> Iterator[DataFolder]:
    """The crowd, with all rows free and nobody else there."""
    folder = open_store(crowd)
    with write("test"):
        execute("UPDATE outbox SET state = 'waiting', lease_token = NULL WHERE state = 'leased'")
        execute("UPDATE hosts SET next_allowed_at = 0, cooling_until = 0")
    yield folder
    close()


def _quickest(work: Callable[[], object], times: int = 7) -> float:
    """Milliseconds of processor time of the quickest of several runs: what the machine does beside it counts little."""
    costs = []
    for _ in range(times):
        started = time.thread_time()
        work()
        costs.append(time.thread_time() - started)
    return 1000 * min(costs)


@pytest.mark.parametrize("obstacle", ["its next time", "cooling", "open requests"])
def test_a_slow_host_with_200_000_rows_in_front_costs_the_others_nothing(folder: DataFolder, obstacle: str) -> None:
    rules = Rules(0.0, 4)
    if obstacle == "its next time":
        change("UPDATE hosts SET next_allowed_at = ? WHERE host = 'slow.example'", now_ms() + 3_600_000)
    elif obstacle == "cooling":
        change("UPDATE hosts SET cooling_until = ? WHERE host = 'slow.example'", now_ms() + 3_600_000)
    else:
        assert [row.host for row in take(4, rules=rules)] == ["slow.example"] * 4
    add(64, "other.example", name=obstacle, priority=4)
    change("UPDATE hosts SET concurrency = 1000 WHERE host = 'other.example'")

    taken: list[str] = []
    cost = _quickest(lambda: taken.extend(row.host for row in take(4, rules=rules)))

    assert taken == ["other.example"] * 28
    assert cost < 25
    assert _quickest(lambda: claimable("fetch", rules, 64)) < 10
    assert _quickest(lambda: next_due("fetch")) < 10


def test_rows_that_are_all_due_later_cost_nothing_either(folder: DataFolder) -> None:
    """One look in vain notes when they are due."""
    add(5, "other.example", name="later", priority=4)
    change("UPDATE hosts SET next_allowed_at = 0")
    later = now_ms() + 3_600_000
    with write("test"):
        execute("UPDATE outbox SET due_at = ? WHERE host = 'slow.example' AND state = 'waiting'", (later,))
    try:
        assert {row.host for row in take(rules=_RULES)} == {"other.example"}
        assert _quickest(lambda: take(rules=_RULES)) < 25
        assert _quickest(lambda: claimable("fetch", _RULES, 64)) < 10
    finally:
        with write("test"):
            execute("UPDATE outbox SET due_at = 0 WHERE host = 'slow.example' AND state = 'waiting'")


def test_an_urgent_row_overtakes_200_000_of_its_own_host_at_once(folder: DataFolder) -> None:
    ids = add(7, "slow.example", name="now", queue="urgent", priority=1)
    taken: list[str] = []
    assert _quickest(lambda: taken.extend(row.task_id for row in take(1))) < 15
    assert taken == ids


def test_counting_everything_does_not_look_at_the_rows(folder: DataFolder) -> None:
    assert outbox_counts()["waiting"] >= _N
    assert _quickest(lambda: (outbox_counts(), task_counts())) < 10


def test_no_hot_query_scans_the_outbox_or_sorts_its_rows(folder: DataFolder) -> None:
    """Asks SQLite how it would run every statement that the hot paths really send."""
    add(20, "other.example", name="plan", priority=4)
    statements: list[str] = []
    connection = database.connection()
    connection.set_trace_callback(statements.append)
    try:
        _walk_the_hot_paths(folder)
    finally:
        connection.set_trace_callback(None)

    wrong = {}
    for statement in statements:
        if "outbox" not in statement or re.match(r"\s*(BEGIN|COMMIT|--|INSERT INTO outbox)", statement):
            continue
        plan = [row[3] for row in all_rows(f"EXPLAIN QUERY PLAN {statement}")]
        if _is_costly(statement, plan):
            wrong[statement] = plan
    assert any("ORDER BY o.due_at" in statement for statement in statements)
    assert any("json_each" in statement for statement in statements)
    assert wrong == {}


def _is_costly(statement: str, plan: list[str]) -> bool:
    # The rows in hand are few, and they have an index of their own: scanning and sorting just those is cheap.
    looks_at_leased_only = any("outbox_leased" in step for step in plan)
    scans = any(re.match(r"SCAN (o|outbox)\b", step) for step in plan)
    sorts = any("TEMP B-TREE" in step for step in plan)
    return (scans or sorts) and not looks_at_leased_only


def _walk_the_hot_paths(folder: DataFolder) -> None:
    rules = Rules(0.0, 4)
    holder = WorkerLease(folder, "worker", 4)
    with holder.lease() as token:
        rows = take(16, token=token, rules=rules)
        take(16, token=token, rules=rules, quarantined=False)
        claim_task("other.example/plan19", "fetch", token, rules)
        take(16, token=token, rules=rules, topic="scrape")
        claimable("fetch", rules, 64)
        next_due("fetch")
        holder.beat()
        in_transaction(end, rows[0])
        in_transaction(try_again, rows[1], 0, "http_500", "oh")
        give_back(rows[2:])
        Watch(folder, holder.id).reap_dead_workers()
        free(holder.id, blame=False)
        change("UPDATE hosts SET failing_since = 0, failures_in_a_row = 9 WHERE host = 'other.example'")
        give_up_dead_hosts(1.0)
        change("UPDATE hosts SET failing_since = NULL, failures_in_a_row = 0")
