"""What the county sites share: the sessions of their visitors, which end on demand, and a log of what arrives.

The secret of a session (a cookie, a token) is made here and kept in `secrets`, so that a test can search everything
that a worker wrote for it. The log names a session by its number, never by its secret.
"""

from __future__ import annotations

import secrets
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from lienworker.testing.county.pages import parcel_id


@dataclass(frozen=True)
class Arrival:
    """One request as it reached the site; `session` is 0 for a visitor without one."""

    at: float
    """Monotonic seconds."""
    host: str
    path: str
    """With its query."""
    session: int


@dataclass
class Visit:
    """The session of one visitor, on the site's side."""

    number: int
    secret: str
    parcels: int = 0
    """How many parcels were asked for in it."""
    held: dict[str, Any] = field(default_factory=dict)
    """What the site remembers of this visitor: forms, lists, the bound date."""


class SessionSite(ABC):
    """A site whose pages belong to sessions. Subclasses have the pages; `app` adds the log around them."""

    kind: str
    """The platform whose pages these are."""
    flow: str = ""
    """Its own flow in TOML, where the platform's does not do."""

    def __init__(self, *, end_every: int = 0) -> None:
        """With `end_every`, a session is good for so many parcels and ends in the middle of the next one."""
        self.url = ""
        self.end_every = end_every
        self.secrets: set[str] = set()
        self._visits: dict[str, Visit] = {}
        self._opened = 0
        self._arrivals: list[Arrival] = []
        self._lock = threading.Lock()

    @property
    def arrivals(self) -> list[Arrival]:
        """Every request that arrived, in order."""
        with self._lock:
            return list(self._arrivals)

    @property
    def sessions_opened(self) -> int:
        with self._lock:
            return self._opened

    def gaps(self) -> list[float]:
        """The seconds between each two requests that followed each other."""
        return [second.at - first.at for first, second in pairwise(self.arrivals)]

    def end_sessions(self) -> None:
        """End every session now: whoever has one is a stranger again."""
        with self._lock:
            self._visits.clear()

    def rows(self, n: int, start: int = 1) -> list[dict[str, str]]:
        """Rows for an import: `n` parcels by their ids."""
        return [self._row(parcel_id(number)) for number in range(start, start + n)]

    @property
    def name(self) -> str:
        """The platform that `definition` defines."""
        return f"juniper_{self.kind}"

    def definition(self, delay: float) -> str:
        """Return a definition of this site's platform, with another delay: the site is ours to hurry."""
        settings = "\n".join(f'{name} = "{value}"' for name, value in self.settings().items())
        return f'name = "{self.name}"\nextends = "{self.kind}"\ndelay = {delay}\n[settings]\n{settings}\n{self.flow}'

    def settings(self) -> dict[str, str]:
        """Return the settings of the site's own platform."""
        return {"base_url": self.url}

    def work(self, n: int) -> list[dict[str, str]]:
        """Rows for an import by the site's own platform, for `n` parcels."""
        known = self.settings()
        return [
            {name: value for name, value in row.items() if name not in known} | {"platform": self.name}
            for row in self.rows(n)
        ]

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._record])
        app.router.add_get("/robots.txt", _robots)
        self.add_routes(app.router)
        return app

    @abstractmethod
    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the site's pages."""

    @abstractmethod
    def secret_of(self, request: web.Request) -> str:
        """Return what the visitor shows as the sign of its session; an empty text for nothing."""

    def visit_of(self, request: web.Request) -> Visit | None:
        with self._lock:
            return self._visits.get(self.secret_of(request))

    def open_visit(self) -> Visit:
        with self._lock:
            self._opened += 1
            visit = Visit(self._opened, self.new_secret())
            self._visits[visit.secret] = visit
            return visit

    def new_secret(self) -> str:
        """Return a secret that no log, file, page or process list may ever show."""
        secret = secrets.token_hex(16)
        self.secrets.add(secret)
        return secret

    def count_parcels(self, visit: Visit, n: int = 1) -> None:
        """Count what was asked for; one too many ends the session, after this reply and before the next."""
        with self._lock:
            visit.parcels += n
            if self.end_every and visit.parcels > self.end_every:
                self._visits.pop(visit.secret, None)

    def _row(self, wanted: str) -> dict[str, str]:
        place = {"platform": self.kind, "state": "XX", "county": "Juniper", "parcel_id": wanted}
        return place | self.settings()

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        visit = self.visit_of(request)
        arrival = Arrival(time.monotonic(), request.host, request.path_qs, visit.number if visit else 0)
        with self._lock:
            self._arrivals.append(arrival)
        return await handler(request)


async def _robots(request: web.Request) -> web.Response:
    return web.Response(text="User-agent: *\nDisallow: /admin/\n")


def html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")
