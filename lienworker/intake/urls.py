"""Whether a text is the address of a page that we would fetch, judged by its form alone; DNS is the fetcher's job."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from lienworker.errors import InputError
from lienworker.intake.rows import BadRowError

MAX_URL = 2_000
_MAX_KNOWN = 4_096


class UrlChecker:
    """Checks addresses, and the part before the path only once per site.

    `urlsplit` costs more than all the rest of reading a row, and a list names few sites: so a site that has passed is
    remembered, and the rest of an address is only searched for characters that do not print.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, text: Any) -> str | None:
        """Return the address without surrounding spaces; None where there is none."""
        if text.__class__ is str and text[: text.find("/", 8) + 1] in self._known:
            url: str = text
            if url.isprintable() and " " not in url and len(url) <= MAX_URL:
                return url
        return self._slowly(text)

    def _slowly(self, text: Any) -> str | None:
        if text is None:
            return None
        if not isinstance(text, str):
            raise _bad("it is not text", "put the address in quotes")
        url = text.strip()
        if not url:
            return None
        _check_text(url)
        _check_site(url)
        if site := url[: url.find("/", 8) + 1]:  # empty where no slash follows the host
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known.add(site)
        return url


def checked_url(url: str) -> str:
    """Return the URL if we would fetch it; else raise an InputError that says why not."""
    try:
        checked = UrlChecker()(url)
    except BadRowError as problem:
        raise InputError(f"{url!r} cannot be scraped: {problem}") from None
    if checked is None:
        raise InputError("there is no URL to scrape")
    return checked


def _is_host(host: str) -> bool:
    """Return whether this is letters, digits, `-._` and the colons of IPv6; beyond ASCII the resolver decides."""
    return any(c.isalnum() for c in host) and all(c.isalnum() or c in "-._:" or not c.isascii() for c in host)


def _bad(problem: str, remedy: str) -> BadRowError:
    return BadRowError("bad_url", f"the URL cannot be used, {problem}; {remedy}")


def _check_text(url: str) -> None:
    if len(url) > MAX_URL:
        raise _bad(f"it has {len(url):,} characters", f"give one of at most {MAX_URL:,}")
    if " " in url:
        raise _bad("there is a space in it", "write %20 for it, or one URL a row")
    if not url.isprintable():
        raise _bad("it holds control or invisible characters", "remove them")


def _check_site(url: str) -> None:
    if not url[:8].lower().startswith(("http://", "https://")):
        raise _bad("it does not begin with http:// or https://", "give the whole address")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _bad(f"its host or port is wrong ({error})", "correct it") from None
    if "@" in parts.netloc:
        raise _bad("there is a user name or password in it", "remove everything before the @")
    if not host or not _is_host(host) or port == 0:
        raise _bad("it names no host", "give the whole address, such as https://county.example/parcel/1")
