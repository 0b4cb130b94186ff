"""A site that replays pages: each request must be one that was written down, in its order within the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Exchange:
    """A request and its reply. `sent` are fields of the form or of the JSON body that must have come along."""

    method: str
    path: str
    """With its query, where that matters."""
    reply: bytes | str | Callable[[], str]
    sent: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "text/html"
    moved_to: str = ""


class ReplaySite:
    """Replays exchanges to whoever makes the same requests; the first sets the session's cookie, all others want it."""

    def __init__(self, exchanges: Sequence[Exchange], *, lost: str = "<p>Your session has timed out.</p>") -> None:
        self.url = ""
        self.refused: list[str] = []
        self._exchanges = list(exchanges)
        self._lost = lost
        self._done = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/robots.txt", _robots)
        app.router.add_route("*", "/{rest:.*}", self._reply)
        return app

    @property
    def is_over(self) -> bool:
        return self._done == len(self._exchanges)

    async def _reply(self, request: web.Request) -> web.Response:
        if (self._done or not self._exchanges) and request.cookies.get("replayed") != "yes":
            return web.Response(text=self._lost, content_type="text/html")
        wanted = self._exchanges[self._done] if not self.is_over else None
        if wanted is None or (problem := await self._problem(request, wanted)):
            self.refused.append(f"{request.method} {request.path_qs}: {problem if wanted else 'nothing more is known'}")
            return web.Response(status=500, text="<h1>Server Error</h1>", content_type="text/html")
        self._done += 1
        said = wanted.reply() if callable(wanted.reply) else wanted.reply
        reply = web.Response(body=said.encode() if isinstance(said, str) else said, content_type=wanted.kind)
        if wanted.moved_to:
            reply = web.Response(status=302, headers={"Location": wanted.moved_to})
        reply.set_cookie("replayed", "yes")
        return reply

    async def _problem(self, request: web.Request, wanted: Exchange) -> str:
        asked = request.path_qs if "?" in wanted.path else request.path
        if (request.method, asked) != (wanted.method, wanted.path):
            return f"expected {wanted.method} {wanted.path}"
        sent = await (request.json() if request.content_type == "application/json" else request.post())
        wrong = [name for name, value in wanted.sent.items() if sent.get(name) != value]
        wrong += [name for name, value in wanted.headers.items() if request.headers.get(name) != value]
        return f"wrong {', '.join(wrong)}" if wrong else ""


async def _robots(request: web.Request) -> web.Response:
    raise web.HTTPNotFound
