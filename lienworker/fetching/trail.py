"""The way of one fetch through its redirects: where it is, which cookies it has, if it goes in circles."""

from __future__ import annotations

import aiohttp
from yarl import URL

from lienworker.fetching.failures import FetchError
from lienworker.fetching.urls import parse_url, redact_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Trail:
    """Cookies live as long as the trail and go back only to the host that set them.

    Some county sites set one in a redirect and go round for ever unless it comes back.
    """

    def __init__(self, url: URL, max_redirects: int) -> None:
        self.url = url
        self.redirects = 0
        self._max_redirects = max_redirects
        self._jar: aiohttp.CookieJar | None = None
        self._seen: set[tuple[str, str | None]] = set()

    def cookies(self) -> str | None:
        """The Cookie header for the present address."""
        if self._jar is None:
            return None
        found = self._jar.filter_cookies(self.url).values()
        return "; ".join(f"{morsel.key}={morsel.coded_value}" for morsel in found) or None

    def follow(self, response: aiohttp.ClientResponse) -> None:
        """Step on to where a redirect leads, or raise `FetchError`."""
        self._seen.add((str(self.url), self.cookies()))
        self._keep_cookies(response)
        location = response.headers.get("Location", "").strip()
        if not location:
            raise self._lost("protocol_error", "redirects without saying where to", response)
        self.redirects += 1
        if self.redirects > self._max_redirects:
            raise self._lost("too_many_redirects", f"is redirect number {self.redirects}", response)
        self.url = parse_url(location, base=self.url)
        # The same address with other cookies is a site that remembers us, not a circle.
        if (str(self.url), self.cookies()) in self._seen:
            raise self._lost("too_many_redirects", "is redirected to in a circle", response)

    def _lost(self, reason: str, sentence: str, response: aiohttp.ClientResponse) -> FetchError:
        return FetchError(reason, f"{redact_url(str(self.url))} {sentence}.", status=response.status)

    def _keep_cookies(self, response: aiohttp.ClientResponse) -> None:
        if "Set-Cookie" not in response.headers:
            return
        if self._jar is None:
            self._jar = aiohttp.CookieJar(unsafe=True)  # "unsafe" admits hosts that are addresses
        for morsel in response.cookies.values():
            morsel["domain"] = ""  # to this host only, whatever the site would like
        self._jar.update_cookies(response.cookies, self.url)
