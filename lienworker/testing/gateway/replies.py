"""Replies as the Gateway words them: 401 and raw files in JSON, other errors as plain text, 405 with nothing."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any

from aiohttp import web

from lienworker.testing.gateway.faults import Fault

_HTML = "<!doctype html><html><head><title>Welcome to the proxy</title></head><body><h1>It works</h1></body></html>"
_JSON = {"Content-Type": "application/json; charset=utf-8"}
_STATUS_TEXTS = {403: "forbidden", 500: "internal server error", 502: "bad gateway", 503: "service unavailable"}


def json_reply(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=json.dumps(value, separators=(",", ":")).encode("ascii"), status=status, headers=_JSON)


def text_reply(status: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(text=message + "\n", status=status, content_type="text/plain", headers=headers)


def error_reply(status: int, code: str, message: str) -> web.Response:
    return json_reply({"error": {"code": code, "message": message}}, status)


def unauthorized(*, is_missing: bool) -> web.Response:
    return error_reply(401, "UNAUTHORIZED", "missing worker token" if is_missing else "invalid worker token")


def not_found() -> web.Response:
    return text_reply(404, "404 page not found")


def method_not_allowed(allowed: str) -> web.Response:
    return web.Response(status=405, headers={"Allow": allowed})


def too_many(seconds: float, *, as_date: bool = False) -> web.Response:
    """Return a 429 with `Retry-After` in whole seconds or as a date, and the window's end as seconds since 1970."""
    end = time.time() + seconds
    wait = formatdate(end, usegmt=True) if as_date else str(math.ceil(seconds))
    headers = {"Retry-After": wait, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(math.ceil(end))}
    return text_reply(429, "rate limit exceeded", headers)


def reply_of(fault: Fault) -> web.Response:
    """Return the reply that a fault sends instead of doing the work."""
    if fault.kind == "html":
        return web.Response(text=_HTML, content_type="text/html")
    if fault.status == 401:
        return unauthorized(is_missing=False)
    return text_reply(fault.status, _STATUS_TEXTS.get(fault.status, "error"))


def half_of(reply: web.Response) -> web.Response:
    """Return half of the body, as if it were all of it."""
    body = bytes(reply.body) if isinstance(reply.body, bytes | bytearray) else b""
    return web.Response(body=body[: len(body) // 2], status=reply.status, content_type=reply.content_type)


def cut_off(request: web.BaseRequest, *, hard: bool = False) -> web.Response:
    """Close the connection; what is returned can no longer be sent. `hard`: with a reset instead of an end."""
    transport = request.transport
    if transport is not None:
        sock = transport.get_extra_info("socket")
        if hard and sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


async def break_in_the_middle(request: web.BaseRequest, reply: web.Response) -> web.Response:
    """Announce the whole reply, send half of it, and reset the connection."""
    body = bytes(reply.body) if isinstance(reply.body, bytes | bytearray) else b""
    broken = web.StreamResponse(status=reply.status, headers={"Content-Type": reply.content_type})
    broken.content_length = len(body) + 1  # an empty reply can be broken too
    await broken.prepare(request)
    await broken.write(body[: len(body) // 2])
    await asyncio.sleep(0.02)  # let it reach the other side: a reset overtakes what is still on its way
    return cut_off(request, hard=True)
