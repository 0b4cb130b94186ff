"""Reports of tasks that ended without a result: through the outbox like all else, and any 200 closes the row."""

from __future__ import annotations

import json

import pytest

from lienworker.db.database import all_rows, one_row, write
from lienworker.operator.tasks import cancel_tasks, retry_tasks
from lienworker.outbox.outcomes import fail
from lienworker.outbox.registration import register_task
from lienworker.store.tasks import NewTask
from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk
from tests.steps.test_collect import PLACE, handed_out, wire


def book(here: Desk, gateway: ReferenceGateway, *task_ids: str) -> None:
    """Have tasks handed out to this worker, which it never sees."""
    gateway.enqueue(*({"verbatim": wire(task_id), "platform": "demo"} for task_id in task_ids))
    gateway.state.take_tasks(100, ["demo"] * len(task_ids), here.runtime.folder.worker_id())


def failed(here: Desk, task_id: str, reason: str = "http_404") -> None:
    """A task of the Gateway whose page could not be had."""
    from lienworker.outbox.claims import claim_task

    register_task(NewTask("gateway", "http://county.example/1", task_id=task_id))
    with here.runtime.holder.lease() as token:
        row = claim_task(task_id, "fetch", token, here.runtime.rules)
        assert row
        with write("test"):
            assert fail(row, reason, "The site says 404.")


def test_a_failure_is_reported_with_its_reason(here: Desk, gateway: ReferenceGateway) -> None:
    book(here, gateway, "t-1")
    failed(here, "t-1")
    here.upload()
    record = gateway.state.tasks["t-1"]
    assert record.state == "failed"
    assert json.loads(record.error) == {"error": "http_404: The site answered with HTTP 404."}
    assert here.states("report_failure") == {"delivered": 1}


def test_success_false_is_worth_one_more_try_and_a_line_in_the_log(
    here: Desk, gateway: ReferenceGateway, caplog: pytest.LogCaptureFixture
) -> None:
    failed(here, "unknown")
    here.upload_until()
    assert all_rows("SELECT state, reason FROM outbox WHERE topic = 'report_failure'") == [("delivered", "not_closed")]
    assert len(gateway.state.calls("fail")) == 2
    assert [line.message for line in caplog.records if "did not close task unknown" in line.message]


def test_a_task_that_is_closed_at_the_second_try_has_ended_like_any_other(
    here: Desk, gateway: ReferenceGateway
) -> None:
    failed(here, "t-1")
    here.upload()
    assert here.states("report_failure") == {"waiting": 1}
    book(here, gateway, "t-1")
    here.upload_until()
    assert all_rows("SELECT state, reason FROM outbox WHERE topic = 'report_failure'") == [("delivered", None)]
    assert gateway.state.bookings == {}


def test_tasks_with_any_printable_character_in_their_id_are_closed(here: Desk, gateway: ReferenceGateway) -> None:
    names = [f"t{chr(n)}1" for n in range(32, 127) if chr(n) != "/"]
    gateway.enqueue(*(wire(name, platform="demo", type="dance", target=PLACE) for name in names))
    here.collect()
    here.upload_until()
    assert here.states("report_failure") == {"delivered": len(names)}
    assert gateway.state.bookings == {}


def test_an_id_with_a_slash_is_parked_and_its_neighbours_are_reported(here: Desk, gateway: ReferenceGateway) -> None:
    for task_id in ("a/b", "%2F..", "..", "ü ?#;&", "plain"):
        failed(here, task_id)
    here.upload_until()
    parked = all_rows("SELECT task_id, reason FROM outbox WHERE state = 'parked' ORDER BY 1")
    assert parked == [("..", "cannot_be_closed_by_url"), ("a/b", "cannot_be_closed_by_url")]
    assert here.states("report_failure") == {"delivered": 3, "parked": 2}
    assert not here.breaker("tasks")["is_open"]
    assert {call.status for call in gateway.state.calls("fail")} == {200}


def test_a_local_task_is_not_reported(here: Desk, gateway: ReferenceGateway) -> None:
    register_task(NewTask("local_file", "http://county.example/1", task_id="mine"))
    cancel_tasks(["mine"], "test")
    here.upload()
    assert gateway.state.requests == []


def test_a_cancelled_task_of_the_gateway_is_reported(here: Desk, gateway: ReferenceGateway) -> None:
    handed_out(gateway, wire("t-1"))
    here.collect()
    cancel_tasks(["t-1"], "test")
    here.upload()
    assert gateway.state.tasks["t-1"].state == "failed"


def test_each_task_is_reported_once_a_round(here: Desk, gateway: ReferenceGateway) -> None:
    book(here, gateway, "t-1")
    failed(here, "t-1")
    retry_tasks(["t-1"], "test")
    cancel_tasks(["t-1"], "test")
    here.upload()
    assert here.states("report_failure")["delivered"] >= 1
    assert len(gateway.state.calls("fail")) <= 2


def test_a_failure_report_that_a_retry_has_overtaken_is_not_sent(
    here: Desk, gateway: ReferenceGateway, site: DemoSite
) -> None:
    """The Gateway was away when the task failed; a person had it tried again; `fail` would drop it for good."""
    handed_out(gateway, wire("t-1", target=site.odd_parcels()[0]))
    here.collect()
    here.fetch_and_scrape()
    assert one_row("SELECT status FROM tasks") == ("failed",)
    retry_tasks(["t-1"], "test")
    here.scrape_waiting()
    here.upload_until()
    assert len(gateway.state.results) == 1
    assert gateway.state.tasks["t-1"].state == "completed"
    assert gateway.state.calls("fail") == []


def test_a_report_does_not_wait_for_raw_files_that_are_in_trouble(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(5)
    book(here, gateway, "t-1")
    failed(here, "t-1")
    gateway.fault("503", endpoint="raw")
    here.upload()
    assert here.states("report_failure") == {"delivered": 1}


def test_reports_wait_out_an_outage(here: Desk, gateway: ReferenceGateway) -> None:
    book(here, gateway, *(f"t-{n}" for n in range(5)))
    for n in range(5):
        failed(here, f"t-{n}")
    gateway.fault("503", endpoint="fail", count=6)
    here.upload_until()
    assert here.states("report_failure") == {"delivered": 5}
    assert one_row("SELECT max(attempts), max(blame) FROM outbox WHERE topic = 'report_failure'") == (0, 0)
