"""The reference Gateway goes wrong on command, in every way that a real one does."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from lienworker.testing.gateway import ReferenceGateway, Settings
from lienworker.testing.gateway.faults import ENDPOINTS, KINDS, Fault
from tests.harness.gateway_calls import Caller, item, items, task
from tests.harness.node import wait_until

ROUTES = {
    "health": ("GET", "/health"),
    "work": ("GET", "/internal/work?platforms=demo"),
    "raw": ("POST", "/internal/raw-files"),
    "results": ("POST", "/internal/results"),
    "complete": ("POST", "/internal/tasks/t/complete"),
    "fail": ("POST", "/internal/tasks/t/fail"),
    "heartbeat": ("POST", "/internal/heartbeat"),
}


@contextmanager
def asking(
    call: Caller, method: str, path: str, body: str | None = None, timeout: float = 60
) -> Iterator[http.client.HTTPConnection]:
    """A request whose reply is not read yet."""
    with closing(http.client.HTTPConnection("127.0.0.1", call.gateway.port, timeout=timeout)) as connection:
        connection.request(method, path, body, call.headers)
        yield connection


@pytest.mark.parametrize("status", ["401", "403", "500", "502", "503"])
@pytest.mark.parametrize("endpoint", ROUTES)
def test_any_endpoint_can_answer_any_status(call: Caller, endpoint: str, status: str) -> None:
    call.gateway.fault(status, endpoint=endpoint)
    method, path = ROUTES[endpoint]
    assert call.raw(method, path, b"[]", call.headers).status == int(status)
    for other in set(ROUTES) - {endpoint}:
        method, path = ROUTES[other]
        assert call.raw(method, path, b"[]", call.headers).status != int(status)


def test_down_closes_the_connection_without_a_byte_and_does_nothing(call: Caller) -> None:
    call.gateway.fault("down")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        call.post("/internal/results", [item()])
    assert not call.gateway.state.results
    assert call.gateway.state.requests[-1].status is None


def test_slow_is_late_and_otherwise_right(call: Caller) -> None:
    call.gateway.fault("slow", seconds=0.3, endpoint="results")
    start = time.monotonic()
    assert call.post("/internal/results", [item()]).json["inserted"] == 1
    assert time.monotonic() - start >= 0.3


def test_hang_never_answers_and_does_nothing(call: Caller) -> None:
    call.gateway.fault("hang")
    with (
        asking(call, "POST", "/internal/results", json.dumps([item()]), timeout=0.3) as connection,
        pytest.raises(TimeoutError),
    ):
        connection.getresponse()
    assert not call.gateway.state.results


def test_clearing_the_faults_lets_go_of_those_that_hang(call: Caller) -> None:
    call.gateway.fault("hang")
    with asking(call, "GET", "/health") as connection:
        wait_until(lambda: call.gateway.state.requests and call.gateway.state.requests[0].fault)
        call.gateway.clear_faults()
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            connection.getresponse()


@pytest.mark.parametrize("kind", ["reset", "lost_reply"])
def test_a_reply_can_be_lost_after_storing(call: Caller, kind: str) -> None:
    call.gateway.fault(kind, count=1)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        call.post("/internal/results", items(3))
    assert len(call.gateway.state.results) == 3
    assert call.post("/internal/results", items(3)).json["updated"] == 3


@pytest.mark.parametrize("kind", ["hang", "lost_reply"])
def test_part_of_a_batch_can_be_stored_before_the_client_hears_nothing_more(call: Caller, kind: str) -> None:
    call.gateway.enqueue(task(task_id="task-P-1", priority=1), task(task_id="task-P-2", priority=2))
    call.work("demo")
    call.gateway.fault(kind, endpoint="results", items=2, count=1)
    with (
        asking(call, "POST", "/internal/results", json.dumps(items(5)), timeout=0.3) as connection,
        pytest.raises((TimeoutError, ConnectionError)),
    ):
        connection.getresponse()
    wait_until(lambda: call.gateway.state.calls("results")[0].stored_part, what="part of it to be stored")
    assert [parcel_id for parcel_id, *_ in call.gateway.state.results] == ["P-0", "P-1"]
    assert call.gateway.state.tasks["task-P-1"].state == "completed"
    assert call.gateway.state.tasks["task-P-2"].state == "handed_out"
    (cut,) = call.gateway.state.calls("results")
    assert (cut.status, cut.fault, cut.items, cut.stored_part) == (None, kind, 5, 2)
    reply = call.post("/internal/results", items(5)).json
    assert (reply["inserted"], reply["updated"]) == (3, 2)


def test_part_of_a_batch_is_stored_only_for_a_worker_that_may(call: Caller) -> None:
    call.gateway.fault("lost_reply", endpoint="results", items=2)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        call.raw("POST", "/internal/results", json.dumps(items(5)).encode())
    assert not call.gateway.state.results


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "503", "endpoint": "results", "items": 1},
        {"kind": "reset", "endpoint": "results", "items": 1},
        {"kind": "hang", "endpoint": "raw", "items": 1},
        {"kind": "hang", "items": 1},
        {"kind": "lost_reply", "endpoint": "results", "items": -1},
    ],
)
def test_part_of_a_batch_where_there_can_be_none_is_told_so(gateway: ReferenceGateway, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="items"):
        gateway.fault(**wrong)


def test_reset_comes_in_the_middle_of_the_reply(call: Caller) -> None:
    call.gateway.enqueue(task())
    call.gateway.fault("reset")
    with asking(call, "GET", "/internal/work?platforms=demo") as connection:
        response = connection.getresponse()
        assert response.status == 200
        assert response.read(20).startswith(b'{"tasks":[{"task_id"')
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            response.read()


def test_half_a_json_comes_as_a_whole_reply(call: Caller) -> None:
    call.gateway.fault("half_json")
    reply = call.post("/internal/results", [item()])
    assert (reply.status, reply.headers.get_content_type()) == (200, "application/json")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        json.loads(reply.body)
    assert call.gateway.state.results


def test_html_comes_from_a_proxy_and_nothing_is_done(call: Caller) -> None:
    call.gateway.fault("html")
    reply = call.post("/internal/results", [item()])
    assert (reply.status, reply.headers.get_content_type()) == (200, "text/html")
    assert not call.gateway.state.results


def test_one_raw_file_can_always_get_a_500_while_others_pass(call: Caller) -> None:
    call.gateway.fault("raw_file", names="cursed")
    assert call.upload("cursed.html.gz", b"x").status == 500
    assert call.upload("fine.html.gz", b"x").status == 200
    assert call.upload("cursed.html.gz", b"x").status == 500


def test_a_count_ends_a_fault(call: Caller) -> None:
    call.gateway.fault("503", count=2)
    assert [call.get("/health").status for _ in range(4)] == [503, 503, 200, 200]


def test_a_probability_with_a_seed_is_the_same_each_time(call: Caller) -> None:
    def pattern() -> list[int]:
        call.gateway.clear_faults()
        call.gateway.fault("503", probability=0.3, seed=42)
        return [call.get("/health").status for _ in range(60)]

    first = pattern()
    assert pattern() == first
    assert 6 <= first.count(503) <= 30


def test_faults_can_be_cleared_one_by_one(call: Caller) -> None:
    unwanted = call.gateway.fault("503", endpoint="health")
    call.gateway.fault("500", endpoint="results")
    call.gateway.clear_faults(unwanted)
    assert call.get("/health").status == 200
    assert call.post("/internal/results", []).status == 500


@pytest.mark.parametrize(
    "wrong", [{"kind": "flood"}, {"kind": "503", "endpoint": "moon"}, {"kind": "503", "colour": 1}]
)
def test_an_unknown_fault_says_what_would_be_right(gateway: ReferenceGateway, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown"):
        gateway.fault(**wrong)


def test_every_fault_and_every_option_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "on-demand.md").read_text()
    options = {one.name for one in fields(Fault)} - {"id"}
    assert [name for name in sorted(KINDS | options | set(ENDPOINTS)) if f"`{name}`" not in page] == []


def test_every_setting_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "on-demand.md").read_text()
    assert [one.name for one in fields(Settings) if f"`{one.name}`" not in page] == []
