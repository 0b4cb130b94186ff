"""The routes of the Gateway, one function each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import quote, unquote_to_bytes

from aiohttp import web

from lienworker.testing.gateway import decoding
from lienworker.testing.gateway.decoding import BadBodyError
from lienworker.testing.gateway.forms import read_upload
from lienworker.testing.gateway.queue import PoisonedError
from lienworker.testing.gateway.replies import error_reply, json_reply, text_reply
from lienworker.testing.gateway.state import GatewayState, RedisDownError, Request
from lienworker.testing.gateway.storage import RawFile

Endpoint: TypeAlias = Callable[[GatewayState, web.BaseRequest, Request], Awaitable[web.Response]]

USUAL_CAPACITY = 10
LARGEST_CAPACITY = 100
_GO_PATH = "/$&+,:;=@"  # besides letters, digits and -._~
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


async def health(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Say healthy whatever the state of database and queue: it proves nothing about delivery."""
    return json_reply({"app": "gateway", "status": "healthy"})


async def metrics(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Return a figure for Prometheus, to anybody."""
    return text_reply(200, f"gateway_http_requests_total {len(state.requests)}")


async def work(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Hand out tasks; they are booked under the worker's id, whether or not the reply arrives."""
    capacity = _capacity(request.query.get("capacity", ""))
    try:
        tasks = state.take_tasks(capacity, request.query.getall("platforms", []), entry.worker_id)
    except (PoisonedError, RedisDownError):
        return text_reply(500, "failed to get tasks")
    wait = state.settings.retry_with_tasks if tasks else state.settings.retry_without_tasks
    return json_reply({"tasks": tasks or None, "retry_after": wait})


def _capacity(text: str) -> int:
    """Return the number; 0, negative and unreadable mean 10, over 100 means 100."""
    number = int(text) if _INTEGER.fullmatch(text) else 0
    return min(number, LARGEST_CAPACITY) if number > 0 else USUAL_CAPACITY


async def results(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Store results and close their tasks."""
    try:
        rows = decoding.decode_results(await request.read(), strict=state.settings.strict)
    except BadBodyError as problem:
        return text_reply(400, str(problem))
    entry.items, entry.names = len(rows), tuple(row.task_id for row in rows)
    counts = state.store_results(rows[: entry.stored_part], entry.worker_id)
    await asyncio.sleep(state.redis_delay())
    return json_reply(counts.reply())


async def raw_files(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Store a file by its base name; errors are JSON here."""
    try:
        name, content, metadata = read_upload(
            request.headers.get("Content-Type", ""), await request.read(), strict=state.settings.strict
        )
    except BadBodyError as problem:
        return error_reply(400, "BAD_REQUEST", str(problem))
    entry.names = (name,)
    if state.raw_name_fails(name):
        return error_reply(500, "INTERNAL_ERROR", "failed to store file")
    stored = state.store_raw(name, content, metadata, entry.worker_id)
    if isinstance(stored, RawFile):
        return json_reply({"status": "ok", "path": f"raw/{stored.name}"})
    return json_reply({"status": "error", "message": stored})


async def names_in(request: web.BaseRequest, endpoint: str) -> tuple[str, ...]:
    """Return what a call brought that is turned away unread; nothing where it cannot be read."""
    body = await request.read()
    try:
        if endpoint == "raw":
            return read_upload(request.headers.get("Content-Type", ""), body)[:1]
        return tuple(row.task_id for row in decoding.decode_results(body)) if endpoint == "results" else ()
    except BadBodyError:
        return ()


async def heartbeat(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Note that a worker lives. The real one never has a command for it."""
    try:
        body = decoding.decode_heartbeat(await request.read())
    except BadBodyError as problem:
        return text_reply(400, str(problem))
    return json_reply({"acknowledged": True, "commands": state.beat(entry.worker_id, body) or None})


async def complete(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Close a task; `success` is false for an unknown one, a closed one and another worker's; never a 404."""
    success = await _closed(state, request, entry, "completed")
    return text_reply(500, "failed to close task") if success is None else json_reply({"success": success})


async def fail(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Drop a task for good."""
    error = (await request.read()).decode("utf-8", "replace")
    success = await _closed(state, request, entry, "failed", error)
    if success is None:
        return text_reply(500, "failed to close task")
    return json_reply({"status": "reported", "success": success})


async def _closed(
    state: GatewayState, request: web.BaseRequest, entry: Request, outcome: str, error: str = ""
) -> bool | None:
    try:
        success = state.close_task(matched_path(request).split("/")[3], outcome, entry.worker_id, error)
    except RedisDownError:
        return None
    await asyncio.sleep(state.redis_delay())
    return success


def matched_path(request: web.BaseRequest) -> str:
    """Return the path that routes and task ids are read from: as it was sent, unless that is how Go would write it.

    Go keeps the raw form beside the decoded one only where encoding the decoded one again yields something else, and
    the router prefers the raw form. So `a%20b` is `a b`, and `fl%3A1` stays `fl%3A1`.
    """
    raw = request.raw_path.partition("?")[0]
    decoded = unquote_to_bytes(raw)
    return decoded.decode("utf-8", "surrogateescape") if quote(decoded, safe=_GO_PATH) == raw else raw
