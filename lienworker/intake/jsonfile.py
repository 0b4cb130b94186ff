"""JSON: an array of objects, alone or as the value of some key, or objects one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lienworker.errors import InputError
from lienworker.intake.fields import FIELDS, RowMaker, check_fields, resolve_mapping, squeeze
from lienworker.intake.rows import BadRowError, ParcelRow, Reject
from lienworker.intake.source import MAX_LINE, Batches, check_line
from lienworker.intake.window import BrokenValueError, CutOffError, Window, decoder

#: Values before the list of parcels: a service's description of it has a few dozen.
_MOST_BEFORE = 100_000


def read_json(pieces: Iterator[str], objects: ObjectReader, name: str) -> Iterator[ParcelRow | Reject]:
    window = Window(pieces)
    try:
        closing = _enter(window, objects, name)
        while (char := window.peek()) and char != closing:
            yield _element(window, objects)
    except CutOffError:
        raise _cut_off(name, window) from None
    if closing and not char and not window.lost:
        raise _cut_off(name, window)
    if closing and char:
        yield from _after_the_end(window)


def _element(window: Window, objects: ObjectReader) -> ParcelRow | Reject:
    line, text = window.line, ""
    try:
        value, text = window.value()
        check_line(text)
        return objects.row(line, value, text)
    except BadRowError as error:
        return error.at(line, text)
    except BrokenValueError as broken:
        return explain(broken.cause, broken.text).at(line, broken.text)


def _after_the_end(window: Window) -> Iterator[Reject]:
    """Report what follows the first list (files were concatenated), so that it does not vanish silently."""
    window.step()
    if window.peek() == "}":
        window.step()
    if window.peek() not in ("", '"'):  # a quote: more members of the object that contains the list
        error = BadRowError("bad_json", "the list ends before this, and nothing from here on was read; split the file")
        yield error.at(window.line, window.rest())


def _enter(window: Window, objects: ObjectReader, name: str) -> str:
    """Move to the first element; return the character that closes the list, empty where objects just follow."""
    if window.peek() == "[":
        window.step()
        return "]"
    if objects.knows(window.try_value()):
        return ""
    try:
        return _enter_wrapper(window, name)
    except BrokenValueError as broken:
        problem = explain(broken.cause, broken.text).detail
        raise InputError(f"{name} cannot be read from line {window.line} on: {problem}") from None


def _enter_wrapper(window: Window, name: str) -> str:
    """Go through the members of `{"count": 2, "parcels": [{…}, …]}` up to the first list of objects."""
    window.step()
    left = _MOST_BEFORE
    while left > 0 and window.peek() == '"':
        left -= 1
        window.value()
        if window.peek() != ":":
            break
        window.step()
        if window.peek() != "[":
            window.value()
            continue
        window.step()
        if window.peek() in ("{", "]"):
            return "]"
        while left > 0 and window.peek() not in ("]", ""):
            left -= 1
            window.value()
        window.step()
    raise InputError(
        f"{name} has no list of parcels in it (line {window.line}); "
        'give an array of objects such as [{"url": "…"}], alone or under one key'
    )


def _cut_off(name: str, window: Window) -> InputError:
    return InputError(f"{name} was cut off: it ends in the middle of line {window.line}; get it again")


# JSONL: an object a line.


def read_jsonl(batches: Batches, objects: ObjectReader) -> Iterator[ParcelRow | Reject]:
    decode = decoder.raw_decode
    for start, lines in batches:
        for number, line in enumerate(lines, start):
            text = line.strip()
            if not text:
                continue
            try:
                value, end = decode(text)
                if end != len(text) or end > MAX_LINE or not text.isascii():
                    _check(text, end)
                row = objects.row(number, value, text)
            except (BadRowError, ValueError, RecursionError) as error:
                yield explain(error, text).at(number, text)
            else:
                yield row


def _check(text: str, end: int) -> None:
    check_line(text)
    if end != len(text):
        raise BadRowError("bad_json", "there is more on the line after the object; write one object a line")


# One JSON object, from a line or from an array, into a row.


MAX_DEPTH = 32
#: Told by its commas. A parcel with its outline has some thousands.
MAX_VALUES = 100_000
_MAX_PLANS = 256
_MAX_KEYS = 10_000  # characters of all keys of a plan that is worth keeping


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
        """Return the row of `value`, which was decoded from `text`."""
        if value.__class__ is not dict:
            raise BadRowError("not_an_object", 'the row is not an object; write each parcel as {"url": "…"}')
        # An escape may hide a NUL or half a character, and deep nesting can be read but not written again: look
        # closer, but only where there are signs of it, since most rows have none.
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
        """Return whether this would make a row, judging by its keys."""
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
        """Return the mapping of these keys; unlike a table's column, a chosen key may be absent from some objects."""
        squeezed = {squeeze(key) for key in keys}
        chosen = {field: column for field, column in self._chosen.items() if squeeze(column) in squeezed}
        return resolve_mapping(keys, chosen, "the object")


def names_a_parcel(value: dict[str, Any], mapping: Mapping[str, str]) -> bool:
    """Return whether this is a parcel by its keys, not a wrapper around a list of them."""
    named = (value[mapping[field]] for field in ("url", "parcel_id") if field in mapping)
    return any(not isinstance(v, list | dict) for v in named)


def explain(error: Exception, text: str) -> BadRowError:
    """Return why `text` is not a row, as a sentence, whatever was raised on the way."""
    if isinstance(error, BadRowError):
        return error
    try:
        check_line(text)  # a fault of the text itself says more than where the decoder failed
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
