"""Every route of the monitor, and running it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
from importlib import resources

from aiohttp import web

from lienworker.lifeline import LIFELINE_FD, watch_supervisor
from lienworker.reports.health import readiness
from lienworker.store.database import close
from lienworker.web import (
    actions,
    counties,
    imports,
    metrics,
    openapi,
    outbox,
    overview,
    rawpage,
    records,
    results,
    tasks,
)
from lienworker.web.guard import Guard
from lienworker.web.live import Live
from lienworker.web.names import Names
from lienworker.web.pages import Page, Place, Question, View
from lienworker.web.server import ACTION_SECONDS, Server, StrangersInWords, form_of, question_of

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
    "/imports": imports.imports,
    "/audit": records.audit,
}
_STATIC = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
_BODY_BYTES = 1_000_000
#: Pause before a taken port is tried again, s.
_TAKEN_SECONDS = 10.0

logger = logging.getLogger(__name__)


def make_app(place: Place, guard: Guard) -> web.Application:
    server, live = Server(place, guard), Live()
    app = web.Application(middlewares=[server.middleware], client_max_size=_BODY_BYTES)  # type: ignore[list-item]
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

    async def healthz(_request: web.Request) -> web.StreamResponse:
        return web.Response(text="alive\n")

    async def readyz(_request: web.Request) -> web.StreamResponse:
        verdict = await server.call(readiness, server.place.folder)
        return web.Response(text=verdict.words + "\n", status=200 if verdict.level == "good" else 503)

    async def prometheus(_request: web.Request) -> web.StreamResponse:
        text = await server.call(metrics.metrics, server.place, names)
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", prometheus)


def _add_actions(server: Server, app: web.Application) -> None:
    under_way: set[asyncio.Task[tuple[str, str] | Page]] = set()

    async def ask(request: web.Request) -> web.StreamResponse:
        return server.html(await server.call(actions.confirm, server.place, question_of(request)))

    async def act(request: web.Request) -> web.StreamResponse:
        """A long action goes on by itself; the audit tells how it went."""
        question = Question(dict(request.match_info), await form_of(request))
        doing = asyncio.create_task(server.call(actions.perform, server.place, question))
        under_way.add(doing)
        doing.add_done_callback(under_way.discard)
        await asyncio.wait({doing}, timeout=ACTION_SECONDS)
        if not doing.done():
            return server.message("Under way", "It is being done, in pieces; the audit shows how far it is.", 202)
        done = doing.result()
        if isinstance(done, Page):
            return server.html(done, 409)
        return web.Response(status=303, headers={"Location": server.saying(*done)})

    app.router.add_get("/act/{kind}/{verb}", ask)
    app.router.add_post("/act/{kind}/{verb}", act)


async def _listen(runner: web.AppRunner, host: str, port: int, stopped: asyncio.Event) -> bool:
    """By hand a taken port is an error. As a part of the stack it is waited for: the rest must not suffer from it.

    False where it was stopped before it could listen.
    """
    while not stopped.is_set():
        try:
            await web.TCPSite(runner, host, port).start()
            return True
        except OSError as problem:
            if LIFELINE_FD not in os.environ:
                raise
            logger.warning("the monitor cannot listen on %s port %d yet: %s", host, port, problem.strerror)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _TAKEN_SECONDS)
    return False


async def serve(place: Place, guard: Guard, port: int, on_ready: Callable[[], None]) -> None:
    """Runs until it is told to stop; says when it can be asked."""
    logging.getLogger("aiohttp.server").addFilter(StrangersInWords())
    runner = web.AppRunner(make_app(place, guard), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stopped.set)

    def stop_soon() -> None:
        loop.call_soon_threadsafe(stopped.set)

    watch_supervisor(stop_soon)
    try:
        if await _listen(runner, guard.host, port, stopped):
            on_ready()
            logger.info("the monitor listens on %s port %d", guard.host, port, extra={"action": "web"})
        await stopped.wait()
    finally:
        await runner.cleanup()
        close()
