"""A moving window on JSON text that is too long to hold in memory: values are decoded from it one at a time.

`ijson` would do this, too, but it stops for good at the first syntax error; here a broken element costs only itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from lienworker.intake.source import MAX_LINE

# The text is taken in steps: large ones decode an unfinished value again less often, small ones make errors cheaper
# (json counts the lines before every error from the start of the text).
_STEP = 32 * 1024
_REACH = 4 * 1024  # how far after its start the end of a broken value is searched

_BLANK = re.compile(r"[\s,]*+")
_TOKEN = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[{}\[\]"]')
_SCALAR = re.compile(r"[^,{}\[\]\n]*+")
# Where the next element probably begins when the one before has no end: on its own line, or after `},`.
_FRESH_START = re.compile(r"(?:\n[ \t]*+|\}\s*+,\s*+)(?=\{)")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


# What Python's reader accepts beyond JSON (NaN, Infinity, 1e999) would be written as JSON that nothing can read.
decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)


class BrokenValueError(Exception):
    """The current value is not JSON. The window is after as much of it (`text`) as could be made out."""

    def __init__(self, cause: Exception, text: str) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.text = text


class CutOffError(Exception):
    """The text ends in the middle of a value."""


class Window:
    """Text with a position in it; `line` is the line of what `peek` last saw."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._steps = _in_steps(pieces)
        self._counted = 0
        self._text = ""
        self._place = 0
        self.line = 1
        self.lost = False  # the end of a broken value was never found

    def peek(self) -> str:
        """Return the next character that is neither space nor comma; empty at the end of the text."""
        while True:
            found = _BLANK.match(self._text, self._place)
            self._place = found.end() if found else self._place
            if self._place < len(self._text):
                self._count_lines()
                return self._text[self._place]
            if not self._more():
                return ""

    def step(self) -> None:
        """Move past the character that `peek` saw."""
        self._place += 1

    def value(self) -> tuple[Any, str]:
        """Decode the value that begins here and move past it; return it with its text."""
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._place)
            except (ValueError, RecursionError) as error:
                if not self._may_be_cut(error):
                    self._give_up(error)
                if not self._twice_as_much():
                    self._end_early(error)
                continue
            if end == len(self._text) and self._more():
                continue  # the last number of a piece may continue in the next
            text = self._text[self._place : end]
            self._place = end
            return value, text

    def try_value(self) -> Any:
        """Return the value that begins here if this window holds all of it, else None. Do not move."""
        try:
            return decoder.raw_decode(self._text, self._place)[0]
        except (ValueError, RecursionError):
            return None

    def rest(self) -> str:
        """Return what this window holds from here on."""
        return self._text[self._place :]

    def _may_be_cut(self, error: Exception) -> bool:
        """Return whether only the rest is missing: then the decoder fails at the very end of the window."""
        if not isinstance(error, json.JSONDecodeError) or len(self._text) - self._place > MAX_LINE:
            return False
        if error.msg.startswith("Unterminated string"):
            return self._text.find("\n", error.pos) < 0
        return error.pos >= len(self._text) - 12  # the longest token besides a string is a pair of \u escapes

    def _end_early(self, error: Exception) -> NoReturn:
        """Raise at the end of the text: it is cut off, or broken so near its end that it only looked like it."""
        beyond = isinstance(error, json.JSONDecodeError) and error.pos >= len(self._text.rstrip())
        if beyond or str(error).startswith("Unterminated string"):
            raise CutOffError from None
        self._give_up(error)

    def _give_up(self, error: Exception) -> NoReturn:
        end = find_end(self._text, self._place)
        while end < 0 and self._more():
            end = find_end(self._text, self._place)
        start, text = self._place, self._text
        if end > 0:
            self._place = end
        else:
            # A value nested a thousand deep holds no row: each of its levels would be found too deep again.
            self._find_fresh_start(_REACH if isinstance(error, RecursionError) else 1)
        stop = self._place if self._text is text else len(text)
        raise BrokenValueError(error, text[start:stop])

    def _find_fresh_start(self, behind: int) -> None:
        self._place = min(self._place + behind, len(self._text))
        while not (found := _FRESH_START.search(self._text, self._place)):
            self._place = max(self._place, len(self._text) - 64)  # a start may span two pieces
            if not self._more():
                self._place, self.lost = len(self._text), True
                return
        self._place = found.end()

    def _twice_as_much(self) -> bool:
        """Double the window for a value that is cut off; otherwise a long value would be read thirty times."""
        has_more = self._more()
        for _ in range((len(self._text) - self._place) // _STEP - 2):
            self._more()
        return has_more

    def _more(self) -> bool:
        """Add the next piece and drop what is behind the position."""
        self._count_lines()
        step = next(self._steps, "")
        if step:
            self._text = self._text[self._place :] + step
            self._place = self._counted = 0
        return bool(step)

    def _count_lines(self) -> None:
        self.line += self._text.count("\n", self._counted, self._place)
        self._counted = self._place


def _in_steps(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the same text in pieces neither much larger nor much smaller than a step."""
    small: list[str] = []
    for piece in pieces:
        small.append(piece)
        if sum(map(len, small)) >= _STEP:
            text = "".join(small)
            small.clear()
            yield from (text[i : i + _STEP] for i in range(0, len(text), _STEP))
    yield "".join(small)


def find_end(text: str, start: int) -> int:
    """Return where the broken value at `start` ends by its brackets; 0 if they lead nowhere.

    Return -1 if the text ends too early to tell.
    """
    if text[start] not in "{[":
        scalar = _SCALAR.match(text, start + 1)
        return scalar.end() if scalar else start + 1
    stop = min(len(text), start + _REACH)
    opened: list[str] = []
    for token in _TOKEN.finditer(text, start, stop):
        sign = token[0]
        if sign in "{[":
            opened.append(sign)
        elif sign == '"':  # an unterminated string: the brackets after it mean nothing
            return -1 if stop == len(text) and "\n" not in text[token.start() :] else 0
        elif sign in "}]":
            if opened.pop() + sign not in ("{}", "[]"):
                return 0
            if not opened:
                return token.end()
    return -1 if stop == len(text) else 0
