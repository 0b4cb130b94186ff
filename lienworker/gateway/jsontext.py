"""JSON that comes from outside, read without surprises."""

from __future__ import annotations

import json
import math
from typing import Any

MAX_DEPTH = 100


def _int(digits: str) -> int | str:
    # Python refuses to convert more than 4,300 digits; such a number stays the text that it was.
    return int(digits) if len(digits) < 4000 else digits


def _float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_DECODER = json.JSONDecoder(parse_int=_int, parse_float=_float, parse_constant=lambda _: None)


def decode(body: bytes | str) -> Any:
    """The value in `body`. Raises ValueError for whatever is not JSON, absurd nesting included."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        return _DECODER.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def decode_at(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at `start`, and where it ends. Raises ValueError."""
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode(value: Any) -> str:
    """Plain ASCII JSON of anything that `decode` gave; what is nested too deeply becomes null."""
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return json.dumps(_pruned(value, MAX_DEPTH), separators=(",", ":"))


def _pruned(value: Any, room: int) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(inner, room - 1) for key, inner in value.items()} if room else None
    if isinstance(value, list):
        return [_pruned(inner, room - 1) for inner in value] if room else None
    return value
