"""Time as the store keeps it: RFC 3339 UTC text for people, whole milliseconds for the schedule."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Return the wall clock in milliseconds since 1970, the unit of the schedule."""
    return time.time_ns() // 1_000_000


def rfc3339(ms: int | None = None) -> str:
    """Format milliseconds as text such as `2026-11-16T02:38:00.123Z`, which sorts as time does."""
    moment = datetime.fromtimestamp((now_ms() if ms is None else ms) / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def to_ms(text: str) -> int:
    """Parse an RFC 3339 text into milliseconds; raise ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return round(moment.timestamp() * 1000)
