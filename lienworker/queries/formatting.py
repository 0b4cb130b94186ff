"""Figures and times as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from lienworker.db.clock import now_ms, rfc3339, to_ms

_TOPICS = {
    "fetch": "fetch",
    "scrape": "scrape",
    "upload_raw": "raw page to the Gateway",
    "upload_result": "result to the Gateway",
    "report_failure": "report to the Gateway",
}


def number(value: Any) -> str:
    return "–" if value is None else f"{value:,}"


def share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}" if value in (0, 1) or 0.01 <= value <= 0.99 else f"{value:.1%}"


def size(value: int) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "bytes" or value >= 10 else f"{value:,.1f} {unit}"
        value = value / 1000  # type: ignore[assignment]
    raise AssertionError


def seconds(value: float | None) -> str:
    """Return a duration in its two largest units."""
    if value is None:
        return "–"
    whole = int(value)
    if whole < 60:
        return f"{whole} s"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for name, length in units:
        n, whole = divmod(whole, length)
        if n:
            parts.append(f"{n} {name}")
        elif parts:
            break
    return " ".join(parts[:2])


def ago(moment: int | str | None) -> str:
    """Return how long ago a time was, given as milliseconds or as text."""
    if moment is None:
        return "–"
    past = (now_ms() - (to_ms(moment) if isinstance(moment, str) else moment)) / 1000
    return f"{seconds(past)} ago" if past >= 0 else f"in {seconds(-past)}"


def at(moment: int | str | None) -> str:
    """Return a time to the second, UTC."""
    if moment is None:
        return "–"
    text = moment if isinstance(moment, str) else rfc3339(moment)
    return text[:19].replace("T", " ")


def cut(text: Any, length: int = 80) -> str:
    """Return the text, cut between two words where it is too long."""
    whole = "" if text is None else str(text)
    if len(whole) <= length:
        return whole
    head = whole[: length - 1]
    words, blank, rest = head.rpartition(" ")
    return (words if blank and len(rest) < length // 2 else head).rstrip() + "…"


#: Why a connection did not come about, by what the HTTP library's words have in them.
_NOT_CONNECTED = {
    "certificate": "its certificate is not one that we trust",
    "sslerror": "it does not speak TLS as we do",
    "name or service": "there is no such host name",
    "domain name": "there is no such host name",
    "getaddrinfo": "there is no such host name",
    "connect call failed": "nothing takes connections there",
    "refused": "nothing takes connections there",
    "timeout": "the connection does not come about in time",
}


def why_not_connected(words: str) -> str | None:
    """Return the reason in our own words; the library's are about its own insides. None where they are no such."""
    said = words.lower()
    return next((meaning for sign, meaning in _NOT_CONNECTED.items() if sign in said), None)


def in_our_words(words: str) -> str:
    """Return what a library said of a connection in our words, and anything else as it is."""
    return (why_not_connected(words) or words) if "Connect" in words else words


def query(values: Mapping[str, Any], **more: Any) -> str:
    """Return a query string without what is empty."""
    return urlencode({name: value for name, value in {**values, **more}.items() if value not in (None, "")})


def topic(name: str) -> str:
    return _TOPICS.get(name, name)


#: Fields whose numbers are names, not amounts.
_NOT_AMOUNTS = ("year", "zip", "parcel", "number", "id", "book", "page", "code")


def label(name: str) -> str:
    """Return a field's name as a person would write it."""
    return name.replace("_", " ").replace(".", ": ").capitalize()


def value(found: Any, name: str = "") -> str:
    """Return a value of a record as people read it: amounts with commas, yes and no, nothing for nothing."""
    if found is None or found == "":
        return ""
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, list):
        return ", ".join(value(one, name) for one in found)
    if isinstance(found, dict):
        return "; ".join(f"{label(key)}: {value(one, key)}" for key, one in found.items())
    if not isinstance(found, int | float) or any(part in _NOT_AMOUNTS for part in name.split("_")):
        return str(found)
    return f"{found:,.0f}" if found == int(found) else f"{found:,.2f}" if abs(found) >= 1 else f"{found:g}"
