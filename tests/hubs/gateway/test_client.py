"""The client on a Gateway that works."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import OperatorError
from lienworker.hubs.gateway.client import MEBIBYTE, GatewayClient, HealthReply
from lienworker.hubs.gateway.outcomes import Accepted, Kind, Refused
from lienworker.hubs.gateway.wire import ClosedReply, HeartbeatReply, RawReply, ResultsReply, heartbeat_body, raw_name
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.gateway_calls import client_of, item, items, run, task

BEAT = heartbeat_body(
    active_tasks=1, completed_last_minute=2, failed_last_minute=3, platforms=["demo"], cpu_percent=4, memory_percent=5
)


def _with(gateway: ReferenceGateway, act: Any, **options: Any) -> Any:
    async def body() -> Any:
        async with client_of(gateway, **options) as client:
            return await act(client)

    return run(body())


def test_tasks_are_taken_for_the_named_platforms(gateway: ReferenceGateway) -> None:
    gateway.enqueue(task(1, "a b&c"), task(2, "other"), task(3, "ü"))
    outcome = _with(gateway, lambda client: client.work(5, ["a b&c", "ü"]))
    assert isinstance(outcome, Accepted)
    assert {read.task_id for read in outcome.reply.tasks} == {"t-1", "t-3"}
    assert outcome.reply.retry_after == 5
    assert not outcome.reply.cut


def test_null_tasks_are_none(gateway: ReferenceGateway) -> None:
    outcome = _with(gateway, lambda client: client.work(5, ["demo"]))
    assert (outcome.reply.tasks, outcome.reply.retry_after) == ((), 30)


@pytest.mark.parametrize(("capacity", "platforms"), [(0, ["demo"]), (-1, ["demo"]), (5, [])])
def test_to_take_nothing_it_does_not_call(gateway: ReferenceGateway, capacity: int, platforms: list[str]) -> None:
    gateway.enqueue(task(1))
    outcome = _with(gateway, lambda client: client.work(capacity, platforms))
    assert outcome.reply.tasks == ()
    assert gateway.state.requests == []


def test_a_capacity_over_100_is_asked_as_100(gateway: ReferenceGateway) -> None:
    _with(gateway, lambda client: client.work(5000, ["demo"]))
    assert gateway.state.requests[0].query == "capacity=100&platforms=demo"


def test_a_platform_that_is_named_often_brings_a_hundred_tasks_in_one_call(gateway: ReferenceGateway) -> None:
    gateway.enqueue(*(task(n) for n in range(100)))
    outcome = _with(gateway, lambda client: client.work(100, ["demo"] * 100))
    assert isinstance(outcome, Accepted)
    assert len(outcome.reply.tasks) == 100
    assert len(gateway.state.calls("work")) == 1


def test_a_raw_file_arrives_byte_for_byte_under_its_name(gateway: ReferenceGateway, tmp_path: Path) -> None:
    page = tmp_path / "page.html.gz"
    page.write_bytes(gzip.compress(b"<html>" * 100_000))
    name = raw_name("demo", "FL", "Juniper", "P-1", "page", "ab" * 32, ".html.gz")
    outcome = _with(gateway, lambda client: client.upload_raw(page, name, {"parcel_id": "P-1", "odd": float("nan")}))
    assert outcome == Accepted(RawReply(f"raw/{name}", name))
    assert gateway.state.raw_content(name) == page.read_bytes()
    assert json.loads(gateway.state.raw_files[name].metadata) == {"parcel_id": "P-1", "odd": None}


def test_a_large_raw_file_is_streamed_and_arrives_byte_for_byte(gateway: ReferenceGateway, tmp_path: Path) -> None:
    page = tmp_path / "page.html.gz"
    page.write_bytes(random.Random(1).randbytes(3 * MEBIBYTE + 7))
    outcome = _with(gateway, lambda client: client.upload_raw(page, "large.html.gz", {}))
    assert outcome == Accepted(RawReply("raw/large.html.gz", "large.html.gz"))
    assert gateway.state.raw_content("large.html.gz") == page.read_bytes()


def test_bytes_that_look_like_the_end_of_a_form_arrive_as_they_are(gateway: ReferenceGateway) -> None:
    content = b'\r\n----\r\n--x--\r\nContent-Disposition: form-data; name="file"; filename="y"\r\n\r\n'
    _with(gateway, lambda client: client.upload_raw(content, "x.gz", {}))
    assert gateway.state.raw_content("x.gz") == content


def test_a_name_cannot_break_out_of_its_header(gateway: ReferenceGateway) -> None:
    _with(gateway, lambda client: client.upload_raw(b"page", 'a"\r\nX: b.gz', {}))
    assert list(gateway.state.raw_files) == ["a%22%0D%0AX: b.gz"]


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_a_raw_file_that_is_not_there_is_the_rows_fault(gateway: ReferenceGateway, tmp_path: Path, kind: str) -> None:
    path = tmp_path if kind == "folder" else tmp_path / "gone"
    outcome = _with(gateway, lambda client: client.upload_raw(path, "x.gz", {}))
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.reason) == (None, "raw_file_unreadable")
    assert str(tmp_path) not in outcome.words


def test_results_are_counted(gateway: ReferenceGateway) -> None:
    gateway.fault("parcels", names=["P-1"], words="ERROR: boom")
    outcome = _with(gateway, lambda client: client.submit_results(items(3)))
    assert outcome == Accepted(ResultsReply(3, 2, 0, 1, ("P-1: ERROR: boom",)))


def test_no_results_are_no_call(gateway: ReferenceGateway) -> None:
    assert _with(gateway, lambda client: client.submit_results([])).reply.all_stored
    assert gateway.state.requests == []


@pytest.mark.parametrize("data", [{"x": float("nan")}, {"x": {1, 2}}])
def test_items_that_are_no_json_are_refused_without_a_call(gateway: ReferenceGateway, data: Any) -> None:
    outcome = _with(gateway, lambda client: client.submit_results([item(data=data)]))
    assert isinstance(outcome, Refused)
    assert gateway.state.requests == []


def test_a_wrongly_typed_item_is_a_refusal_in_the_gateways_words(gateway: ReferenceGateway) -> None:
    outcome = _with(gateway, lambda client: client.submit_results([item(parcel_id=7)]))
    assert outcome == Refused(400, "HTTP 400: invalid JSON")


PRINTABLE = "".join(map(chr, range(32, 127))).replace("/", "")


@pytest.mark.parametrize("task_id", ["t-1", "a b", "ü?#&", "a%2Fb", "a:b;c", "\\", "...", "a+b", "\n\0", PRINTABLE])
def test_tasks_with_odd_ids_are_closed(gateway: ReferenceGateway, task_id: str) -> None:
    gateway.enqueue(task(1, task_id=task_id), task(2, priority=1, task_id=task_id + "2"))

    async def act(client: GatewayClient) -> Any:
        await client.work(5, ["demo"])
        return await client.complete(task_id), await client.fail(task_id + "2", "because\ud800")

    assert _with(gateway, act) == (Accepted(ClosedReply(True)), Accepted(ClosedReply(True)))
    assert gateway.state.tasks[task_id].state == "completed"
    assert json.loads(gateway.state.tasks[task_id + "2"].error) == {"error": "because\ufffd"}


def test_tasks_with_any_printable_character_but_a_slash_are_closed(gateway: ReferenceGateway) -> None:
    names = [character for character in PRINTABLE if character != "."] + [f"a{character}b" for character in PRINTABLE]
    gateway.enqueue(*(task(n, task_id=name) for n, name in enumerate(names)))

    async def act(client: GatewayClient) -> Any:
        for _ in names:
            await client.work(100, ["demo"])
        return [await client.fail(name, "x") for name in names]

    assert set(_with(gateway, act)) == {Accepted(ClosedReply(True))}


@pytest.mark.parametrize("task_id", ["a/b", "..", ".", "", "\ud800"])
def test_an_id_that_cannot_be_closed_by_url_is_said_so_without_a_call(gateway: ReferenceGateway, task_id: str) -> None:
    for act in (lambda client: client.complete(task_id), lambda client: client.fail(task_id, "x")):
        outcome = _with(gateway, act)
        assert isinstance(outcome, Refused)
        assert (outcome.status, outcome.reason) == (None, "cannot_be_closed_by_url")
        assert "a / or half a character" in outcome.words
    assert gateway.state.requests == []


def test_false_is_an_answer_too(gateway: ReferenceGateway) -> None:
    assert _with(gateway, lambda client: client.complete("unknown")) == Accepted(ClosedReply(False))


def test_heartbeats_bring_commands(gateway: ReferenceGateway) -> None:
    gateway.configure(sends_commands=True)
    gateway.command("pause")
    assert _with(gateway, lambda client: client.heartbeat(BEAT)) == Accepted(HeartbeatReply(True, ("pause",)))
    assert _with(gateway, lambda client: client.heartbeat(BEAT)) == Accepted(HeartbeatReply(True, ()))


def test_health_is_asked_without_the_token(gateway: ReferenceGateway) -> None:
    assert _with(gateway, lambda client: client.health()) == Accepted(
        HealthReply(200, '{"app":"gateway","status":"healthy"}')
    )
    assert gateway.state.requests[0].worker_id == "unknown"


def test_the_token_can_be_tried_and_nothing_is_taken(gateway: ReferenceGateway) -> None:
    gateway.enqueue(task(1))
    outcome = _with(gateway, lambda client: client.check_token())
    assert isinstance(outcome, Accepted)
    assert "GMT" in outcome.reply.date
    assert gateway.state.waiting_tasks == 1


def test_any_other_web_server_is_not_taken_for_a_gateway(gateway: ReferenceGateway) -> None:
    gateway.fault("404")
    assert _with(gateway, lambda client: client.check_token()).kind is Kind.MISSING
    gateway.clear_faults()
    gateway.fault("html")
    assert "is this a Gateway?" in _with(gateway, lambda client: client.check_token()).words


def test_a_path_in_the_address_is_kept() -> None:
    client = GatewayClient("https://gateway.example/prefix/", "t", "w")
    assert str(client._url("/internal/work")) == "https://gateway.example/prefix/internal/work"


@pytest.mark.parametrize("address", ["", "gateway.example", "ftp://x", "http://", "http://x?y=1", "http://x:port"])
def test_an_address_that_cannot_be_used_is_the_operators_fault(address: str) -> None:
    with pytest.raises(OperatorError, match="address"):
        GatewayClient(address, "token", "w")


@pytest.mark.parametrize("token", ["", "two\nlines", "späth", " padded "])
def test_a_token_that_fits_no_header_is_the_operators_fault_and_is_not_shown(token: str) -> None:
    with pytest.raises(OperatorError) as caught:
        GatewayClient("http://gateway.example", token, "w")
    assert not token.strip() or token.strip() not in str(caught.value)


def test_the_client_can_be_used_on_one_loop_after_another(gateway: ReferenceGateway) -> None:
    client = client_of(gateway)

    async def act() -> Any:
        outcome = await client.heartbeat(BEAT)
        await client.close()
        return outcome

    assert isinstance(asyncio.run(act()), Accepted)
    assert isinstance(asyncio.run(act()), Accepted)


def test_connections_are_kept_for_the_next_call(gateway: ReferenceGateway) -> None:
    async def act(client: GatewayClient) -> Any:
        for _ in range(5):
            await client.heartbeat(BEAT)
        session = client._transport._session
        assert session is not None
        assert session.connector is not None
        return sum(map(len, session.connector._conns.values()))

    assert _with(gateway, act) == 1


def test_the_token_is_in_no_repr_and_no_log(gateway: ReferenceGateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = GatewayClient(gateway.url.replace("//", "//user:hunter2@"), gateway.token, "worker-1")

    async def act() -> Any:
        async with client:
            return await client.check_token()

    outcome = run(act())
    shown = repr(client) + repr(outcome) + caplog.text
    assert gateway.token not in shown
    assert "hunter2" not in shown
