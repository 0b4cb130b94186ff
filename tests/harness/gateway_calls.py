"""Plain HTTP to a reference Gateway, without the client that is under test elsewhere."""

from __future__ import annotations

import asyncio
import http.client
import json
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any, TypeVar

from lienworker.hubs.gateway.client import GatewayClient, Timeouts
from lienworker.testing.gateway import ReferenceGateway

T = TypeVar("T")
QUICK = Timeouts(connect=20, work=20, raw=20, results=20, task=20, heartbeat=20, health=20, idle=20)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers.get_content_type() == "application/json", self.body
        return json.loads(self.body)

    @property
    def text(self) -> str:
        assert self.headers.get_content_type() == "text/plain", self.body
        return self.body.decode()


class Caller:
    """Calls a reference Gateway as a worker would."""

    def __init__(self, gateway: ReferenceGateway, worker_id: str = "worker-1") -> None:
        self.gateway = gateway
        self.headers = {"X-Worker-Token": gateway.token, "X-Worker-ID": worker_id}

    def raw(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        """With exactly these headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.raw("GET", path, None, {**self.headers, **headers})

    def post(self, path: str, value: Any = None, *, text: bytes | None = None, **headers: str) -> Reply:
        body = json.dumps(value).encode() if text is None else text
        return self.raw("POST", path, body, {**self.headers, "Content-Type": "application/json", **headers})

    def work(self, *platforms: str, capacity: Any = 10) -> Any:
        query = "&".join([f"capacity={capacity}", *(f"platforms={name}" for name in platforms)])
        return self.get(f"/internal/work?{query}").json

    def upload(self, name: str | None, content: bytes, metadata: str | None = '{"a":1}') -> Reply:
        """A multipart upload; None leaves a part out."""
        boundary = uuid.uuid4().hex
        parts = []
        if name is not None:
            head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
            parts.append(head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + content)
        if metadata is not None:
            parts.append(f'Content-Disposition: form-data; name="metadata"\r\n\r\n{metadata}'.encode())
        mark = f"--{boundary}".encode()
        body = b"".join(mark + b"\r\n" + part + b"\r\n" for part in parts) + mark + b"--\r\n"
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return self.raw("POST", "/internal/raw-files", body, {**self.headers, **kind})


def item(parcel_id: Any = "P-1", **changes: Any) -> dict[str, Any]:
    """A result item that the Gateway takes, unless changed."""
    base = {
        "task_id": f"task-{parcel_id}",
        "parcel_id": parcel_id,
        "platform": "demo",
        "state": "FL",
        "county": "Juniper",
        "data": {"owner": "Ann"},
        "scraped_at": "2026-01-02T03:04:05Z",
        "parse_duration_ms": 12,
    }
    return {**base, **changes}


def items(n: int) -> list[dict[str, Any]]:
    return [item(f"P-{number}") for number in range(n)]


def task(n: int = 1, platform: str = "demo", priority: int = 3, **changes: Any) -> dict[str, Any]:
    """A task to queue, as it goes over the wire."""
    place = {"parcel_id": f"P-{n}", "state": "FL", "county": "Juniper", "url": f"http://county.example/{n}"}
    base = {"task_id": f"t-{n}", "type": "scrape_parcel", "platform": platform, "target": place, "priority": priority}
    return {**base, "created_at": "2026-01-02T03:04:05Z", **changes}


def client_of(gateway: ReferenceGateway, **options: Any) -> GatewayClient:
    chosen = {"timeouts": QUICK, **options}
    return GatewayClient(gateway.url, gateway.token, "worker-1", **chosen)
