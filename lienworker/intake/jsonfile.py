"""JSON: an array of objects, alone or as the value of some key, or objects one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from lienworker.errors import InputError
from lienworker.intake.objects import ObjectReader, explain
from lienworker.intake.rows import BadRowError, ParcelRow, Reject
from lienworker.intake.text import check_line
from lienworker.intake.window import BrokenValueError, CutOffError, Window

#: Values in front of the list of parcels: what a service says about it has some dozens.
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
    """Files that were strung together: what follows the first list must not vanish without a word."""
    window.step()
    if window.peek() == "}":
        window.step()
    if window.peek() not in ("", '"'):  # a quote: more pairs of the object that held the list
        error = BadRowError("bad_json", "the list ends before this, and nothing from here on was read; split the file")
        yield error.at(window.line, window.rest())


def _enter(window: Window, objects: ObjectReader, name: str) -> str:
    """Moves to the first element; gives the character that closes the list, none where objects just follow."""
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
    """Goes through the pairs of `{"count": 2, "parcels": [{…}, …]}` up to the first list of objects."""
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
    return InputError(f"{name} was cut off: it ends in the middle of line {window.line}; get it anew")
