"""The reference Gateway, by plain HTTP: handing out tasks, closing them, heartbeats."""

from __future__ import annotations

from typing import Any

import pytest

from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from tests.harness.gateway_calls import Caller, item, task


def test_no_tasks_is_null_with_30_seconds(call: Caller) -> None:
    assert call.work("demo") == {"tasks": None, "retry_after": 30}


def test_a_task_comes_as_it_was_queued_with_5_seconds(call: Caller) -> None:
    call.gateway.enqueue(task(1))
    assert call.work("demo") == {"tasks": [task(1)], "retry_after": 5}


def test_a_missing_created_at_comes_as_year_0001_and_a_missing_url_stays_missing(call: Caller) -> None:
    call.gateway.enqueue(task(1, created_at=None, target={"parcel_id": "P", "state": "FL", "county": "C"}))
    (handed,) = call.work("demo")["tasks"]
    assert handed["created_at"] == "0001-01-01T00:00:00Z"
    assert handed["target"] == {"parcel_id": "P", "state": "FL", "county": "C"}


def test_at_most_one_task_per_platform_and_priority_comes_back_per_call(call: Caller) -> None:
    call.gateway.enqueue(*(task(n, priority=3) for n in range(5)))
    assert [len(call.work("demo", capacity=100)["tasks"] or []) for _ in range(6)] == [1, 1, 1, 1, 1, 0]


def test_platforms_are_repeated_parameters_and_case_sensitive(call: Caller) -> None:
    call.gateway.enqueue(task(1, "a"), task(2, "b"))
    assert call.work("a,b")["tasks"] is None
    assert call.work("A")["tasks"] is None
    assert {entry["platform"] for entry in call.work("a", "b", "a")["tasks"]} == {"a", "b"}


@pytest.mark.parametrize(
    ("asked", "given"),
    [("0", 10), ("-5", 10), ("many", 10), ("", 10), ("3.5", 10), ("9" * 30, 10), ("3", 3), ("100", 100), ("101", 100)],
)
def test_capacity_has_its_rules(call: Caller, asked: str, given: int) -> None:
    call.gateway.enqueue(*(task(n, platform=f"p{n}") for n in range(120)))
    names = [f"p{n}" for n in range(120)]
    assert len(call.work(*names, capacity=asked)["tasks"]) == given


def test_a_task_is_never_handed_out_again_not_even_after_a_lost_reply_or_a_restart(gateway: ReferenceGateway) -> None:
    call = Caller(gateway)
    gateway.enqueue(task(1), task(2, priority=1))
    gateway.fault("lost_reply", endpoint="work", count=1)
    with pytest.raises(ConnectionError):
        call.work("demo")
    gateway.stop_listening()
    gateway.start_listening()
    assert call.work("demo")["tasks"] is None
    assert {record.state for record in gateway.state.tasks.values()} == {"handed_out"}


@pytest.mark.parametrize("odd", [{"task_id": "a/b"}, {}, "text", 7, {"target": None}, {"task_id": 5, "priority": 99}])
def test_odd_tasks_can_be_handed_out_word_for_word(call: Caller, odd: Any) -> None:
    call.gateway.enqueue({"verbatim": odd, "platform": "demo", "priority": 1})
    assert call.work("demo")["tasks"] == [odd]


def test_a_flat_row_is_made_into_a_task(call: Caller) -> None:
    (task_id,) = call.gateway.enqueue({"platform": "demo", "parcel_id": "P", "state": "FL", "county": "C"})
    (handed,) = call.work("demo")["tasks"]
    assert handed["task_id"] == task_id
    assert handed["target"] == {"parcel_id": "P", "state": "FL", "county": "C"}
    assert handed["created_at"].startswith("20")


def _handed_out(call: Caller, task_id: str = "t-1") -> None:
    call.gateway.enqueue(task(1, task_id=task_id))
    assert call.work("demo")["tasks"]


def test_complete_closes_a_task_once(call: Caller) -> None:
    _handed_out(call)
    assert call.post("/internal/tasks/t-1/complete", {}).json == {"success": True}
    assert call.post("/internal/tasks/t-1/complete", {}).json == {"success": False}
    assert call.gateway.state.tasks["t-1"].state == "completed"


def test_fail_drops_a_task_for_good(call: Caller) -> None:
    _handed_out(call)
    assert call.post("/internal/tasks/t-1/fail", {"error": "x"}).json == {"status": "reported", "success": True}
    assert call.post("/internal/tasks/t-1/fail", {"error": "x"}).json == {"status": "reported", "success": False}
    assert call.gateway.state.tasks["t-1"].error == '{"error": "x"}'
    assert call.work("demo")["tasks"] is None


@pytest.mark.parametrize("verb", ["complete", "fail"])
def test_unknown_tasks_and_those_of_another_worker_are_false_and_never_404(call: Caller, verb: str) -> None:
    _handed_out(call)
    other = Caller(call.gateway, "worker-2")
    assert other.post(f"/internal/tasks/t-1/{verb}", {}).json["success"] is False
    assert call.post(f"/internal/tasks/unknown/{verb}", {}).json["success"] is False
    assert call.gateway.state.tasks["t-1"].state == "handed_out"


def test_tasks_are_booked_under_the_worker_id_so_a_changed_one_cannot_close_them(call: Caller) -> None:
    _handed_out(call)
    restarted_with_another_id = Caller(call.gateway, "worker-1-restarted")
    assert restarted_with_another_id.post("/internal/tasks/t-1/complete", {}).json["success"] is False


@pytest.mark.parametrize(("path", "status"), [("a/b", 404), ("a%2Fb", 200), ("a%2fb", 200)])
def test_an_id_with_a_slash_cannot_be_closed_by_url(call: Caller, path: str, status: int) -> None:
    _handed_out(call, "a/b")
    assert call.post(f"/internal/tasks/{path}/complete", {}).status == status
    assert call.gateway.state.tasks["a/b"].state == "handed_out"


def test_an_id_with_other_odd_characters_can(call: Caller) -> None:
    _handed_out(call, "a b%2Fü?#")
    assert call.post("/internal/tasks/a%20b%252F%C3%BC%3F%23/complete", {}).json == {"success": True}


def test_submitting_a_result_closes_its_task(call: Caller) -> None:
    _handed_out(call)
    call.post("/internal/results", [item("P-1", task_id="t-1")])
    assert call.gateway.state.tasks["t-1"].state == "completed"
    assert call.post("/internal/tasks/t-1/complete", {}).json == {"success": False}


BEAT = {
    "active_tasks": 3,
    "completed_last_minute": 2,
    "failed_last_minute": 1,
    "platforms": ["demo"],
    "cpu_percent": 1.5,
    "memory_percent": 40,
}


def test_a_heartbeat_is_acknowledged_with_null_commands_and_extra_fields_are_kept(call: Caller) -> None:
    reply = call.post("/internal/heartbeat", {**BEAT, "queue": {"pending": 5}})
    assert reply.json == {"acknowledged": True, "commands": None}
    assert call.gateway.state.heartbeats[0].body["queue"] == {"pending": 5}


def test_commands_go_out_once_with_the_next_heartbeat_where_they_are_switched_on(call: Caller) -> None:
    call.gateway.configure(sends_commands=True)
    call.gateway.command("pause")
    call.gateway.command("resume", worker_id="worker-2")
    assert call.post("/internal/heartbeat", BEAT).json["commands"] == ["pause"]
    assert call.post("/internal/heartbeat", BEAT).json["commands"] is None
    assert Caller(call.gateway, "worker-2").post("/internal/heartbeat", BEAT).json["commands"] == ["resume"]


@pytest.mark.parametrize(
    "change",
    [
        {"active_tasks": 3.0},
        {"active_tasks": "3"},
        {"failed_last_minute": 1.5},
        {"platforms": "demo"},
        {"cpu_percent": "1"},
    ],
)
def test_a_wrongly_typed_heartbeat_is_a_400_in_text(call: Caller, change: dict[str, Any]) -> None:
    reply = call.post("/internal/heartbeat", {**BEAT, **change})
    assert reply.status == 400
    assert reply.text


def test_a_worker_unseen_for_300_seconds_counts_as_gone() -> None:
    now = [1000.0]
    with reference_gateway(clock=lambda: now[0]) as gateway:
        Caller(gateway).post("/internal/heartbeat", BEAT)
        now[0] += 300
        assert gateway.state.workers["worker-1"]["gone"] is False
        now[0] += 1
        assert gateway.state.workers["worker-1"]["gone"] is True
