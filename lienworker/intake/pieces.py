"""A table in pieces of whole rows, each under the table's header: read once, a bounded part at a time."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lienworker.errors import InputError
from lienworker.intake.rows import Layout
from lienworker.intake.source import MAX_LINE, open_blocks


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows as they stand in the file, and how many there were before them."""

    header: str
    rows: list[str]
    before: int

    def to_bytes(self) -> bytes:
        return "\n".join([self.header, *self.rows, ""]).encode("utf-8")


def header_of_table(path: str, encoding: str | None) -> str:
    """Return the first line of a table."""
    for line in _lines(path, encoding):
        return line
    raise InputError(f"{path} is empty")


def pieces_of(
    path: str, encoding: str | None, size: int, belongs_to: Callable[[str, str], str] = lambda header, row: ""
) -> Iterator[Piece]:
    """Yield pieces of about `size` rows. Rows that belong to one thing (the same text, not empty) stay together."""
    lines = _lines(path, encoding)
    header = next(lines, "")
    rows: list[str] = []
    before = 0
    for line in lines:
        if len(rows) >= size and not _is_same(belongs_to(header, rows[-1]), belongs_to(header, line)):
            yield Piece(header, rows, before)
            before += len(rows)
            rows = []
        rows.append(line)
    if rows:
        yield Piece(header, rows, before)


def _is_same(one: str, other: str) -> bool:
    return bool(one) and one == other


def _lines(path: str, encoding: str | None) -> Iterator[str]:
    """Yield the rows of a table as text: a line, or several where a line break is inside quotes."""
    decoder = codecs.getincrementaldecoder(encoding or "utf-8-sig")()
    row, rest, number = "", "", 0
    try:
        with open_blocks(path, path, Layout()) as blocks:
            for block in blocks:
                *whole, rest = (rest + decoder.decode(block)).split("\n")
                for line in whole:
                    row = f"{row}\n{line}" if row else line
                    if row.count('"') % 2 == 0:
                        number += 1
                        if row.strip():
                            yield row.rstrip("\r")
                        row = ""
                    _check(row, path, number)
                _check(rest, path, number)
            row = f"{row}\n{rest}" if row else rest + decoder.decode(b"", final=True)
            if row.strip():
                yield row.rstrip("\r")
    except (UnicodeDecodeError, LookupError):
        raise InputError(f"{path} is not in {encoding or 'UTF-8'}: name its encoding with --encoding") from None


def _check(row: str, path: str, number: int) -> None:
    if len(row) > MAX_LINE:
        raise InputError(f"{path}: the row after row {number:,} is too long; a quote may be missing")
