"""A county site whose parcels are two pages behind a disclaimer, a search form and a session, all of it on loopback.

Hidden fields are good for one reply of one session; the details of a parcel belong to the session's last search.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from lienworker.testing.county.site import serving

COOKIE = "COUNTY_SESSION"
MISSING = "99-404"
#: The definition of its platform; `{url}` is the site's address.
DEFINITION = """
name = "sessioned"
delay = {delay}
concurrency = 4

[fields]
parcel_id = "#pid"
owner_name = "#owner"
market_value = "#value"

[settings]
base_url = "{url}"

[flow]
session = "30m"
sessions = {sessions}

[[flow.open]]
get = "{{base_url}}/search"
[[flow.open]]
when = {{ css = "#btAgree" }}
submit = {{ form = "#main", click = "btAgree" }}
safe = true

[[flow.step]]
submit = {{ form = "#main", set = {{ inpParid = "{{parcel_id}}" }}, click = "btSearch" }}
safe = true
missing = {{ text = "did not find any records" }}
expect = {{ css = "tr.SearchResults" }}
capture = {{ detail = {{ css = "tr.SearchResults::attr(onclick)", re = "'(.+?)'" }} }}
[[flow.step]]
get = "{{detail}}"
expect = {{ text = "{{parcel_id}}" }}
keep = "profile"
[[flow.step]]
get = "{{detail}}&mode=value"
expect = {{ text = "{{parcel_id}}" }}
keep = "values"
[[flow.step]]
get = "{{detail}}&mode=sales"
keep = "sales"
optional = true
"""

#: The same site for parcels that have an address.
CARDS = """
name = "cards"

[fields]
parcel_id = "#pid"
owner_name = "#owner"
market_value = "#value"

[flow]
session = "30m"

[[flow.open]]
get = "{url}/search"
[[flow.open]]
when = {{ css = "#btAgree" }}
submit = {{ form = "#main", click = "btAgree" }}
safe = true

[[flow.step]]
get = "{{url}}"
expect = {{ css = "#pid" }}
keep = "page"
"""


@dataclass
class _Session:
    agreed: bool = False
    state: str = ""
    parcel: str = ""
    searches: int = 0


@dataclass
class SessionSite:
    """The site, its log, and what may go wrong on demand."""

    latency: float = 0.0
    #: A session ends after so many searches.
    lasts: int = 1_000_000
    url: str = ""
    log: list[tuple[str, float]] = field(default_factory=list)
    opened: int = 0
    #: How often each parcel was searched for.
    searched: Counter[str] = field(default_factory=Counter)
    #: Paths that answer 500, so many times.
    broken: dict[str, int] = field(default_factory=dict)
    _sessions: dict[str, _Session] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def definition(self, *, delay: float = 0.0, sessions: int = 1) -> str:
        return DEFINITION.format(url=self.url, delay=delay, sessions=sessions)

    def row(self, parcel_id: str) -> dict[str, str]:
        place = {"platform": "sessioned", "state": "XX", "county": "Session"}
        return {**place, "parcel_id": parcel_id, "url": f"{self.url}/search?parcel_id={parcel_id}"}

    @property
    def secrets(self) -> set[str]:
        """Every cookie and hidden field that it has ever handed out to a session."""
        return set(self._sessions) | {session.state for session in self._sessions.values() if session.state}

    def forget(self) -> None:
        """A site that has never been asked for anything, for the next test."""
        self.log.clear()
        self.searched.clear()
        self.broken.clear()
        self._sessions.clear()
        self.opened, self.lasts = 0, 1_000_000

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._record])
        app.router.add_route("*", "/search", self._search)
        app.router.add_route("*", "/disclaimer", self._disclaimer)
        app.router.add_get("/detail", self._detail)
        app.router.add_get("/card", self._card)
        return app

    @web.middleware
    async def _record(self, request: web.Request, handler: object) -> web.StreamResponse:
        with self._lock:
            self.log.append((request.path_qs, time.monotonic()))
            broken = self.broken.get(request.path, 0)
            self.broken[request.path] = max(0, broken - 1)
        if self.latency:
            await asyncio.sleep(self.latency)
        if broken:
            return web.Response(status=500, text="Server Error")
        return await handler(request)  # type: ignore[operator,no-any-return]

    def _session(self, request: web.Request) -> _Session | None:
        session = self._sessions.get(request.cookies.get(COOKIE, ""))
        return session if session and session.agreed and session.searches <= self.lasts else None

    async def _search(self, request: web.Request) -> web.Response:
        session = self._session(request)
        if session is None:
            return web.Response(status=302, headers={"Location": "/disclaimer"})
        if request.method == "GET":
            return self._form(session)
        sent = await request.post()
        if sent.get("__VIEWSTATE") != session.state or not sent.get("btSearch"):
            return web.Response(status=500, text="Invalid view state")
        session.state, session.parcel, session.searches = "", str(sent["inpParid"]), session.searches + 1
        self.searched[session.parcel] += 1
        if session.parcel == MISSING:
            return _html("<p>Your search did not find any records.</p>")
        return _html(
            f"""<table><tr class="SearchResults" onclick="go('detail?n={session.searches}')"><td>1</td></tr></table>"""
        )

    async def _disclaimer(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            name = f"session-{next(self._numbers):04d}-secret"
            self._sessions[name] = _Session()
            reply = _html('<form id="main" method="post"><input type="submit" id="btAgree" name="btAgree" value="Yes">')
            reply.set_cookie(COOKIE, name)
            return reply
        session = self._sessions[request.cookies[COOKIE]]
        session.agreed, self.opened = True, self.opened + 1
        return web.Response(status=302, headers={"Location": "/search"})

    def _form(self, session: _Session) -> web.Response:
        session.state = f"viewstate-{next(self._numbers)}-secret"
        return _html(
            f"""<form id="main" method="post" action="/search"><input type="hidden" name="__VIEWSTATE"
            value="{session.state}"><input name="inpParid"><input type="submit" name="btSearch" value="Go"></form>"""
        )

    async def _detail(self, request: web.Request) -> web.Response:
        session = self._session(request)
        if session is None:
            return web.Response(status=302, headers={"Location": "/disclaimer"})
        mode = request.query.get("mode", "profile")
        if mode == "sales":
            return web.Response(status=404, text="no such page")
        fact = '<p id="owner">HERON IDA</p>' if mode == "profile" else '<p id="value">$1,234</p>'
        return _html(f'<h1>{mode}</h1><p id="pid">{session.parcel}</p>{fact}')

    async def _card(self, request: web.Request) -> web.Response:
        """A page that has an address of its own, and still needs a session."""
        if self._session(request) is None:
            return web.Response(status=302, headers={"Location": "/disclaimer"})
        return _html(f'<p id="pid">{request.query["id"]}</p><p id="owner">HERON IDA</p><p id="value">$1</p>')


def _html(body: str) -> web.Response:
    return web.Response(text=f"<html><body>{body}</body></html>", content_type="text/html")


@contextmanager
def session_site(**options: object) -> Iterator[SessionSite]:
    site = SessionSite(**options)  # type: ignore[arg-type]
    with serving(site):  # type: ignore[type-var]
        yield site
