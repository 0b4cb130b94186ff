"""Addresses of pages: parsed strictly, shown without secrets."""

from __future__ import annotations

import re
from functools import lru_cache

from yarl import URL

from lienworker.fetching.failures import FetchError

MAX_URL = 8_000
_SHOWN = 300

# Spaces are allowed: files of addresses have names of owners in their queries, and yarl quotes them.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_USERINFO = re.compile(r"^([^/?#]*//)[^/?#]*@")
# What is left of a host after IDNA; underscores are against the rules but in use.
_HOST = re.compile(r"(?=.{1,254}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
_IPV6 = re.compile(r"[0-9a-f:.]{2,45}", re.ASCII)


def parse_url(text: str, base: URL | None = None) -> URL:
    """Parse an address (relative to `base` if given) or raise `FetchError` with bad_url or scheme_refused.

    The returned object is what the guard checks and what is connected to, so there is no second parser that could see
    another host in the same text.
    """
    text = text.strip()
    try:
        if len(text) > MAX_URL or "\x00" in text or (base is None and _CONTROL.search(text)):
            raise ValueError
        url = URL(text) if base is None else base.join(URL(text))
    except ValueError:
        raise FetchError("bad_url", f"This is not a web address: {redact_url(text)}") from None
    if url.scheme not in ("http", "https"):
        raise _wrong_scheme(url, text)
    if not is_host(url.raw_host or ""):
        raise FetchError("bad_url", f"The address has no host that can exist: {redact_url(text)}")
    if not url.port:
        raise FetchError("bad_url", f"Port 0 cannot be connected to: {redact_url(text)}")
    return url


def _wrong_scheme(url: URL, text: str) -> FetchError:
    if not url.scheme:
        return FetchError("bad_url", f"The address needs http:// or https:// in front: {redact_url(text)}")
    return FetchError("scheme_refused", f"Only http and https are fetched, not {url.scheme[:30]}.")


def place_of(url: URL) -> tuple[str, int]:
    """Return host and port of an address that `parse_url` has parsed."""
    host, port = url.raw_host, url.port
    assert host is not None
    assert port is not None
    return host, port


@lru_cache(maxsize=1_000)
def is_host(host: str) -> bool:
    """Return whether this is a name or a literal address as yarl returns it (lower case, IDNA, no brackets)."""
    return bool((_IPV6 if ":" in host else _HOST).fullmatch(host))


def redact_url(url: str) -> str:
    """Return the address as it may be shown: without user name and password, on one line, of reasonable length."""
    without = _USERINFO.sub(r"\1", url)
    shown = _CONTROL.sub(" ", without)
    if "@" in shown.partition("?")[0] and (without != url or not _reads_well(shown)):
        # It is unclear where such an address ends its password: show only what follows the last @.
        shown = "…" + shown.rpartition("@")[2]
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _reads_well(text: str) -> bool:
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.absolute and is_host(url.raw_host or "")
