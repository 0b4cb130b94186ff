"""Cookies: of one fetch with its redirects, or of a session whose fetches share them. Secrets; never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http.cookies import CookieError, Morsel
from typing import Any

import aiohttp
from yarl import URL

#: Cookies that a jar keeps, and characters of each: what a site sends beyond that is ignored.
MOST_COOKIES = 50
LONGEST_COOKIE = 4_096
_FIELDS = ("host", "path", "name", "value")


class Jar:
    """Cookies by the host that set them, and sent only to it, whatever domain a site asks for.

    Made on any thread, used on one event loop.
    """

    def __init__(self, stored: Sequence[Mapping[str, Any]] = ()) -> None:
        """`stored` is what `dump` has returned; a cookie that cannot be read is left out."""
        self._stored = stored
        self._jar: aiohttp.CookieJar | None = None

    def header(self, url: URL) -> str | None:
        """Return the Cookie header for an address."""
        if self._jar is None and not self._stored:
            return None
        found = self._open().filter_cookies(url).values()
        return "; ".join(f"{morsel.key}={morsel.coded_value}" for morsel in found) or None

    def keep(self, response: aiohttp.ClientResponse, url: URL) -> None:
        """Keep what a reply sets."""
        if "Set-Cookie" not in response.headers:
            return
        jar = self._open()
        for name, morsel in response.cookies.items():
            if len(name) + len(morsel.coded_value) <= LONGEST_COOKIE and len(jar) < MOST_COOKIES:
                morsel["domain"] = ""  # for this host only
                jar.update_cookies([(name, morsel)], url)

    def dump(self) -> list[dict[str, str]]:
        """Return the cookies as data. Their expiry is not among it: a session ends by its own time."""
        return [
            dict(zip(_FIELDS, (morsel["domain"], morsel["path"], morsel.key, morsel.coded_value), strict=True))
            for morsel in self._open()
        ]

    def _open(self) -> aiohttp.CookieJar:
        if self._jar is None:
            self._jar = aiohttp.CookieJar(unsafe=True)  # "unsafe" admits hosts that are addresses
            for cookie in self._stored:
                _restore(self._jar, cookie)
        return self._jar


def _restore(jar: aiohttp.CookieJar, cookie: Mapping[str, Any]) -> None:
    try:
        host, path, name, value = (str(cookie[field]) for field in _FIELDS)
        morsel: Morsel[str] = Morsel()
        morsel.set(name, value, value)
        morsel["path"] = path
        jar.update_cookies([(name, morsel)], URL.build(scheme="http", host=host, path="/"))
    except (KeyError, ValueError, TypeError, CookieError):
        return
