"""The rows of a list in a PDF document, in ruled cells or aligned in columns. Runs in a process with limits.

A PDF has no table, only text at places. A row counts only if it can be read in one way: with rules, every word lies in
one cell of a row that has all cells of the header; without, every piece of text stands under exactly one word of the
header. Everything else is a problem with its page and line, and is never guessed.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from lienworker.errors import PageError
from lienworker.intake.fields import propose_mapping, squeeze

#: What one document may have; a county's list has some hundred pages of some thousand characters.
_MOST_PAGES = 1_000
_MOST_CHARACTERS = 30_000
_MOST_ROWS = 100_000
_MOST_LINES = 20_000
#: Gaps in parts of the type size: a space between words is smaller than the first (typewriter type has 0.6), one
#: between columns larger than the second; what lies between could be either.
_SPACE, _COLUMN_GAP = 0.7, 1.1
#: Points by which text may stand out of its cell, and text on one line differ in height.
_SLACK = 1.0
_LINE_SLACK = 3.0
#: A line that follows a row more closely than this many times the usual distance may continue it.
_CLOSE = 1.4
_FOOTER = re.compile(r"(?:page\s+)?\d+(?:\s*(?:of|/)\s*\d+)?", re.I)
_HAS_DIGIT = re.compile(r"\d")
_NO_LETTER = re.compile(r"\(cid:\d+\)|\ufffd|\x00")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that belongs together, with where it stands."""

    text: str
    x0: float
    x1: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; `is_doubtful` where a gap could be a space or the end of a column."""

    top: float
    pieces: tuple[Piece, ...]
    is_doubtful: bool

    @property
    def text(self) -> str:
        return " ".join(piece.text for piece in self.pieces)


def convert(about: Mapping[str, Any], body: bytes) -> bytes:
    """Return the header, the rows and the problems as gzipped JSON lines. A `PageError` has the sentence for people."""
    try:
        return _converted(about, body)
    except (PageError, MemoryError, RecursionError):
        raise
    except Exception as problem:  # the library fails in many ways on what is damaged
        raise _unusable(problem) from None


def _converted(about: Mapping[str, Any], body: bytes) -> bytes:
    reader = _Reader({squeeze(column) for column in about["columns"]})
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as packed:
        for item in reader.read(body):
            packed.write(json.dumps(item).encode() + b"\n")
    if not reader.header:
        raise _refused(reader.why_nothing())
    return out.getvalue()


class _Complaints(logging.Handler):
    """What the library finds wrong with a document and reads past: text may be missing there."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        words = record.getMessage()
        if "FontBBox" not in words:  # only the heights of letters
            self.words.append(words)

    def take(self) -> str:
        words, self.words = self.words, []
        return " ".join(words[0].split())[:120] if words else ""


class _Reader:
    """Goes through the pages in order; the header stands for all pages after it."""

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted
        self.header: list[str] = []
        self._spans: tuple[Piece, ...] = ()
        self._ids: set[int] = set()  # the columns that a parcel goes by
        self._exact: set[int] = set()  # and all others whose value has to be exact
        self._characters = self._rows = 0
        self._complaints = _Complaints()

    def read(self, body: bytes) -> Iterator[dict[str, Any]]:
        log = logging.getLogger("pdfminer")
        log.addHandler(self._complaints)
        log.propagate = False
        document = _open(body)
        with document:
            pages = len(document.pages)
            if pages > _MOST_PAGES:
                raise _refused(f"has {pages:,} pages; give at most {_MOST_PAGES:,}, or the list as CSV")
            for number in range(1, pages + 1):
                try:
                    yield from self._page(document.pages[number - 1], number)
                except (PageError, MemoryError):
                    raise
                except Exception as problem:  # the library fails in many ways on what is damaged
                    yield _problem(number, 0, f"the page cannot be read ({_plain(problem)})", "")
                if words := self._complaints.take():
                    yield _problem(number, 0, f"the page is damaged ({words}): rows of it may be missing", "")

    def why_nothing(self) -> str:
        if not self._characters:
            return "has no text in it: it is a scan, or a picture; get the list as CSV or as a workbook"
        return (
            "has no table with a column for a URL or a parcel id that can be made out: map the column (--map), or get"
            " the list as CSV"
        )

    def _page(self, page: Any, number: int) -> Iterator[dict[str, Any]]:
        characters = len(page.chars)
        self._characters += characters
        if characters > _MOST_CHARACTERS or len(page.lines) + len(page.rects) + len(page.curves) > _MOST_LINES:
            raise _refused(f"has more on page {number} than a list has; get it as CSV")
        lines = _lines(page)
        tables = [table for table in page.find_tables() if _is_wide(table)]
        for item in chain(self._ruled(tables, lines, page, number), self._aligned(lines, number, bool(tables))):
            self._rows += 1
            if self._rows > _MOST_ROWS:
                raise _refused(f"has more than {_MOST_ROWS:,} rows; get the list as CSV")
            yield item
        page.close()

    def _take_header(self, cells: Sequence[str]) -> bool:
        """Return whether these cells are the header, which they are where they name a column that we can use."""
        names = [" ".join(cell.split()) for cell in cells]
        mapped = propose_mapping(names)
        known = {mapped[field] for field in mapped.keys() & {"url", "parcel_id"}}
        known |= {name for name in names if squeeze(name) in self._wanted}
        if not known or not all(names):
            return False
        self.header = names
        self._ids = {at for at, name in enumerate(names) if name in known}
        self._exact = self._ids | {at for at, name in enumerate(names) if name in mapped.values()}
        return True

    # With rules.

    def _ruled(self, tables: list[Any], lines: list[Line], page: Any, number: int) -> Iterator[dict[str, Any]]:
        words = page.extract_words()
        for table in tables:
            grid = table.extract()
            for row, cells in zip(table.rows, grid, strict=True):
                texts = [cell if cell is None else cell.strip() for cell in cells]
                if not self.header:
                    if all(texts) and self._take_header([text or "" for text in texts]):
                        yield {"header": self.header}
                    continue
                if [" ".join((text or "").split()) for text in texts] == self.header:
                    continue
                line = _line_at(lines, row.bbox[1], row.bbox[3])
                why = self._doubt(row, texts, words)
                if why:
                    yield _problem(number, line, why, " | ".join(text or "" for text in texts))
                elif any(texts):
                    yield _row(number, line, [" ".join((text or "").split()) for text in texts])
        if tables and self.header:
            yield from self._outside(tables, lines, number)

    def _doubt(self, row: Any, texts: list[str | None], words: list[dict[str, Any]]) -> str:
        if len(texts) != len(self.header) or None in texts:
            there = sum(text is not None for text in texts)
            return f"the row has {there} cells where the header has {len(self.header)}"
        if any("\n" in (text or "") for at, text in enumerate(texts) if at in self._exact):
            return "a value that has to be exact is broken over two lines"
        top, bottom = row.bbox[1], row.bbox[3]
        for word in words:
            middle = (word["top"] + word["bottom"]) / 2
            if top < middle < bottom and row.bbox[0] < word["x1"] and word["x0"] < row.bbox[2] and not _fits(word, row):
                return f"{word['text'][:40]!r} stands on a rule, between two cells"
        return _unreadable(" ".join(text or "" for text in texts))

    def _outside(self, tables: list[Any], lines: list[Line], number: int) -> Iterator[dict[str, Any]]:
        """Report lines beside the rules that look like rows: a rule may be missing."""
        spans = [(table.bbox[1], table.bbox[3]) for table in tables]
        for at, line in enumerate(lines, 1):
            is_inside = any(top - _LINE_SLACK <= line.top <= bottom for top, bottom in spans)
            if not is_inside and len(line.pieces) >= max(3, len(self.header) - 1):
                yield _problem(number, at, "the line is outside the table", line.text)

    # Without rules.

    def _aligned(self, lines: list[Line], number: int, has_rules: bool) -> Iterator[dict[str, Any]]:
        if has_rules and self.header:
            return
        pitch = _pitch(lines)
        held: list[dict[str, Any]] = []  # a row that the next line may continue
        last = 0.0
        headers = [at for at, line in enumerate(lines, 1) if [piece.text for piece in line.pieces] == self.header]
        for at, line in enumerate(lines, 1):
            is_title = len(line.pieces) == 1 and at < max(headers, default=0)
            if is_title or _FOOTER.fullmatch(line.text):
                continue
            if not self.header or [piece.text for piece in line.pieces] == self.header:
                yield from self._aligned_header(line)
                continue
            if held and not self._has_id(line) and line.top - last < _CLOSE * pitch:
                held = [_problem(number, at - 1, "the next line may continue it", " ".join(held[0].get("cells", [])))]
            yield from held
            held, last = [self._item(line, number, at)], line.top
        yield from held

    def _aligned_header(self, line: Line) -> Iterator[dict[str, Any]]:
        """Take the places of the columns from a line that is the header; nothing where it is none."""
        names = [piece.text for piece in line.pieces]
        is_known = names == self.header
        if is_known or (not line.is_doubtful and len(names) > 1 and self._take_header(names)):
            self._spans = line.pieces
            yield from () if is_known else ({"header": self.header},)

    def _item(self, line: Line, number: int, at: int) -> dict[str, Any]:
        cells = [""] * len(self.header)
        why = "a gap in it could be a space or the end of a column" if line.is_doubtful else _unreadable(line.text)
        for piece in line.pieces:
            under = [column for column, span in enumerate(self._spans) if piece.x0 < span.x1 and span.x0 < piece.x1]
            if len(under) != 1:
                why = why or f"{piece.text[:40]!r} stands under {len(under) or 'none'} of the columns"
            elif cells[under[0]]:
                why = why or f"two values stand under {self.header[under[0]]!r}"
            else:
                cells[under[0]] = piece.text
        if not why and not any(_HAS_DIGIT.search(cells[column]) for column in self._ids):
            why = "it has no number in the column that a parcel goes by"
        if not why and len(line.pieces) == 1:
            why = "it has one value only"
        return _problem(number, at, why, line.text) if why else _row(number, at, cells)

    def _has_id(self, line: Line) -> bool:
        spans = [self._spans[column] for column in self._ids]
        return any(piece.x0 < span.x1 and span.x0 < piece.x1 for piece in line.pieces for span in spans)


def _open(body: bytes) -> Any:
    try:
        import pdfplumber
    except ImportError:
        raise _refused(
            "is a PDF document: pip install 'lienworker[pdf]' adds what reads those, or get the list as CSV"
        ) from None
    try:
        return pdfplumber.open(io.BytesIO(body))
    except Exception as problem:
        if problem.args and type(problem.args[0]).__name__ == "PDFPasswordIncorrect":
            raise _refused("is protected with a password; save it without one") from None
        raise


def _unusable(problem: Exception) -> PageError:
    return _refused(f"is a PDF document that cannot be read ({_plain(problem)}); get the list as CSV")


def _lines(page: Any) -> list[Line]:
    """Return the lines of a page from top to bottom, each in pieces."""
    words = sorted(page.extract_words(extra_attrs=["size"]), key=lambda word: (word["bottom"], word["x0"]))
    rows: list[list[dict[str, Any]]] = []
    for word in words:
        if rows and word["bottom"] - rows[-1][0]["bottom"] <= _LINE_SLACK:
            rows[-1].append(word)
        else:
            rows.append([word])
    return [_line(sorted(row, key=lambda word: word["x0"])) for row in rows]


def _line(words: list[dict[str, Any]]) -> Line:
    pieces = [[words[0]]]
    is_doubtful = False
    for left, right in pairwise(words):
        gap = (right["x0"] - left["x1"]) / max(left["size"], 1.0)
        is_doubtful |= _SPACE < gap < _COLUMN_GAP or gap < -_SPACE
        if gap >= _COLUMN_GAP:
            pieces.append([right])
        else:
            pieces[-1].append(right)
    joined = (Piece(" ".join(word["text"] for word in part), part[0]["x0"], part[-1]["x1"]) for part in pieces)
    return Line(min(word["top"] for word in words), tuple(joined), is_doubtful)


def _pitch(lines: list[Line]) -> float:
    """Return the usual distance of two lines."""
    gaps = sorted(below.top - above.top for above, below in pairwise(lines))
    return gaps[len(gaps) // 2] if gaps else 0.0


def _is_wide(table: Any) -> bool:
    return any(len(row.cells) > 1 for row in table.rows)


def _fits(word: Mapping[str, Any], row: Any) -> bool:
    cells = [cell for cell in row.cells if cell is not None]
    return any(cell[0] - _SLACK <= word["x0"] and word["x1"] <= cell[2] + _SLACK for cell in cells)


def _line_at(lines: list[Line], top: float, bottom: float) -> int:
    """Return the number of the first line of text between two heights; lines are counted from the top of the page."""
    return next((at for at, line in enumerate(lines, 1) if top - _SLACK <= line.top <= bottom), 0)


def _unreadable(text: str) -> str:
    return "letters in it have no meaning in the document's font" if _NO_LETTER.search(text) else ""


def _row(page: int, line: int, cells: list[str]) -> dict[str, Any]:
    return {"page": page, "line": line, "cells": cells}


def _problem(page: int, line: int, why: str, text: str) -> dict[str, Any]:
    return {"page": page, "line": line, "problem": why, "text": text[:2_000]}


def _plain(problem: Exception) -> str:
    return " ".join(str(problem).split())[:120] or type(problem).__name__


def _refused(why: str) -> PageError:
    return PageError("pdf", why)
