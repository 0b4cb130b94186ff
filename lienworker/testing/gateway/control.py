"""The control routes under `/_control/`: no token, loopback only, no faults, and not in the request log.

POST   /_control/tasks         a task or a list of tasks to queue
POST   /_control/faults        {"kind": "503", "endpoint": "results", "count": 3, …} -> {"id"}
GET    /_control/faults        what is on
DELETE /_control/faults[/ID]   off: one, or all
POST   /_control/commands      {"commands": [...], "worker_id"?} for the next heartbeat (with `sends_commands`)
POST   /_control/settings      {"rate_limit": 10, "retry_without_tasks": 1, …}
POST   /_control/reset         forgets everything
GET    /_control/received      everything at once; or one part of it:
GET    /_control/received/requests | results | raw_files | raw_uploads | tasks | bookings | heartbeats | workers
GET    /_control/stored        what the real Gateway would have kept of it
GET    /_control/raw/NAME      the bytes of a raw file
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from lienworker.testing.gateway import decoding
from lienworker.testing.gateway.replies import json_reply, not_found, text_reply
from lienworker.testing.gateway.state import GatewayState

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def handler(state: GatewayState) -> Handler:
    """Return the handler of all control routes."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if not _from_here(request.remote):
            return text_reply(403, "control is for loopback only")
        try:
            return _control(state, request, await request.read())
        except (decoding.BadBodyError, ValueError, TypeError, KeyError, AttributeError) as problem:
            return text_reply(400, str(problem))

    return handle


def _from_here(address: str | None) -> bool:
    try:
        return address is not None and ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _control(state: GatewayState, request: web.BaseRequest, body: bytes) -> web.Response:
    _, _, what, *rest = request.path.split("/")
    if request.method == "GET":
        return _asked(state, what, rest)
    if request.method == "DELETE":
        return _deleted(state, what, rest)
    return _commanded(state, what, decoding.decode(body) if body else {})


def _commanded(state: GatewayState, what: str, body: Any) -> web.Response:
    match what:
        case "tasks":
            return json_reply({"task_ids": state.enqueue(*(body if isinstance(body, list) else [body]))})
        case "faults":
            return json_reply({"id": state.fault(**body)})
        case "commands":
            state.command(*body["commands"], worker_id=body.get("worker_id"))
        case "settings":
            state.configure(**body)
        case "reset":
            state.reset()
        case _:
            return not_found()
    return json_reply({"done": True})


def _deleted(state: GatewayState, what: str, rest: list[str]) -> web.Response:
    if what != "faults":
        return not_found()
    state.clear_faults(int(rest[0]) if rest else None)
    return json_reply({"done": True})


def _asked(state: GatewayState, what: str, rest: list[str]) -> web.Response:
    if what == "faults":
        return json_reply(state.faults)
    if what == "stored":
        return json_reply(state.stored)
    if what == "raw" and rest:
        return web.Response(body=state.raw_content(rest[0]))
    if what != "received":
        return not_found()
    if not rest:
        return json_reply({part: look(state) for part, look in _PARTS.items()})
    return json_reply(_PARTS[rest[0]](state))


def _results(state: GatewayState) -> list[dict[str, Any]]:
    return [
        {"key": key, "item": asdict(versions[-1].row), "history": [asdict(version) for version in versions]}
        for key, versions in state.history.items()
    ]


_PARTS: dict[str, Callable[[GatewayState], Any]] = {
    "requests": lambda state: [asdict(request) for request in state.requests],
    "results": _results,
    "raw_files": lambda state: {name: asdict(file) for name, file in state.raw_files.items()},
    "raw_uploads": lambda state: [asdict(file) for file in state.raw_uploads],
    "tasks": lambda state: {task_id: asdict(record) for task_id, record in state.tasks.items()},
    "bookings": lambda state: state.bookings,
    "heartbeats": lambda state: [asdict(beat) for beat in state.heartbeats],
    "workers": lambda state: state.workers,
}
