"""Every route of the monitor, and running it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterable
from importlib import resources

from aiohttp import web

from lienworker.db.database import close
from lienworker.parent_watch import LIFELINE_FD, watch_supervisor
from lienworker.queries.health import Health, judge
from lienworker.queries.snapshot import facts_of
from lienworker.web import (
    actions,
    counties,
    hosts,
    imports,
    metrics,
    openapi,
    outbox,
    overview,
    rawpage,
    results,
    search,
    tasks,
)
from lienworker.web.door import AcceptErrorHandler, Door, listen
from lienworker.web.forms import fields_of
from lienworker.web.guard import Guard
from lienworker.web.live import Live
from lienworker.web.names import Names
from lienworker.web.pages import Page, Place, Question, View
from lienworker.web.server import ACTION_SECONDS, RECOGNIZED, BadRequestFilter, Server, paths_of

#: For people, and under /api for machines.
VIEWS: dict[str, View] = {
    "/": overview.overview,
    "/tasks": tasks.task_list,
    "/tasks/{task_id}": tasks.task_story,
    "/results": results.results,
    "/outbox": outbox.outbox,
    r"/outbox/{row_id:[0-9]{1,18}}": outbox.outbox_row,
    "/counties": counties.counties,
    "/county": counties.county,
    "/hosts": hosts.hosts,
    "/imports": imports.imports,
    r"/imports/{import_id:[0-9]{1,18}}": imports.one_import,
    "/audit": actions.audit,
    "/search": search.search,
    "/refusals": overview.refusals_of,
}
_STATIC = {
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(("idiomorph.js", "times.js", "live.js", "stream.js", "drop.js", "search.js"), "text/javascript"),
}
#: An idle connection of an authenticated visitor is closed after this many seconds, with half a request or none on it.
_IDLE_SECONDS = 75.0
#: How long a response waits for the rest of a body that nobody wanted, s.
_LINGER_SECONDS = 2.0
#: Bytes of a body that is not read yet, in memory for each connection.
_BUFFER_BYTES = 16 * 1024
#: How old an answer of /readyz may be, s: it is open to all, and costs a query.
_READY_SECONDS = 1.0
#: Pause before a port in use is tried again, s.
_TAKEN_SECONDS = 10.0

logger = logging.getLogger(__name__)
DOOR = web.AppKey("door", Door)


def make_app(place: Place, guard: Guard) -> web.Application:
    server, live = Server(place, guard), Live()
    app = web.Application(middlewares=[server.middleware])  # type: ignore[list-item]
    for path, view in VIEWS.items():
        app.router.add_get("/api/overview" if path == "/" else f"/api{path}", server.tell(view))
        app.router.add_get(path, server.show(view))
    app.router.add_get("/events", live.stream)
    app.router.add_post("/login", server.login)
    _add_static(app)
    _add_machines(server, app)
    _add_actions(server, app)
    rawpage.add_routes(server, app)
    results.add_routes(server, app)
    imports.add_routes(server, app)
    openapi.add_routes(app)
    server.known_paths = paths_of(app)
    app[DOOR] = server.door

    async def stop(_app: web.Application) -> None:
        await live.stop()
        server.stop()

    app.on_cleanup.append(stop)
    return app


def _add_static(app: web.Application) -> None:
    folder = resources.files("lienworker.web") / "static"
    contents = {name: (folder / name).read_bytes() for name in _STATIC}

    async def static(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in contents:
            raise web.HTTPNotFound
        return web.Response(
            body=contents[name], content_type=_STATIC[name], headers={"Cache-Control": "private, max-age=60"}
        )

    app.router.add_get("/static/{name}", static)


def _add_machines(server: Server, app: web.Application) -> None:
    names = Names(may_write=not server.place.read_only)
    ready = Ready(server)

    async def healthz(_request: web.Request) -> web.StreamResponse:
        return web.Response(text="alive\n")

    async def readyz(request: web.Request) -> web.StreamResponse:
        verdict = await ready.verdict()
        # It is open to all: counties and hosts are named only to those who have the token.
        text = f"{verdict.level}: {verdict.words}\n" if request[RECOGNIZED] else f"{verdict.level}\n"
        return web.Response(text=text, status=503 if verdict.level == "bad" else 200)

    async def prometheus(_request: web.Request) -> web.StreamResponse:
        text = await server.call(metrics.metrics, server.place, names)
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", prometheus)


class Ready:
    """The verdict for machines, the same that the overview shows: one look a second, however many ask."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._turn = asyncio.Lock()
        self._last: tuple[float, Health] | None = None

    async def verdict(self) -> Health:
        async with self._turn:
            now = asyncio.get_running_loop().time()
            if self._last is None or now - self._last[0] > _READY_SECONDS:
                self._last = now, await self._server.call(_verdict, self._server.place)
            return self._last[1]


def _verdict(place: Place) -> Health:
    return judge(place.settings, facts_of(place.settings, place.folder))


def _add_actions(server: Server, app: web.Application) -> None:
    under_way: set[asyncio.Task[tuple[str, str] | Page]] = set()

    def asked(request: web.Request, fields: Iterable[tuple[str, str]]) -> Question:
        """Return what to do, and what to show then: `back` is a page of ours, whatever the visitor wrote."""
        given = list(fields)
        values = dict(given)
        chosen = tuple(value for name, value in given if name == "id")
        return Question(dict(request.match_info), {**values, "back": server.own_path(values.get("back", "/"))}, chosen)

    async def ask(request: web.Request) -> web.StreamResponse:
        return server.html(await server.call(actions.confirm, server.place, asked(request, request.query.items())))

    async def act(request: web.Request) -> web.StreamResponse:
        """Do the action; a long one continues in the background, and the audit shows its outcome."""
        question = asked(request, await fields_of(request))
        doing = asyncio.create_task(server.call(actions.perform, server.place, question))
        under_way.add(doing)
        doing.add_done_callback(under_way.discard)
        await asyncio.wait({doing}, timeout=ACTION_SECONDS)
        if not doing.done():
            return server.message("In progress", "It is being done in steps; the audit shows how far it is.", 202)
        done = doing.result()
        if isinstance(done, Page):
            return server.html(done, 409)
        return web.Response(status=303, headers={"Location": server.saying(*done)})

    app.router.add_get("/act/{kind}/{verb}", ask)
    app.router.add_post("/act/{kind}/{verb}", act)


async def _listen(runner: web.AppRunner, host: str, port: int, stopped: asyncio.Event) -> asyncio.Server | None:
    """Listen on the port; a port in use is an error by hand, and is waited for as part of the stack.

    The rest of the stack must not suffer from it. Return None where it was stopped before it could listen.
    """
    door, server = runner.app[DOOR], runner.server
    assert server is not None
    while not stopped.is_set():
        try:
            return await listen(door, server, host, port)
        except OSError as problem:
            if LIFELINE_FD not in os.environ:
                raise
            logger.warning("the monitor cannot listen on %s port %d yet: %s", host, port, problem.strerror)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _TAKEN_SECONDS)
    return None


async def serve(place: Place, guard: Guard, port: int, on_ready: Callable[[], None]) -> None:
    """Run until told to stop; call `on_ready` when it answers."""
    logging.getLogger("aiohttp.server").addFilter(BadRequestFilter())
    runner = web.AppRunner(
        make_app(place, guard),
        access_log=None,  # addresses contain the token, once
        shutdown_timeout=1.0,
        keepalive_timeout=_IDLE_SECONDS,
        lingering_time=_LINGER_SECONDS,
        read_bufsize=_BUFFER_BYTES,
        auto_decompress=False,  # none of our forms are compressed, and a compressed one may be a bomb
    )
    await runner.setup()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(AcceptErrorHandler())
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stopped.set)

    def stop_soon() -> None:
        loop.call_soon_threadsafe(stopped.set)

    watch_supervisor(stop_soon)
    listening = None
    try:
        listening = await _listen(runner, guard.host, port, stopped)
        if listening:
            on_ready()
            logger.info("the monitor listens on %s port %d", guard.host, port, extra={"action": "web"})
        await stopped.wait()
    finally:
        if listening:
            listening.close()
        await runner.cleanup()
        close()
