"""One fetch from request to outcome, and the connections that the fetches of a process share."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp
from yarl import URL

from lienworker.failpoints import failpoint
from lienworker.fetching.budget import Budget
from lienworker.fetching.failures import FetchError, explain
from lienworker.fetching.guard import Guard, Lookup, system_lookup
from lienworker.fetching.outcomes import Fetched, FetchOptions, FetchOutcome, FetchRequest, NotModified
from lienworker.fetching.proxies import Connector, Proxies, Route
from lienworker.fetching.reply import REDIRECTS, Limits, Reply, Trail, conditions, standing_headers
from lienworker.fetching.robots import MAX_ROBOTS_BYTES, MAX_ROBOTS_REDIRECTS, Robots
from lienworker.fetching.turns import FarTurnError, Going, Pacer, Stopwatch, TurnError, Turns, going
from lienworker.fetching.urls import parse_url, place_of, redact_url
from lienworker.hostnames import host_of

_ROBOTS_SECONDS = 15.0
# County sites set long cookies and security policies; aiohttp's own limit of 8 KB breaks on them.
_MAX_HEADER = 32 * 1024


#: Redirects after which a POST is sent again as it was; all others are followed by a GET, as browsers do.
_SAME_METHOD = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class _Hop:
    """What is sent to one address on the way of a request."""

    method: str
    body: bytes | None
    headers: dict[str, str]
    is_conditional: bool


def _first_hop(request: FetchRequest, trail: Trail) -> _Hop:
    headers = conditions(request)
    is_conditional = bool(headers)
    if request.jar is not None or request.headers:
        headers |= _step_headers(request, trail)
    return _Hop(request.method, request.body, headers, is_conditional)


def _next_hop(request: FetchRequest, trail: Trail, hop: _Hop, status: int) -> _Hop:
    """Return what follows a redirect. Only the first hop is conditional: where it newly leads to was never stored."""
    is_same = status in _SAME_METHOD or hop.method == "HEAD"  # who asked for no body still wants none
    method, body = (hop.method, hop.body) if is_same else ("GET", None)
    return _Hop(method, body, _step_headers(request, trail, with_body=body is not None), is_conditional=False)


def _step_headers(request: FetchRequest, trail: Trail, *, with_body: bool = True) -> dict[str, str]:
    """Return the request's own headers, for its own host only, and the cookies for the present address."""
    headers: dict[str, str] = {}
    if request.headers and host_of(str(trail.url)) == host_of(request.url):
        headers = {name: value for name, value in request.headers.items() if with_body or name != "Content-Type"}
    if cookies := trail.cookies():
        headers["Cookie"] = cookies
    return headers


class Fetcher:
    """One per process; used on one event loop, on which its first fetch opens its connections."""

    def __init__(self, options: FetchOptions, *, lookup: Lookup = system_lookup, pacer: Pacer | None = None) -> None:
        self._options = options
        self._guard = Guard(options.allow_private, timeout=options.connect_timeout, lookup=lookup)
        self._robots = Robots(options.user_agent, options.robots_ttl, self._load_robots)
        self._page = Limits(
            options.max_bytes, options.max_redirects, options.total_timeout, options.obey_robots, cut=False
        )
        self._robots_txt = Limits(
            MAX_ROBOTS_BYTES,
            MAX_ROBOTS_REDIRECTS,
            min(_ROBOTS_SECONDS, options.total_timeout / 2),
            obey_robots=False,
            cut=True,
        )
        self._pacer = pacer
        # The stopwatch limits the total time: a request that waits for its turn loses none of it.
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=options.connect_timeout, sock_read=options.read_timeout
        )
        self._budget = Budget(options.body_budget)
        self._direct: Route | None = None
        self._proxies: Proxies | None = None
        self._closed = False

    async def fetch(self, request: FetchRequest) -> FetchOutcome:
        """Fetch a page. Never raise for anything that the network or the site can do."""
        if self._closed:
            raise RuntimeError("the fetcher is closed")
        way = Going(Turns(self._pacer, request.turn), Stopwatch(self._page.seconds))
        before = going.set(way)
        try:
            return await self._download(request, self._page, way)
        except FetchError as failure:
            return failure.outcome(way.watch.elapsed_ms(), was_asked=way.turns.were_used)
        finally:
            going.reset(before)

    def crawl_delay(self, url: str, proxy: str | None = None) -> float | None:
        """Return what the site's robots.txt, if already read, asks for between two requests; in seconds."""
        try:
            return self._robots.crawl_delay(parse_url(url), proxy)
        except FetchError:
            return None

    async def close(self) -> None:
        self._closed = True
        await self._robots.close()
        await self._guard.close()
        if self._proxies is not None:
            await self._proxies.close()
        if self._direct is not None:
            await self._direct.session.close()

    async def _load_robots(self, url: URL, proxy: str | None) -> bytes:
        asking = going.get()  # the first fetch that needs the file gives up its turn for it
        turns = asking.turns if asking else Turns(self._pacer, None)
        way = Going(turns, Stopwatch(self._robots_txt.seconds))
        going.set(way)  # in the context of this task only
        outcome = await self._download(FetchRequest(str(url), proxy=proxy), self._robots_txt, way)
        assert isinstance(outcome, Fetched)  # no condition was sent
        return outcome.body

    async def _download(self, request: FetchRequest, limits: Limits, way: Going) -> Fetched | NotModified:
        """Return the page; raise `FetchError`, or `TurnError` where nothing could be asked for."""
        direct, proxies = self._open()
        try:
            if request.proxy is None:
                return await self._follow(request, direct, limits, way)
            async with proxies.route(request.proxy) as route:
                return await self._follow(request, route, limits, way)
        except TurnError:
            raise
        except Exception as exc:
            shown, proxied = redact_url(request.url), request.proxy is not None
            raise explain(exc, shown, proxied=proxied) from None

    async def _follow(self, request: FetchRequest, route: Route, limits: Limits, way: Going) -> Fetched | NotModified:
        trail = Trail(parse_url(request.url), limits.max_redirects, request.jar)
        hop = _first_hop(request, trail)
        while True:
            with way.watch.stopped():
                await self._check(trail.url, request, limits, way.turns)
                await self._wait_for_turn(trail, request, way.turns)
            failpoint("fetch.before_request")
            async with way.watch.timeout():
                response = await self._request(route, trail.url, hop)
                try:
                    if response.status not in REDIRECTS:
                        is_step = request.jar is not None
                        if is_step:
                            trail.keep_cookies(response)
                        reply = Reply(response, trail, limits, way.watch, self._budget, is_step)
                        outcome = await reply.conclude(
                            conditional=hop.is_conditional, proxied=request.proxy is not None
                        )
                        failpoint("fetch.after_reply")
                        return outcome
                    trail.follow(response)
                finally:
                    response.release()
            hop = _next_hop(request, trail, hop, response.status)

    async def _request(self, route: Route, url: URL, hop: _Hop) -> aiohttp.ClientResponse:
        return await route.session.request(
            hop.method,
            url,
            headers=hop.headers,
            data=hop.body,
            proxy=route.proxy,
            allow_redirects=False,
            timeout=self._timeout,
        )

    async def _check(self, url: URL, request: FetchRequest, limits: Limits, turns: Turns) -> None:
        await self._check_as_seen_from_here(url)
        if not limits.obey_robots:
            return
        is_known = self._robots.knows(url, request.proxy)
        if not await self._robots.allow(url, request.proxy):
            raise FetchError("robots_denied", f"The site's robots.txt denies us {redact_url(str(url))}")
        if not is_known:
            turns.forfeit()

    async def _wait_for_turn(self, trail: Trail, request: FetchRequest, turns: Turns) -> None:
        """Leave a page whose first request is far off for later. A redirect to it fails: it would be so each time."""
        try:
            await turns.wait(trail.url, self._wish_of_site(trail.url, request))
        except FarTurnError as far:
            if trail.redirects:
                words = f"is redirected to within a site that asks for {far.seconds:.0f} s between two requests."
                raise FetchError("crawl_delay", f"{redact_url(str(trail.url))} {words}") from None
            self._robots.keep(trail.url, request.proxy, far.seconds)
            raise

    def _wish_of_site(self, url: URL, request: FetchRequest) -> float | None:
        """Return the crawl delay of a site; a task's own proxy is not believed: it could slow the site down for all."""
        if self._pacer is None or request.is_own_proxy:
            return None
        return self._robots.crawl_delay(url, request.proxy)

    async def _check_as_seen_from_here(self, url: URL) -> None:
        """Refuse a private address before a turn is waited for; what is connected to later is checked again."""
        try:
            await self._guard.addresses(*place_of(url))
        except FetchError as failure:
            if failure.reason != "dns_failed":  # a proxy may know names that we do not
                raise

    def _open(self) -> tuple[Route, Proxies]:
        if self._direct is None or self._proxies is None:
            self._direct = Route(self._open_session(Connector(self._guard)))
            self._proxies = Proxies(self._guard, self._direct.session, self._open_session)
        return self._direct, self._proxies

    def _open_session(self, connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            headers=standing_headers(self._options.user_agent),
            cookie_jar=aiohttp.DummyCookieJar(),  # cookies belong to a fetch, see Trail
            auto_decompress=False,  # see body
            trust_env=False,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
