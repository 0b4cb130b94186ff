"""The routes of the Gateway, one function each."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp import web

from lienworker.testing.gateway import decoding
from lienworker.testing.gateway.decoding import BadBodyError
from lienworker.testing.gateway.forms import read_upload
from lienworker.testing.gateway.queue import PoisonedError
from lienworker.testing.gateway.replies import json_reply, text_reply
from lienworker.testing.gateway.state import GatewayState, Request
from lienworker.testing.gateway.storage import RawFile

Endpoint: TypeAlias = Callable[[GatewayState, web.BaseRequest, Request], Awaitable[web.Response]]

USUAL_CAPACITY = 10
LARGEST_CAPACITY = 100
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


async def health(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Says ok whatever the state of the database: it proves nothing about delivery."""
    return json_reply({"status": "ok"})


async def work(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    capacity = _capacity(request.query.get("capacity", ""))
    try:
        tasks = state.take_tasks(capacity, request.query.getall("platforms", []), entry.worker_id)
    except PoisonedError:
        return text_reply(500, "failed to get tasks")
    wait = state.settings.retry_with_tasks if tasks else state.settings.retry_without_tasks
    return json_reply({"tasks": tasks or None, "retry_after": wait})


def _capacity(text: str) -> int:
    """0, negative and unreadable mean 10; over 100 means 100."""
    number = int(text) if _INTEGER.fullmatch(text) else 0
    return min(number, LARGEST_CAPACITY) if number > 0 else USUAL_CAPACITY


async def results(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    try:
        rows = decoding.decode_results(await request.read())
    except BadBodyError as problem:
        return text_reply(400, str(problem))
    entry.items, entry.names = len(rows), tuple(row.task_id for row in rows)
    return json_reply(state.store_results(rows[: entry.stored_part], entry.worker_id).reply())


async def raw_files(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    try:
        name, content, metadata = read_upload(request.headers.get("Content-Type", ""), await request.read())
    except BadBodyError as problem:
        return text_reply(400, str(problem))
    entry.names = (name,)
    if state.raw_name_fails(name):
        return text_reply(500, "failed to store file")
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
    try:
        body = decoding.decode_heartbeat(await request.read())
    except BadBodyError as problem:
        return text_reply(400, str(problem))
    return json_reply({"acknowledged": True, "commands": state.beat(entry.worker_id, body) or None})


async def complete(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """`success` is false for an unknown task, a closed one and another worker's; never a 404."""
    return json_reply({"success": state.close_task(_task_id(request), "completed", entry.worker_id)})


async def fail(state: GatewayState, request: web.BaseRequest, entry: Request) -> web.Response:
    """Drops the task for good."""
    error = (await request.read()).decode("utf-8", "replace")
    success = state.close_task(_task_id(request), "failed", entry.worker_id, error)
    return json_reply({"status": "reported", "success": success})


def _task_id(request: web.BaseRequest) -> str:
    return request.rel_url.parts[3]
