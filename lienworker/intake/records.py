"""The records of a delimited file, each with the line that it begins on.

Most lines have no quote in them and are split as they are, several times faster than by the csv module. A record with
quotes goes to the csv module, and may run over lines. Where a quote is never closed only its own line is given up:
the lines that it swallowed go back and are read again.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator

from lienworker.intake.rows import BadRowError
from lienworker.intake.text import MAX_LINE, Batches

MAX_RECORD_LINES = 200

Numbered = tuple[int, str]


class Records:
    """Gives (line, text, cells); cells are a `BadRowError` where there is no telling them apart."""

    def __init__(self, batches: Batches, delimiter: str) -> None:
        self._delimiter = delimiter
        self._lines = _Lines(batches)
        self._feed = _Feed(self._lines)
        self._strict = csv.reader(self._feed, delimiter=delimiter, strict=True)

    def __iter__(self) -> Iterator[tuple[int, str, list[str] | BadRowError]]:
        delimiter = self._delimiter
        for number, line in self._lines:
            if '"' in line and len(line) <= MAX_LINE:
                yield self._quoted(number, line)
            else:
                text = line.rstrip("\r")
                yield number, text, text.split(delimiter)

    def _quoted(self, number: int, line: str) -> tuple[int, str, list[str] | BadRowError]:
        cells: list[str] | BadRowError
        self._feed.start((number, line))
        try:
            cells = next(self._strict)
        except (csv.Error, _RunawayError) as error:
            cells = self._salvage(line, error)
            self._lines.put_back(self._feed.taken[1:])
            return number, line, cells
        text = line if len(self._feed.taken) == 1 else "\n".join(text for _, text in self._feed.taken)
        return number, text, cells

    def _salvage(self, line: str, error: Exception) -> list[str] | BadRowError:
        """A line such as `7,"THE" TRUST` breaks the rule but not the meaning, if the line stands by itself."""
        if isinstance(error, _RunawayError) or self._feed.ended or len(self._feed.taken) > 1:
            return BadRowError("unclosed_quote", 'a quote (") opens in the row and does not close; close or remove it')
        try:
            return next(csv.reader([line], delimiter=self._delimiter))
        except csv.Error as again:
            return BadRowError("bad_csv", f"the row cannot be split into cells ({again}); correct it")


class _Lines:
    """Numbered lines, with a way back."""

    def __init__(self, batches: Batches) -> None:
        self._fresh = (pair for start, lines in batches for pair in enumerate(lines, start))
        self._back: deque[Numbered] = deque()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> Numbered:
        return self._back.popleft() if self._back else next(self._fresh)

    def put_back(self, lines: list[Numbered]) -> None:
        self._back.extendleft(reversed(lines))


class _Feed:
    """What the csv module reads from: remembers the lines of the record in hand, and stops one that has no end."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._size = 0
        self.taken: list[Numbered] = []
        self.ended = False

    def start(self, first: Numbered) -> None:
        self._lines.put_back([first])
        self._size, self.taken, self.ended = 0, [], False

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if len(self.taken) >= MAX_RECORD_LINES or self._size > MAX_LINE:
            raise _RunawayError
        self.ended = True
        pair = next(self._lines)
        self.ended = False
        self.taken.append(pair)
        self._size += len(pair[1])
        return pair[1] + "\n"


class _RunawayError(Exception):
    """The record has no end within reason."""
