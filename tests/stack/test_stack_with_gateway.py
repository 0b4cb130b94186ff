"""Whole stacks and a Gateway: several workers, hanging counties, a hanging Gateway, kills of real workers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from lienworker.db.database import close
from lienworker.testing.county.site import DemoSite, demo_site
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import assert_raw_before_result, desk
from tests.harness.node import Node, interrupt, repeats, wait_until, write_list
from tests.harness.on_demand import gateway_tasks
from tests.harness.pace import assert_within

pytestmark = pytest.mark.slow


@contextmanager
def up(node: Node, **settings: str) -> Iterator[Node]:
    process = node.start("up", LIENWORKER_TASK_EXPIRY="80000", **settings)
    try:
        wait_until(lambda: node.is_up("collect"), what="the stack to be up")
        yield node
    finally:
        interrupt(process)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def test_several_workers_share_one_gateway(
    worker: Node, gateway: ReferenceGateway, site: DemoSite, tmp_path: Path
) -> None:
    gateway.enqueue(*gateway_tasks(site, 60))
    other = Node(tmp_path / "other", **worker.settings)
    worker.settings |= {"WORKER_ID": "one", "LIENWORKER_PROCESSES": "1", "LIENWORKER_MAX_WAITING": "8"}
    other.settings |= {"WORKER_ID": "two", "LIENWORKER_PROCESSES": "1", "LIENWORKER_MAX_WAITING": "8"}
    with up(worker), up(other):
        wait_until(lambda: len(gateway.state.results) == 60)
        wait_until(lambda: {beat.worker_id for beat in gateway.state.heartbeats} == {"one", "two"})
        n = 60
        while n < 2000 and {record.worker_id for record in gateway.state.tasks.values()} != {"one", "two"}:
            gateway.enqueue(*gateway_tasks(site, 20, start=n + 1))  # both are there, but one may be quicker
            n += 20
            wait_until(lambda n=n: len(gateway.state.results) == n)
    records = gateway.state.tasks.values()
    assert {record.state for record in records} == {"completed"}
    assert {record.times_handed_out for record in records} == {1}
    assert {record.worker_id for record in records} == {"one", "two"}
    assert {len(versions) for versions in gateway.state.history.values()} == {1}
    assert repeats(site) == 0
    assert_raw_before_result(gateway)
    assert not other.processes()
    worker.doctor()
    other.doctor()


def test_urgent_tasks_of_the_last_platform_do_not_wait_for_all_of_the_first(
    worker: Node, gateway: ReferenceGateway, site: DemoSite, tmp_path: Path
) -> None:
    (tmp_path / "platforms").mkdir()
    for name in ("aardvark", "zebra"):
        (tmp_path / "platforms" / f"{name}.yaml").write_text("fields:\n  parcel_id: '#jc-parcel-id'\n")
    worker.settings |= {"LIENWORKER_PLATFORMS": str(tmp_path / "platforms"), "LIENWORKER_MAX_WAITING": "20"}
    worker.settings["LIENWORKER_LOG_LEVEL"] = "warning"  # nobody reads its log
    first = [task | {"platform": "aardvark"} for task in gateway_tasks(site, 10_000)]
    last = [task | {"platform": "zebra", "priority": 1} for task in gateway_tasks(site, 36, start=10_001)]
    gateway.enqueue(*first, *last)
    with up(worker):
        wait_until(lambda: all(gateway.state.tasks[task["task_id"]].times_handed_out for task in last), 60)
        assert gateway.state.waiting_tasks > 1000, "the others were not done before"


def test_heartbeats_polls_and_uploads_go_on_while_every_fetch_hangs_and_while_paused(
    worker: Node, gateway: ReferenceGateway
) -> None:
    worker.settings |= {"LIENWORKER_THREADS": "5", "LIENWORKER_HOST_CONCURRENCY": "200", "LIENWORKER_ROBOTS": "ignore"}
    worker.settings["LIENWORKER_HEARTBEAT"] = "1"
    with demo_site(latency=60.0) as hanging, up(worker):
        gateway.enqueue(*gateway_tasks(hanging, 200))
        wait_until(lambda: len([p for p, _ in hanging.log if p.startswith("/parcel")]) >= 30)
        began = time.time()
        wait_until(lambda: sum(beat.time > began for beat in gateway.state.heartbeats) >= 3)
        assert gateway.state.waiting_tasks == 0
        worker.cli("pause")
        began = time.time()
        wait_until(lambda: sum(beat.time > began for beat in gateway.state.heartbeats) >= 2)
        gaps = [b.time - a.time for a, b in zip(gateway.state.heartbeats, gateway.state.heartbeats[1:], strict=False)]
        assert max(gaps) < 15  # every second here, and one that waits for a fetch would wait for a minute


def test_a_real_worker_killed_between_the_gateways_commit_and_ours(
    worker: Node, gateway: ReferenceGateway, site: DemoSite, tmp_path: Path
) -> None:
    """All other points are in `tests/killpoints`, where a kill costs no restart of a stack."""
    point = "gateway_results.after_reply"
    gateway.enqueue(*gateway_tasks(site, 24))
    mark = tmp_path / "struck"
    with up(worker, LIENWORKER_CRASH_AT=point, LIENWORKER_CRASH_MARK=str(mark)):
        wait_until(lambda: len(gateway.state.results) == 24)
        wait_until(lambda: worker.json("status")["outbox"]["waiting"] == 0)
    assert mark.exists()
    assert {record.state for record in gateway.state.tasks.values()} == {"completed"}
    assert max(len(versions) for versions in gateway.state.history.values()) <= 2
    assert_raw_before_result(gateway)
    assert worker.sql("SELECT count(*) FROM outbox WHERE state = 'parked'") == [(0,)]
    worker.doctor()


def test_stopping_while_the_gateway_hangs_is_quick_and_costs_no_attempt(
    worker: Node, gateway: ReferenceGateway, site: DemoSite, tmp_path: Path
) -> None:
    gateway.fault("hang", endpoint="results")
    with up(worker):
        worker.cli("import", write_list(tmp_path / "parcels.jsonl", site.parcels(5)))
        wait_until(lambda: gateway.state.calls("results"))
        began = time.monotonic()
    assert time.monotonic() - began < 40  # the call is given up after a minute
    rows = worker.sql(
        "SELECT max(attempts), max(alone), sum(state = 'leased') FROM outbox WHERE topic = 'upload_result'"
    )
    assert rows == [(0, 0, 0)]


def test_a_replay_that_is_interrupted_leaves_its_rows_as_they_were(
    worker: Node, gateway: ReferenceGateway, tmp_path: Path
) -> None:
    with desk(worker.data, gateway) as here:
        here.add(6)
    close()
    gateway.fault("hang", endpoint="raw")
    process = worker.start("outbox", "replay")
    wait_until(lambda: gateway.state.calls("raw"))
    interrupt(process)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert worker.sql("SELECT DISTINCT state, attempts, alone FROM outbox WHERE topic LIKE 'upload%'") == [
        ("waiting", 0, 0)
    ]
    gateway.clear_faults()
    assert worker.cli("outbox", "replay").returncode == 0
    assert len(gateway.state.results) == 6


@pytest.mark.alone
def test_an_idle_pair_delivers_a_result_within_half_a_second(
    worker: Node, gateway: ReferenceGateway, site: DemoSite
) -> None:
    numbers = itertools.count(1)

    def deliver() -> float:
        number = next(numbers)
        gateway.enqueue(gateway_tasks(site, 1, start=number)[0])
        wait_until(lambda: len(gateway.state.results) == number)
        wait_until(lambda: worker.json("status")["outbox"]["waiting"] == 0)  # idle again
        ((_, versions),) = list(gateway.state.history.items())[-1:]
        return versions[0].time - datetime.fromisoformat(versions[0].row.scraped_at).timestamp()

    with up(worker):
        assert_within(0.5, deliver, times=5)
