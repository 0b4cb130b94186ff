"""The API is what its description says, for requests of any shape."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode

from lienworker.data_folder import DataFolder
from lienworker.settings import Settings
from lienworker.web.app import make_app
from lienworker.web.guard import Guard
from lienworker.web.openapi import document
from lienworker.web.pages import Place
from tests.web.monitor import Monitor, monitor
from tests.web.seed import COMPLETED

pytestmark = pytest.mark.slow
#: Requests for each address; `make fuzz` asks for more.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))


def routes(tmp_path: Path) -> set[str]:
    app = make_app(Place(Settings(), DataFolder(tmp_path), False), Guard("127.0.0.1", "ticket"))
    found = {re.sub(r":\[0-9\]\{[^}]*\}", "", resource.canonical) for resource in app.router.resources()}
    return {path for path in found if path.startswith("/api/")}


def test_every_route_of_the_api_is_described_and_nothing_else(tmp_path: Path) -> None:
    assert set(document()["paths"]) == routes(tmp_path)


def test_the_description_is_served(here: Monitor) -> None:
    reply = here.ask("/api/openapi.json")
    assert reply.status == 200
    assert reply.json == document()


def test_any_request_is_answered_as_described(here: Monitor) -> None:
    """Wild queries and paths: a described answer in JSON, never a 500."""
    schema = schemathesis.openapi.from_dict(document())
    schema.config.update(base_url=here.url)
    for path in sorted(document()["paths"]):
        _try_out(schema[path]["GET"], here)
    assert here.is_there()


def _try_out(operation: Any, here: Monitor) -> None:
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )
    @hypothesis.given(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def try_it(case: Any) -> None:
        reply = case.call(headers=here.credentials)
        assert reply.status_code < 500, (case.as_curl_command(), reply.text)
        if reply.status_code in {200, 404}:
            case.validate_response(reply, checks=[schemathesis.checks.response_schema_conformance])

    try_it()


def talk(port: int, request: bytes) -> bytes:
    """The beginning of the answer; nothing where the server waits for the rest of half a request."""
    with socket.create_connection(("127.0.0.1", port), timeout=1.5) as line:
        try:
            line.sendall(request)
            return line.recv(65536)
        except (TimeoutError, ConnectionError):
            return b""


FORM = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
RAW = [
    b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: lienworker_monitor=\xff\r\n\r\n",
    b"GET /?said=%FF&seal=%FF HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/tasks/%ED%A0%80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /tasks/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /tasks?text=%ED%A0%80%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /imports/" + b"9" * 5000 + b"/rejects HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /imports/٣/rejects HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
    b"GET /outbox/" + "٣".encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /tasks/" + COMPLETED.encode() + b"/page?generation=" + b"9" * 30 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /act/tasks/retry HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab",
    FORM % (b"/act/tasks/retry", b"multipart/form-data", 2, b"ab"),
    FORM % (b"/login", b"application/x-www-form-urlencoded; charset=klingon", 7, b"token=a"),
    FORM % (b"/login", b"multipart/form-data; boundary=x", 3, b"--x"),
    FORM % (b"/login", b"multipart/form-data", 3, b"--x"),
    FORM % (b"/imports?csrf=0", b"multipart/form-data; boundary=x", 3, b"--x"),
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"DELETE /api/tasks HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
]


@pytest.mark.parametrize("is_known", [False, True])
def test_requests_against_the_rules_are_refused_and_harm_nobody(seeded: Any, is_known: bool) -> None:
    with monitor(seeded) as door:
        token = f"localhost\r\nAuthorization: Bearer {door.token}\r\n".encode()
        for request in RAW:
            answer = talk(door.port, request.replace(b"localhost\r\n", token) if is_known else request)
            assert not answer.startswith(b"HTTP/1.1 500"), (request[:120], answer[:600])
            assert door.is_there(), request[:120]
    assert "Traceback" not in door.output, door.output[-3000:]
