"""Reading and writing the few HTTP headers that matter to a fetch."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

from lienworker.fetching.outcomes import FetchRequest

MAX_RETRY_AFTER = 24 * 3600.0
_MAX_VALIDATOR = 1_000

_MEDIA = re.compile(r"\s*([\w.+-]{1,100}/[\w.+-]{1,100})\s*(?:;|,|$)", re.ASCII)
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([a-z0-9_.:+-]{1,40})""", re.IGNORECASE)
_PRINTABLE = re.compile(r"[\x20-\x7e]+")


def standing_headers(user_agent: str) -> dict[str, str]:
    """Sent with every request. Brotli is not asked for: its decoder cannot be bounded everywhere."""
    return {
        "User-Agent": user_agent,
        "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,text/csv;q=0.9,*/*;q=0.8",
        "Accept-Language": "en-US,en;q=0.9",
        "Accept-Encoding": "gzip, deflate",
    }


def conditions(request: FetchRequest) -> dict[str, str]:
    """The headers by which a site may answer "not modified".

    The values came from a site once: one that is no header value (control characters, absurd length) is left
    out, which costs a full reply and nothing else.
    """
    wanted = {}
    if etag := validator_of(request.etag):
        wanted["If-None-Match"] = etag
    if last_modified := validator_of(request.last_modified):
        wanted["If-Modified-Since"] = last_modified
    return wanted


def validator_of(header: str | None) -> str | None:
    """An ETag or a date of change that can be kept and sent back; None if there is none."""
    if header and len(header) <= _MAX_VALIDATOR and _PRINTABLE.fullmatch(header):
        return header
    return None


@lru_cache(maxsize=256)
def content_type_of(header: str) -> tuple[str, str | None]:
    """Media type and charset of a Content-Type header, both in lower case; rubbish is as good as none."""
    media, charset = _MEDIA.match(header), _CHARSET.search(header)
    return media[1].lower() if media else "", charset[1].lower() if charset else None


def retry_after_of(header: str | None, now: datetime) -> float | None:
    """Seconds to wait, from a number or a date: never negative, at most a day; None if it is neither."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    moment = date_of(text)
    if moment is None:
        return None
    return min(max((moment - now).total_seconds(), 0.0), MAX_RETRY_AFTER)


def date_of(header: str | None) -> datetime | None:
    """An HTTP date, aware; None for anything else."""
    if not header:
        return None
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
