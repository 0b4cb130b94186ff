"""One JSON object, from a line or from an array, into a row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lienworker.intake.fields import RowMaker
from lienworker.intake.mapping import FIELDS, check_fields, resolve_mapping, squeeze
from lienworker.intake.rows import BadRowError, ParcelRow
from lienworker.intake.text import check_line

MAX_DEPTH = 32
#: Told by its commas. A parcel with its outline has some thousands.
MAX_VALUES = 100_000
_MAX_PLANS = 256
_MAX_KEYS = 10_000  # characters of all keys of a plan that is worth keeping


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


# What Python's reader accepts beyond JSON (NaN, Infinity, 1e999) would come out again as JSON that nobody reads.
decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)


class _Plan(NamedTuple):
    """How objects with one set of keys are read. A field without a key has None, which is no key of any object."""

    fields: tuple[str | None, ...]
    others: tuple[str, ...]


class ObjectReader:
    """Turns decoded objects into rows. Which key is what is decided once for each set of keys."""

    def __init__(self, maker: RowMaker, chosen: Mapping[str, str] | None) -> None:
        self._maker = maker
        self._chosen = check_fields(chosen or {})
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def row(self, line: int, value: Any, text: str) -> ParcelRow:
        """The row of `value`, which was decoded from `text`."""
        if value.__class__ is not dict:
            raise BadRowError("not_an_object", 'the row is not an object; write each parcel as {"url": "…"}')
        # An escape may hide a NUL or half a character, and deep nesting can be read but not written again: look
        # closer, but only where there are such signs, for most rows have none.
        if len(text) > MAX_VALUES and text.count(",") > MAX_VALUES:
            raise BadRowError("too_many_values", f"the row has more than {MAX_VALUES:,} values; give the parcel's own")
        if "\\" in text or "[" in text or text.find("{", 1) > 0:
            for word in _texts(value):
                _check_text(word)
        keys = tuple(value)
        fields, others = self._plans.get(keys) or self._plan(keys)
        extra = {}
        for key in others:
            if (other := value[key]) is not None and other != "":
                extra[key] = other
        get = value.get
        url, platform, state, county, parcel_id, queue, priority = fields
        values = (get(url), get(platform), get(state), get(county), get(parcel_id), get(queue), get(priority))
        return self._maker.make(line, values, extra)

    def knows(self, value: Any) -> bool:
        """True if this would make a row, as far as its keys go."""
        return isinstance(value, dict) and names_a_parcel(value, self._mapping(tuple(value)))

    def _plan(self, keys: tuple[str, ...]) -> _Plan:
        mapping = self._mapping(keys)
        plan = _Plan(
            tuple(mapping.get(field) for field in FIELDS),
            tuple(key for key in keys if key not in mapping.values()),
        )
        if len(self._plans) < _MAX_PLANS and sum(map(len, keys)) < _MAX_KEYS:
            self._plans[keys] = plan
        return plan

    def _mapping(self, keys: tuple[str, ...]) -> dict[str, str]:
        """Unlike a column of a table, a chosen key may be absent from some objects."""
        squeezed = {squeeze(key) for key in keys}
        chosen = {field: column for field, column in self._chosen.items() if squeeze(column) in squeezed}
        return resolve_mapping(keys, chosen, "the object")


def names_a_parcel(value: dict[str, Any], mapping: Mapping[str, str]) -> bool:
    """True if this is a parcel by its keys, not a wrapper around a list of them."""
    named = (value[mapping[field]] for field in ("url", "parcel_id") if field in mapping)
    return any(not isinstance(v, list | dict) for v in named)


def explain(error: Exception, text: str) -> BadRowError:
    """Why `text` gave no row, as a sentence, whatever was thrown on the way."""
    if isinstance(error, BadRowError):
        return error
    try:
        check_line(text)  # what is wrong with the text itself says more than where the decoder stumbled over it
    except BadRowError as plainer:
        return plainer
    if isinstance(error, json.JSONDecodeError):
        return BadRowError("bad_json", f"the row is not valid JSON ({error.msg.removesuffix(' at')}); correct it")
    if isinstance(error, RecursionError):
        return _too_deep()
    return BadRowError("bad_json", f"the row is not valid JSON ({error}); correct it")


def _too_deep() -> BadRowError:
    return BadRowError("too_deep", f"the row is nested deeper than {MAX_DEPTH} levels; give a flat object")


def _texts(value: Any, depth: int = 1) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        if depth > MAX_DEPTH:
            raise _too_deep()
        if isinstance(value, dict):
            yield from value
            value = value.values()
        for item in value:
            yield from _texts(item, depth + 1)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BadRowError("nul_character", "there is a NUL character in the row; remove it")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise BadRowError("bad_encoding", "an escape in the row stands for half a character; write the whole one")
