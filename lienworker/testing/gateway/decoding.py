"""Request bodies read as a typed server reads them: one wrong type and all of it is refused.

Beyond the types it is lenient: text after the value, field names in any case, missing fields, `null` for an item.
`strict` refuses the times that a careful client never sends.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lienworker.testing.gateway.queue import NO_TIME

_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
_TIME = re.compile(_MOMENT + r"([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
_STRICT_TIME = re.compile(_MOMENT + r"(\.[0-9]+)?(Z|\+00:00)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANKS = " \t\r\n"
_TEXTS = ("task_id", "parcel_id", "platform", "state", "county", "raw_html_hash")
_EXACT = 2**53
_SURELY_EXACT = 15  # digits; 2^53 has sixteen
_INT64 = 2**63


class BadBodyError(Exception):
    """A body that the server does not take; its message is the whole reply."""


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
    """Return the first JSON value, without NaN and infinities; what follows it is not looked at."""
    text = body.decode("utf-8", "replace").lstrip(_BLANKS)
    decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, parse_int=integer)
    try:
        return decoder.raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise BadBodyError("invalid JSON") from None


def decode_results(body: bytes, *, strict: bool = False) -> list[ResultRow]:
    """Return the items of a bare list, or raise BadBodyError for the whole of it, with no detail."""
    long_numbers: list[str] = []

    def integer(digits: str) -> int:
        if len(digits) > _SURELY_EXACT:
            long_numbers.append(digits)
        return int(digits)

    value = decode(body, integer)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadBodyError("invalid JSON")
    # Half a character can only have come as an escape. Most bodies have neither, and are stored as they are.
    is_plain = not long_numbers and b"\\ud" not in body and b"\\uD" not in body
    return [_row(item, _as_it_is if is_plain else _as_stored, strict) for item in value]


def _as_it_is(value: Any) -> Any:
    return value


def _row(item: Any, stored: Callable[[Any], Any], strict: bool) -> ResultRow:
    if not isinstance(item, dict | None):
        raise BadBodyError("invalid JSON")
    fields = {name.lower(): value for name, value in (item or {}).items()}
    texts = {name: _typed(fields, name, _is_text, "") for name in _TEXTS}
    data = _typed(fields, "data", _is_object, None)
    return ResultRow(
        **{name: stored(text) for name, text in texts.items()},
        data=stored(data),
        scraped_at=_time(fields.get("scraped_at"), strict),
        parse_duration_ms=_typed(fields, "parse_duration_ms", _is_int, 0),
    )


def _typed(item: Mapping[str, Any], name: str, is_right: Callable[[Any], bool], missing: Any) -> Any:
    value = item.get(name)
    if value is None:
        return missing
    if not is_right(value):
        raise BadBodyError("invalid JSON")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _time(value: Any, strict: bool) -> str:
    if value is None and not strict:
        return NO_TIME
    try:
        if not isinstance(value, str) or not (_STRICT_TIME if strict else _TIME).fullmatch(value):
            raise ValueError
        datetime.fromisoformat(value[:19])
    except ValueError:
        raise BadBodyError("invalid JSON") from None
    return value


def _as_stored(value: Any) -> Any:
    """Return the value as it comes out of 64-bit floats: integers over 2^53 lose precision."""
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
    """Say whether a NUL character is anywhere in a JSON value, however deep."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            if "\0" in one:
                return True
        elif isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, list):
            left += one
    return False


def decode_heartbeat(body: bytes) -> dict[str, Any]:
    """Return a heartbeat: whole numbers must be whole, extra fields are welcome."""
    value = decode(body)
    if not isinstance(value, dict):
        raise BadBodyError("invalid JSON")
    for name in ("active_tasks", "completed_last_minute", "failed_last_minute"):
        _typed(value, name, _is_int, 0)
    for name in ("cpu_percent", "memory_percent"):
        _typed(value, name, _is_number, 0.0)
    _typed(value, "platforms", lambda names: isinstance(names, list) and all(isinstance(n, str) for n in names), [])
    return value
