"""The reference Gateway on aiohttp's bare server.

Applications and routers are left out: they would decode a task id, be friendly about slashes, word their own errors,
and take time.
A request goes through, in this order: faults, token, rate limit, route, method, encoding, the work, faults again.
"""

from __future__ import annotations

import asyncio
import hmac
import math

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage

from lienworker.testing.gateway import control, endpoints, replies
from lienworker.testing.gateway.endpoints import Endpoint
from lienworker.testing.gateway.faults import AFTERWARDS, INSTEAD, MIDWAY, Fault
from lienworker.testing.gateway.state import GatewayState, Request

LARGEST_BODY = 256 * 1024 * 1024
_ROUTES: dict[str, tuple[str, str, Endpoint]] = {
    "/health": ("health", "GET", endpoints.health),
    "/metrics": ("metrics", "GET", endpoints.metrics),
    "/internal/work": ("work", "GET", endpoints.work),
    "/internal/raw-files": ("raw", "POST", endpoints.raw_files),
    "/internal/results": ("results", "POST", endpoints.results),
    "/internal/heartbeat": ("heartbeat", "POST", endpoints.heartbeat),
}
_TASK_VERBS: dict[str, Endpoint] = {"complete": endpoints.complete, "fail": endpoints.fail}


def make_server(state: GatewayState) -> web.Server:
    """Return the server; one state may serve several in turn (a Gateway that stops and starts again)."""
    gateway, controls = _Gateway(state).handle, control.handler(state)

    async def everything(request: web.BaseRequest) -> web.StreamResponse:
        is_control = request.rel_url.raw_path.startswith("/_control/")
        return await (controls if is_control else gateway)(request)

    return web.Server(everything, request_factory=_request, access_log=None)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY)


def _route(path: str) -> tuple[str, str, Endpoint] | None:
    """Return name, method and function of a path; a task id may be empty, and one with a slash fits no route."""
    if path in _ROUTES:
        return _ROUTES[path]
    parts = path.split("/")
    if len(parts) == 5 and parts[:3] == ["", "internal", "tasks"]:
        verb = _TASK_VERBS.get(parts[4])
        return (parts[4], "POST", verb) if verb else None
    return None


class _Gateway:
    def __init__(self, state: GatewayState) -> None:
        self._state = state

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        route = _route(endpoints.matched_path(request))
        name = route[0] if route else "other"
        entry = self._state.arrive(request.method, path, query, name, request.headers)
        try:
            reply = await self._reply(request, entry, route)
        except ConnectionError:  # the client left in the middle of its request
            self._state.finish(entry, None)
            return web.Response()
        if entry.fault != "html":  # that one is a proxy's
            reply.headers["X-Request-Id"] = entry.request_id
        return reply

    async def _reply(
        self, request: web.BaseRequest, entry: Request, route: tuple[str, str, Endpoint] | None
    ) -> web.StreamResponse:
        if fault := self._state.strike(entry.endpoint, INSTEAD):
            return await self._instead(request, entry, fault)
        if fault := self._state.strike(entry.endpoint, {MIDWAY}):
            return await self._midway(request, entry, route, fault)
        reply = await self._answer(request, entry, route)
        if late := self._state.strike(entry.endpoint, {"slow"}):  # the work is done: a client that gives up has stored
            entry.fault = late.kind
            await asyncio.sleep(late.seconds)
        if fault := self._state.strike(entry.endpoint, AFTERWARDS):
            return await self._afterwards(request, entry, reply, fault)
        self._state.finish(entry, reply.status)
        return reply

    async def _answer(
        self, request: web.BaseRequest, entry: Request, route: tuple[str, str, Endpoint] | None
    ) -> web.Response:
        if entry.path.startswith("/internal/") and not self._knows(request):
            return replies.unauthorized(is_missing="X-Worker-Token" not in request.headers)
        limit = self._state.count_against_limit()
        if limit and limit[0] < 0:
            reply = await self._too_many(request, entry, max(limit[1] - entry.time, 0.0))
        else:
            reply = await self._work(request, entry, route)
        if limit:
            reply.headers["X-RateLimit-Limit"] = str(self._state.settings.rate_limit)
            reply.headers["X-RateLimit-Remaining"] = str(max(limit[0], 0))
            reply.headers["X-RateLimit-Reset"] = str(math.ceil(limit[1]))
        return reply

    async def _work(
        self, request: web.BaseRequest, entry: Request, route: tuple[str, str, Endpoint] | None
    ) -> web.Response:
        if route is None:
            return replies.not_found()
        _, method, endpoint = route
        if request.method != method:
            return replies.method_not_allowed(method)
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            # Packed bytes are no JSON and no form.
            is_raw = entry.endpoint == "raw"
            bad_form = replies.error_reply(400, "BAD_REQUEST", "failed to parse multipart form")
            return bad_form if is_raw else replies.text_reply(400, "invalid JSON")
        return await endpoint(self._state, request, entry)

    def _knows(self, request: web.BaseRequest) -> bool:
        """Say whether the token is one of the list; a bearer token does not count."""
        given = request.headers.get("X-Worker-Token", "").encode("utf-8", "surrogateescape")
        tokens = (self._state.token, *self._state.settings.other_tokens)
        is_known = any(hmac.compare_digest(given, token.encode()) for token in tokens)
        return is_known and (not self._state.settings.strict or bool(request.headers.get("X-Worker-ID")))

    async def _instead(self, request: web.BaseRequest, entry: Request, fault: Fault) -> web.Response:
        entry.fault = fault.kind
        if fault.kind == "hang":
            await self._hang(request, fault)
        if fault.kind in {"hang", "down"}:
            return self._cut_off(request, entry)
        await request.read()
        limited = fault.kind == "rate_limited"
        reply = (
            await self._too_many(request, entry, fault.seconds, fault.as_date) if limited else replies.reply_of(fault)
        )
        self._state.finish(entry, reply.status)
        return reply

    async def _too_many(
        self, request: web.BaseRequest, entry: Request, seconds: float, as_date: bool = False
    ) -> web.Response:
        entry.names = await endpoints.names_in(request, entry.endpoint)
        entry.retry_after = max(0.0, seconds - 1) if as_date else seconds  # dates have whole seconds
        return replies.too_many(seconds, as_date=as_date)

    async def _midway(
        self, request: web.BaseRequest, entry: Request, route: tuple[str, str, Endpoint] | None, fault: Fault
    ) -> web.Response:
        entry.fault, entry.stored_part = fault.kind, fault.items
        await self._answer(request, entry, route)  # and nobody gets to read it
        if fault.kind == "hang":
            await self._hang(request, fault)
        return self._cut_off(request, entry)

    async def _hang(self, request: web.BaseRequest, fault: Fault) -> None:
        # A fault with a count is off as soon as it has struck for the last time, but this call hangs all the same.
        counted = fault.count is not None
        while request.transport is not None and (counted or self._state.is_on(fault)):
            await asyncio.sleep(0.05)

    async def _afterwards(
        self, request: web.BaseRequest, entry: Request, reply: web.Response, fault: Fault
    ) -> web.Response:
        entry.fault = fault.kind
        if fault.kind == "half_json":
            self._state.finish(entry, reply.status)
            return replies.half_of(reply)
        if fault.kind == "reset":
            self._state.finish(entry, None)
            return await replies.break_in_the_middle(request, reply)
        return self._cut_off(request, entry)

    def _cut_off(self, request: web.BaseRequest, entry: Request) -> web.Response:
        self._state.finish(entry, None)
        return replies.cut_off(request)
