"""JSON that comes from outside, read without surprises."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 100

# Possessive (`++`, `*+`): a text that ends in the middle of a string is given up at once, not tried again and again.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_PLAIN = re.compile(r'[^"\[\]{}]*+')
#: So many strings and brackets are looked at in one text to find where objects end: about a second's work.
_MOST_MARKS = 2_000_000


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


def objects_in_array(text: str, start: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each object of an array begins and ends, and how many values are in it, without decoding any.

    All else in the array is passed over. It ends with the array, or where the text breaks off, or where it has more
    in it than anybody would write. A value takes 100 to 200 bytes of memory once it is decoded.
    """
    depth, begin, values = 0, start, 0
    position = _PLAIN.match(text, start).end()  # type: ignore[union-attr]  # matches the empty text
    for _ in range(_MOST_MARKS):
        mark = _STRING_OR_BRACKET.match(text, position)
        if mark is None or mark[1] == "":  # the end, or a string that has none
            return
        if (character := text[position]) in "[{":
            begin, values = (begin, values + 1) if depth else (position, 1)
            depth += 1
        elif character in "]}":
            depth -= 1
            if depth < 0:
                return
            if not depth and text[begin] == "{":
                yield begin, mark.end(), values
        position = _PLAIN.match(text, mark.end()).end()  # type: ignore[union-attr]
        values += text.count(",", mark.end(), position)


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
