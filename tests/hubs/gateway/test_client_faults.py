"""The client on a Gateway that does not work: every fault is an outcome, and the right one is blamed."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lienworker.hubs.gateway.client import GatewayClient, Timeouts
from lienworker.hubs.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.gateway_calls import QUICK, client_of, item, items, run, task
from tests.harness.node import PATIENCE, wait_until

Act = Callable[[GatewayClient], Awaitable[Outcome[Any]]]
_PAGE = Path(__file__)
CALLS: dict[str, Act] = {
    "work": lambda client: client.work(5, ["demo"]),
    "raw": lambda client: client.upload_raw(_PAGE, "x.html.gz", {"a": 1}),
    "results": lambda client: client.submit_results([item()]),
    "complete": lambda client: client.complete("t-1"),
    "fail": lambda client: client.fail("t-1", "because"),
    "heartbeat": lambda client: client.heartbeat({"active_tasks": 1}),
}
every_call = pytest.mark.parametrize("act", CALLS.values(), ids=CALLS.keys())
#: For a Gateway that hangs.
HASTY = Timeouts(connect=20, work=0.3, raw=0.3, results=0.3, task=0.3, heartbeat=0.3, health=0.3)


def outcome_of(gateway: ReferenceGateway, act: Act, **options: Any) -> Outcome[Any]:
    async def body() -> Outcome[Any]:
        async with client_of(gateway, **options) as client:
            return await act(client)

    return run(body())


def unavailable(gateway: ReferenceGateway, act: Act, **options: Any) -> Unavailable:
    outcome = outcome_of(gateway, act, **options)
    assert isinstance(outcome, Unavailable), outcome
    assert gateway.token not in repr(outcome)
    assert outcome.words
    return outcome


@every_call
def test_a_gateway_that_is_not_there_is_down(gateway: ReferenceGateway, act: Act) -> None:
    gateway.stop_listening()
    outcome = unavailable(gateway, act)
    assert outcome.kind is Kind.DOWN
    assert not outcome.perhaps_the_row


def test_a_name_that_does_not_exist_is_down() -> None:
    async def act() -> Any:
        async with GatewayClient("http://no-such-host.invalid", "token", "w") as client:
            return await client.health()

    assert run(act()).kind is Kind.DOWN


@every_call
@pytest.mark.parametrize("fault", ["down", "lost_reply", "reset"])
def test_a_broken_connection_is_a_reset(gateway: ReferenceGateway, act: Act, fault: str) -> None:
    gateway.fault(fault)
    outcome = unavailable(gateway, act)
    assert outcome.kind is Kind.RESET
    assert outcome.perhaps_the_row


@every_call
def test_hanging_is_a_time_out_in_its_own_time(gateway: ReferenceGateway, act: Act) -> None:
    gateway.fault("hang")
    start = time.monotonic()
    assert unavailable(gateway, act, timeouts=HASTY).kind is Kind.TIMEOUT
    assert time.monotonic() - start < 10  # the client of the other tests would wait for 20 s


@every_call
def test_slow_within_the_limit_is_fine(gateway: ReferenceGateway, act: Act) -> None:
    gateway.fault("slow", seconds=0.1)
    assert isinstance(outcome_of(gateway, act), Accepted)


@every_call
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("401", Kind.AUTH),
        ("403", Kind.AUTH),
        ("404", Kind.MISSING),
        ("405", Kind.MISSING),
        ("408", Kind.UNEXPECTED),
        ("418", Kind.UNEXPECTED),
        ("500", Kind.SERVER_ERROR),
        ("502", Kind.SERVER_ERROR),
        ("503", Kind.SERVER_ERROR),
        ("302", Kind.REDIRECTED),
        ("html", Kind.GARBAGE),
        ("half_json", Kind.GARBAGE),
    ],
)
def test_whose_fault_a_status_is(gateway: ReferenceGateway, act: Act, fault: str, kind: Kind) -> None:
    gateway.fault(fault)
    assert unavailable(gateway, act).kind is kind


@every_call
@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_a_refusal_is_the_rows_fault(gateway: ReferenceGateway, act: Act, status: str) -> None:
    gateway.fault(status)
    outcome = outcome_of(gateway, act)
    assert isinstance(outcome, Refused)
    assert outcome.status == int(status)


@every_call
@pytest.mark.parametrize(("fault", "low", "high"), [("429", 7, 7), ("429-date", 1, 8)])
def test_429_says_when_to_come_back(gateway: ReferenceGateway, act: Act, fault: str, low: int, high: int) -> None:
    gateway.fault(fault, seconds=7)
    outcome = unavailable(gateway, act)
    assert outcome.kind is Kind.RATE_LIMITED
    assert outcome.retry_after is not None
    assert low <= outcome.retry_after <= high


def test_a_wrong_token_is_auth_in_the_gateways_words_without_the_token(gateway: ReferenceGateway) -> None:
    async def act() -> Any:
        async with GatewayClient(gateway.url, "wrong-token", "w") as client:
            return await client.check_token(), await client.work(1, ["demo"])

    for outcome in run(act()):
        assert outcome == Unavailable(Kind.AUTH, "HTTP 401: UNAUTHORIZED: invalid worker token")


def test_a_raw_file_with_a_200_that_says_error_is_a_failure(gateway: ReferenceGateway) -> None:
    gateway.fault("database_down")
    outcome = unavailable(gateway, CALLS["raw"])
    assert outcome.kind is Kind.FAILED
    assert "connection refused" in outcome.words
    assert outcome.perhaps_the_row


def test_a_broken_poll_is_not_repeated_behind_our_back(gateway: ReferenceGateway) -> None:
    """aiohttp would repeat a GET, take a second load of tasks, and hide that the first was lost."""
    gateway.enqueue(task(1), task(2))
    gateway.fault("lost_reply", count=1)

    async def act(client: GatewayClient) -> Outcome[Any]:
        await client.health()  # a connection that is kept
        gateway.clear_faults()
        gateway.fault("lost_reply", endpoint="work", count=1)
        return await client.work(5, ["demo"])

    assert unavailable(gateway, act).kind is Kind.RESET
    assert len(gateway.state.calls("work")) == 1
    assert gateway.state.waiting_tasks == 1


@pytest.mark.parametrize("fault", ["reset", "half_json"])
def test_tasks_that_arrived_whole_in_a_broken_reply_are_kept(gateway: ReferenceGateway, fault: str) -> None:
    gateway.enqueue(*(task(n, priority=n) for n in (1, 2, 3, 4)))
    gateway.fault(fault)
    outcome = outcome_of(gateway, CALLS["work"])
    assert isinstance(outcome, Accepted)
    assert [read.task_id for read in outcome.reply.tasks] == ["t-1", "t-2"][: len(outcome.reply.tasks)]
    assert outcome.reply.tasks
    assert outcome.reply.cut


def test_a_reply_is_bounded_in_size(gateway: ReferenceGateway) -> None:
    gateway.enqueue(task(1, priority=1), task(2, target={"parcel_id": "x" * 100_000}))
    outcome = outcome_of(gateway, CALLS["work"], max_reply_bytes=50_000)
    assert isinstance(outcome, Accepted)
    assert [read.task_id for read in outcome.reply.tasks] == ["t-1"]
    gateway.enqueue(task(3, target={"parcel_id": "x" * 100_000}))
    outcome = unavailable(gateway, CALLS["work"], max_reply_bytes=50_000)
    assert outcome.kind is Kind.GARBAGE
    assert "larger than 50000 bytes" in outcome.words


def test_a_packed_reply_takes_no_more_memory_than_the_bound_allows() -> None:
    """We ask for plain replies; what comes packed all the same is bounded too."""
    bound = 2_000_000
    bomb = gzip.compress(b" " * 200_000_000)

    async def body(url: str) -> Outcome[Any]:
        async with GatewayClient(url, "t", "w", timeouts=Timeouts(), max_reply_bytes=bound) as client:
            return await CALLS["results"](client)

    with saying(_http("200 OK", bomb, "Content-Encoding: gzip")) as url:
        tracemalloc.start()
        try:
            outcome = run(body(url))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(outcome, Unavailable)
    assert peak < 4 * bound + 10_000_000


def test_a_large_task_fits_the_usual_bound(gateway: ReferenceGateway) -> None:
    gateway.enqueue(task(1, target={"parcel_id": "x" * 10_000_000}))
    outcome = outcome_of(gateway, CALLS["work"], timeouts=Timeouts())
    assert isinstance(outcome, Accepted)
    assert len(outcome.reply.tasks[0].raw_json) > 10_000_000


def test_a_time_out_may_leave_a_batch_stored_and_a_resend_is_safe(gateway: ReferenceGateway) -> None:
    gateway.fault("slow", seconds=1.5, count=1)
    hasty = replace(HASTY, results=0.8)
    assert unavailable(gateway, lambda client: client.submit_results(items(5)), timeouts=hasty).kind is Kind.TIMEOUT
    wait_until(lambda: len(gateway.state.results) == 5, what="the batch to be stored all the same")
    outcome = outcome_of(gateway, lambda client: client.submit_results(items(5)))
    assert isinstance(outcome, Accepted)
    assert outcome.reply.updated == 5


# A server that says exactly these bytes, for what no HTTP server of ours would say.


@contextlib.contextmanager
def saying(answer: bytes) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_all() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(answer)

        threading.Thread(target=answer_all, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def answered(answer: bytes, act: Act = CALLS["results"], token: str = "secret-token") -> Outcome[Any]:
    async def body(url: str) -> Outcome[Any]:
        async with GatewayClient(url, token, "w", timeouts=QUICK) as client:
            return await act(client)

    with saying(answer) as url:
        return run(body(url))


def _http(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\1\2\3",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
        _http("204 No Content"),
        _http("200 OK"),
        _http("200 OK", b"null"),
        _http("200 OK", b"[]"),
        _http("200 OK", b'{"inserted":5,"updated":0,"failed":0,"errors":null}'),
        _http("200 OK", b"[" * 100_000),
        _http("200 OK", b"\xff\xfe\x00"),
        _http("301 Moved", b"", "Location: http://elsewhere.example/"),
        _http("599 Odd", b"\xff" * 100),
    ],
)
@every_call
def test_garbage_is_an_outcome_and_never_an_exception(answer: bytes, act: Act) -> None:
    outcome = answered(answer, act)
    assert isinstance(outcome, Unavailable) or (isinstance(outcome, Accepted) and act is CALLS["work"])


def test_redirects_are_not_followed_so_the_token_does_not_leak(gateway: ReferenceGateway) -> None:
    outcome = answered(_http("307 Temporary", b"", f"Location: {gateway.url}/internal/results"), token=gateway.token)
    assert isinstance(outcome, Unavailable)
    assert outcome.kind is Kind.REDIRECTED
    assert gateway.state.requests == []


@pytest.mark.parametrize(
    "echo",
    [
        b"bad token secret-token!",
        b"x" * 495 + b" secret-token",
        b'{"error":{"code":"C","message":"you said \\u0073ecret-token"}}',
        b"<html><title>secret-token</title>",
    ],
)
@pytest.mark.parametrize("status", ["200 OK", "400 Bad", "401 No", "500 Oops"])
def test_a_token_that_the_other_side_echoes_is_taken_out(echo: bytes, status: str) -> None:
    shown = repr(answered(_http(status, echo)))
    assert "secret-t" not in shown
    assert "ecret-token" not in shown


def test_a_400_in_html_is_a_proxys_and_not_the_rows_fault() -> None:
    body = b"<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>"
    outcome = answered(_http("400 Bad Request", body, "Content-Type: text/html"))
    assert isinstance(outcome, Unavailable)
    assert outcome.kind is Kind.GARBAGE
    large = answered(_http("413 Too Large", b"<html><title>413</title></html>", "Content-Type: text/html"))
    assert isinstance(large, Refused)


def test_errors_in_a_results_reply_do_not_echo_the_token() -> None:
    body = b'{"inserted":0,"updated":0,"failed":1,"errors":["P-1: secret-token"]}'
    outcome = answered(_http("200 OK", body))
    assert isinstance(outcome, Accepted)
    assert outcome.reply.errors == ("P-1: [secret]",)


def test_a_connection_that_takes_too_long_is_down() -> None:
    """A full backlog: the connection is neither taken nor refused."""
    with socket.socket() as server, contextlib.ExitStack() as stack:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())

        async def act() -> Any:
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            async with GatewayClient(url, "t", "w", timeouts=Timeouts(connect=0.3)) as client:
                return await client.work(1, ["demo"])

        outcome = run(act())
    assert isinstance(outcome, Unavailable)
    assert outcome.kind is Kind.DOWN


def test_cancelling_a_call_cancels_it(gateway: ReferenceGateway) -> None:
    gateway.fault("hang")

    async def act() -> None:
        async with client_of(gateway) as client:
            call = asyncio.create_task(client.submit_results([item()]))
            async with asyncio.timeout(PATIENCE):
                while not gateway.state.requests:
                    await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    run(act())


CHAOS = ("down", "reset", "lost_reply", "half_json", "html", "401", "403", "429", "429-date", "500", "502", "503")


def test_with_every_fault_at_once_each_call_still_has_an_outcome(gateway: ReferenceGateway) -> None:
    for number, kind in enumerate((*CHAOS, "database_down")):
        gateway.fault(kind, probability=0.04, seed=number)
    gateway.enqueue(*(task(n, target={"parcel_id": f"P-{n}"}) for n in range(100)))

    async def act() -> list[Outcome[Any]]:
        async with client_of(gateway) as client:
            return [out for _ in range(60) for out in await asyncio.gather(*(act(client) for act in CALLS.values()))]

    outcomes = run(act())
    assert len(outcomes) == 360
    failed = [outcome for outcome in outcomes if isinstance(outcome, Unavailable)]
    assert 60 < len(failed) < 250
    assert not any(isinstance(outcome, Refused) for outcome in outcomes)
    assert {outcome.kind for outcome in failed} >= {Kind.RESET, Kind.GARBAGE, Kind.AUTH, Kind.RATE_LIMITED}


@pytest.mark.parametrize("endpoint", CALLS)
def test_every_failure_is_logged_with_the_id_that_the_gateway_has_in_its_log(
    gateway: ReferenceGateway, caplog: pytest.LogCaptureFixture, endpoint: str
) -> None:
    gateway.fault("503", count=1)
    with caplog.at_level("INFO"):
        outcome = unavailable(gateway, CALLS[endpoint])
    (request,) = gateway.state.requests
    assert outcome.request_id == request.request_id
    assert len(request.request_id) == 16
    (line,) = [record for record in caplog.records if record.name.startswith("lienworker.")]
    assert f"HTTP 503: service unavailable (request {request.request_id})" in line.message


def test_a_call_that_gets_no_answer_has_an_id_and_each_call_another(gateway: ReferenceGateway) -> None:
    gateway.fault("down")
    ids = {unavailable(gateway, CALLS["results"]).request_id for _ in range(3)}
    assert ids == {request.request_id for request in gateway.state.requests}
    assert len(ids) == 3


def test_results_that_were_not_stored_are_logged(gateway: ReferenceGateway, caplog: pytest.LogCaptureFixture) -> None:
    gateway.fault("parcels", names=["P-1"])
    with caplog.at_level("INFO"):
        outcome_of(gateway, lambda client: client.submit_results(items(3)))
    request_id = gateway.state.requests[0].request_id
    (line,) = [record.message for record in caplog.records if record.name.startswith("lienworker.")]
    assert line.startswith("results: 1 of 3 results were not stored: P-1: ERROR")
    assert line.endswith(f"(request {request_id})")
