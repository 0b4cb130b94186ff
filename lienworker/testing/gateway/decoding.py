"""Request bodies read as a strictly typed server reads them: one wrong type and all of it is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_STRICT_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|\+00:00)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXTS = ("task_id", "parcel_id", "platform", "state", "county", "raw_html_hash")
_EXACT = 2**53
_SURELY_EXACT = 15  # digits; 2^53 has sixteen
_INT64 = 2**63


class BadBodyError(Exception):
    """A body that the server does not take; its words are the whole reply."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result, as decoded."""

    task_id: str
    parcel_id: str
    platform: str
    state: str
    county: str
    raw_html_hash: str
    data: Mapping[str, Any] | None
    scraped_at: str
    parse_duration_ms: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.parcel_id, self.platform, self.state, self.county)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("number out of range")
    return number


def decode(body: bytes, integer: Callable[[str], int] = int) -> Any:
    """Strict JSON: no NaN, no infinities."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=integer)
    except (ValueError, RecursionError):
        raise BadBodyError("invalid request body") from None


def decode_results(body: bytes) -> list[ResultRow]:
    """A bare list of items, or BadBodyError for the whole of it, with no detail."""
    long_numbers: list[str] = []

    def integer(digits: str) -> int:
        if len(digits) > _SURELY_EXACT:
            long_numbers.append(digits)
        return int(digits)

    value = decode(body, integer)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadBodyError("invalid request body")
    # Half a character can only have come as an escape. Most bodies have neither, and are stored as they are.
    is_plain = not long_numbers and b"\\ud" not in body and b"\\uD" not in body
    return [_row(item, _as_it_is if is_plain else _as_stored) for item in value]


def _as_it_is(value: Any) -> Any:
    return value


def _row(item: Any, stored: Callable[[Any], Any]) -> ResultRow:
    if not isinstance(item, dict):
        raise BadBodyError("invalid request body")
    texts = {name: _typed(item, name, _is_text, "") for name in _TEXTS}
    data = _typed(item, "data", _is_object, None)
    return ResultRow(
        **{name: stored(text) for name, text in texts.items()},
        data=stored(data),
        scraped_at=_strict_time(item.get("scraped_at")),
        parse_duration_ms=_typed(item, "parse_duration_ms", _is_int, 0),
    )


def _typed(item: Mapping[str, Any], name: str, is_right: Callable[[Any], bool], missing: Any) -> Any:
    value = item.get(name)
    if value is None:
        return missing
    if not is_right(value):
        raise BadBodyError("invalid request body")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _strict_time(value: Any) -> str:
    try:
        if not isinstance(value, str) or not _STRICT_TIME.fullmatch(value):
            raise ValueError
        datetime.fromisoformat(value[:19])
    except ValueError:
        raise BadBodyError("invalid request body") from None
    return value


def _as_stored(value: Any) -> Any:
    """Numbers become 64-bit floats on their way: integers over 2^53 lose precision."""
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _as_stored(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_stored(inner) for inner in value]
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if _is_int(value) and abs(value) > _EXACT:
        return int(float(value))
    return value


def has_nul(value: Any) -> bool:
    """Whether a NUL character is anywhere in a JSON value."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in key or has_nul(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(has_nul, value))


def decode_heartbeat(body: bytes) -> dict[str, Any]:
    """A heartbeat: whole numbers must be whole, extra fields are welcome."""
    value = decode(body)
    if not isinstance(value, dict):
        raise BadBodyError("invalid request body")
    for name in ("active_tasks", "completed_last_minute", "failed_last_minute"):
        _typed(value, name, _is_int, 0)
    for name in ("cpu_percent", "memory_percent"):
        _typed(value, name, _is_number, 0.0)
    _typed(value, "platforms", lambda names: isinstance(names, list) and all(isinstance(n, str) for n in names), [])
    return value
