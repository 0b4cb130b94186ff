"""The reference Gateway, by plain HTTP: what holds for every route."""

from __future__ import annotations

import gzip
import json
import socket
import time
from email.utils import parsedate_to_datetime

import pytest

from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from tests.harness.gateway_calls import Caller, item

KNOWN = [
    ("GET", "/internal/work"),
    ("POST", "/internal/raw-files"),
    ("POST", "/internal/results"),
    ("POST", "/internal/tasks/t-1/complete"),
    ("POST", "/internal/tasks/t-1/fail"),
    ("POST", "/internal/heartbeat"),
]


@pytest.mark.parametrize(("method", "path"), KNOWN)
def test_every_internal_route_wants_the_token(call: Caller, method: str, path: str) -> None:
    reply = call.raw(method, path, headers={"X-Worker-ID": "worker-1"})
    assert reply.status == 401
    assert set(reply.json["error"]) == {"code", "message"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer {token}", "X-Worker-ID": "w"},
        {"X-Worker-Token": "wrong", "X-Worker-ID": "w"},
        {"X-Worker-Token": "{token}"},
    ],
    ids=["bearer", "wrong token", "no worker id"],
)
def test_nothing_but_both_headers_opens_the_door_of_a_strict_one(call: Caller, headers: dict[str, str]) -> None:
    call.gateway.configure(strict=True)
    sent = {name: value.format(token=call.gateway.token) for name, value in headers.items()}
    assert call.raw("GET", "/internal/work", headers=sent).status == 401


@pytest.mark.parametrize(("method", "path"), KNOWN)
def test_a_trailing_slash_is_not_found(call: Caller, method: str, path: str) -> None:
    reply = call.raw(method, path + "/", headers=call.headers)
    assert reply.status == 404
    assert reply.text == "404 page not found\n"


def test_an_unknown_path_is_404_in_text_with_a_token_and_401_in_json_without(call: Caller) -> None:
    assert call.get("/internal/nothing").status == 404
    assert call.get("/internal/nothing").text
    assert call.raw("GET", "/internal/nothing").json["error"]["code"]


@pytest.mark.parametrize(("method", "path"), KNOWN)
def test_a_wrong_method_is_405_and_empty(call: Caller, method: str, path: str) -> None:
    reply = call.raw({"GET": "POST", "POST": "GET"}[method], path, headers=call.headers)
    assert (reply.status, reply.body) == (405, b"")


def test_health_needs_no_token_and_is_fine_when_the_database_is_down(call: Caller) -> None:
    call.gateway.fault("database_down")
    reply = call.raw("GET", "/health")
    assert reply.status == 200
    assert reply.json == {"app": "gateway", "status": "healthy"}


@pytest.mark.parametrize("path", ["/internal/results", "/internal/heartbeat", "/internal/raw-files"])
def test_a_gzip_body_is_refused_with_400(call: Caller, path: str) -> None:
    body = gzip.compress(json.dumps([item()]).encode())
    reply = call.post(path, text=body, **{"Content-Encoding": "gzip"})
    assert reply.status == 400
    assert reply.body
    assert not call.gateway.state.results


def test_a_rate_limited_deployment_answers_429_and_says_when_to_come_back(call: Caller) -> None:
    call.gateway.configure(rate_limit=2, rate_window=30)
    first = call.get("/internal/work?platforms=demo")
    assert (first.headers["X-RateLimit-Limit"], first.headers["X-RateLimit-Remaining"]) == ("2", "1")
    call.get("/internal/work?platforms=demo")
    reply = call.get("/internal/work?platforms=demo")
    assert reply.status == 429
    assert reply.text
    assert 1 <= int(reply.headers["Retry-After"]) <= 30
    assert 0 <= int(reply.headers["X-RateLimit-Reset"]) - time.time() <= 32


def test_a_429_may_come_with_seconds_or_with_a_date(call: Caller) -> None:
    call.gateway.fault("429", seconds=7, count=1)
    call.gateway.fault("429-date", seconds=90, count=1)
    assert call.get("/internal/work").headers["Retry-After"] == "7"
    date = parsedate_to_datetime(call.get("/internal/work").headers["Retry-After"])
    assert 80 < date.timestamp() - time.time() <= 91


def test_stopping_refuses_connections_and_starting_again_has_the_same_port_and_memory() -> None:
    with reference_gateway() as gateway:
        call = Caller(gateway)
        call.post("/internal/results", [item()])
        gateway.stop_listening()
        with pytest.raises(ConnectionRefusedError):
            call.get("/health")
        gateway.start_listening()
        assert call.get("/health").status == 200
        assert len(gateway.state.results) == 1


def test_stopping_breaks_the_connections_that_are_open() -> None:
    with reference_gateway() as gateway, socket.create_connection(("127.0.0.1", gateway.port), timeout=5) as open_one:
        open_one.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert open_one.recv(1000).startswith(b"HTTP/1.1 200")
        gateway.stop_listening()
        assert open_one.recv(1000) == b""


def test_the_port_stays_taken_while_the_gateway_is_stopped() -> None:
    with (
        reference_gateway(listening=False) as gateway,
        socket.socket() as rival,
        pytest.raises(OSError, match="in use"),
    ):
        rival.bind(("127.0.0.1", gateway.port))


def test_a_hundred_stops_and_starts_never_lose_the_port(gateway: ReferenceGateway) -> None:
    call = Caller(gateway)
    for _ in range(100):
        gateway.stop_listening()
        gateway.start_listening()
    assert call.get("/health").status == 200
