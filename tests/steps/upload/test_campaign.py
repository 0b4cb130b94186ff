"""The Gateway fails three calls in ten, in every way at once; whatever we had committed arrives all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.db.database import all_rows, one_row
from lienworker.hubs.gateway.client import GatewayClient, Timeouts
from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import (
    Desk,
    assert_nothing_is_sent_after_it_was_acknowledged,
    assert_raw_before_result,
    desk,
    time_passes,
    work_to_the_end,
)
from tests.harness.node import repeats
from tests.harness.on_demand import gateway_tasks

pytestmark = pytest.mark.slow

#: What hangs is given up soon; a poll that is given up loses tasks, so it gets its time.
IMPATIENT = Timeouts(connect=5, work=3, raw=0.5, results=0.5, task=0.5, heartbeat=0.5, health=0.5, idle=3)
#: How a call can fail, with its share of all calls; 30 % together.
WAYS = {
    "down": 0.04,
    "hang": 0.01,
    "reset": 0.04,
    "lost_reply": 0.05,
    "half_json": 0.03,
    "html": 0.02,
    "401": 0.02,
    "403": 0.01,
    "429": 0.005,
    "429-date": 0.005,
    "500": 0.04,
    "502": 0.015,
    "503": 0.015,
}


def break_everything(gateway: ReferenceGateway, seed: int) -> None:
    for n, (way, share) in enumerate(WAYS.items()):
        gateway.fault(way, probability=share, seconds=1, seed=seed + n)
    gateway.fault("database_down", endpoint="results", probability=0.1, seed=seed)
    gateway.fault("database_down", endpoint="raw", probability=0.02, seed=seed)
    gateway.fault("slow", probability=0.05, seconds=0.05, seed=seed)


def refused_for_good(gateway: ReferenceGateway, tasks: list[dict[str, object]]) -> set[str]:
    """Three parcels that the Gateway's database never takes."""
    chosen = tasks[10::50]
    gateway.fault("parcels", names=[task["target"]["parcel_id"] for task in chosen])  # type: ignore[index]
    return {str(task["task_id"]) for task in chosen}


def test_a_gateway_that_fails_three_calls_in_ten_loses_nothing_of_ours(
    tmp_path: Path, gateway: ReferenceGateway, site: DemoSite
) -> None:
    tasks = gateway_tasks(site, 150)
    gateway.enqueue(*tasks)
    bad = refused_for_good(gateway, tasks)
    break_everything(gateway, seed=42)
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="0.01") as here:
        here.runtime.gateway.made = GatewayClient(gateway.url, gateway.token, "worker-1", timeouts=IMPATIENT)
        campaign(here, bad)
        look_at_the_end(here, gateway, site, bad)


def campaign(here: Desk, bad: set[str]) -> None:
    """Until everything that can arrive has arrived; longer waits are cut short."""
    for _ in range(200):
        try:
            work_to_the_end(here.runtime, 0.5)
            if here.gateway.state.waiting_tasks == 0:
                return
            time_passes()  # a poll that failed is waited for: nothing to do is not the end
        except TimeoutError:
            left = {row[0] for row in all_rows("SELECT task_id FROM outbox WHERE state IN ('waiting', 'leased')")}
            if left <= bad and here.gateway.state.waiting_tasks == 0:
                return  # what the Gateway refuses may wait until others have gone through
            time_passes()
    raise AssertionError(here.states())


def look_at_the_end(here: Desk, gateway: ReferenceGateway, site: DemoSite, bad: set[str]) -> None:
    handed_out = {name for name, record in gateway.state.tasks.items() if record.times_handed_out}
    kept = {row[0] for row in all_rows("SELECT task_id FROM tasks")}
    lost_on_the_way = handed_out - kept  # in replies that never reached us
    assert len(handed_out) == 150
    assert kept <= handed_out
    assert len(lost_on_the_way) < len(handed_out) / 2
    parked = {row[0] for row in all_rows("SELECT task_id FROM outbox WHERE state = 'parked'")}
    assert parked <= bad
    delivered = {row.task_id for row in gateway.state.results.values()}
    assert delivered == kept - bad
    assert_raw_before_result(gateway)
    assert_nothing_is_sent_after_it_was_acknowledged(gateway)
    assert repeats(site) == 0
    here.books_are_right()
    assert one_row("SELECT max(attempts) FROM outbox WHERE topic LIKE 'upload%'") == (0,)
