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


def decode(body: bytes) -> Any:
    """Strict JSON: no NaN, no infinities."""
    try:
        return json.loads(body.decode("utf-8", "replace"), parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        raise BadBodyError("invalid request body") from None


def decode_results(body: bytes) -> list[ResultRow]:
    """A bare list of items, or BadBodyError for the whole of it, with no detail."""
    value = decode(body)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadBodyError("invalid request body")
    return [_row(item) for item in value]


def _row(item: Any) -> ResultRow:
    if not isinstance(item, dict):
        raise BadBodyError("invalid request body")
    texts = {name: _typed(item, name, lambda value: isinstance(value, str), "") for name in _TEXTS}
    data = _typed(item, "data", lambda value: isinstance(value, dict), None)
    return ResultRow(
        **{name: _SURROGATE.sub("\ufffd", text) for name, text in texts.items()},
        data=_as_stored(data),
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
