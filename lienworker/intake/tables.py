"""CSV and its relatives: commas, semicolons, tabs or pipes under a header in any order and spelling."""

from __future__ import annotations

import csv
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from lienworker.errors import InputError
from lienworker.intake.fields import FIELDS, RowMaker, propose_mapping, resolve_mapping, squeeze
from lienworker.intake.rows import BadRowError, ParcelRow, Reject
from lienworker.intake.source import MAX_LINE, Batches, check_line

DELIMITERS = ",;\t|"
#: More than a spreadsheet has.
MAX_COLUMNS = 20_000


def looks_like_table(head: str, chosen: Mapping[str, str] | None = None) -> bool:
    """Return whether the first line names a column that we can use."""
    hint, line = _opening(head)
    cells = _split_header(line, hint or choose_delimiter(line, chosen))
    wanted = {squeeze(column) for column in (chosen or {}).values()}
    return not {"url", "parcel_id"}.isdisjoint(propose_mapping(cells)) or any(squeeze(c) in wanted for c in cells)


def choose_delimiter(line: str, chosen: Mapping[str, str] | None = None) -> str:
    """Return the delimiter that yields the most known columns of the header; on a tie, the most columns."""
    wanted = {squeeze(column) for column in (chosen or {}).values()}

    def known_and_all(delimiter: str) -> tuple[int, int]:
        cells = _split_header(line, delimiter)
        return len(propose_mapping(cells)) + sum(squeeze(cell) in wanted for cell in cells), len(cells)

    return max(DELIMITERS, key=known_and_all)


def read_table(
    head: str, batches: Batches, maker: RowMaker, chosen: Mapping[str, str] | None, name: str
) -> Iterator[ParcelRow | Reject]:
    hint, line = _opening(head)
    records = iter(Records(batches, hint or choose_delimiter(line, chosen)))
    columns = Columns(_read_header(records, name), chosen, name)
    columns.check(maker, name)
    for number, text, cells in records:
        if not text or text.isspace():
            continue
        try:
            if isinstance(cells, BadRowError):
                raise cells
            check_line(text)
            row = maker.make(number, *columns.sort(cells))
        except BadRowError as error:
            if isinstance(cells, BadRowError) or any(cell.strip() for cell in cells):  # else a blank row
                yield error.at(number, text)
        else:
            yield row


class Columns:
    """Where each of our fields is in a row of the table, and what the other columns are called."""

    def __init__(self, header: list[str], chosen: Mapping[str, str] | None, name: str) -> None:
        self.header = header
        self.mapping = resolve_mapping(header, chosen, name)
        places = {field: header.index(column) for field, column in self.mapping.items()}
        self._width = len(header)
        # A field without a column is read one place past the end, where `sort` puts an empty cell.
        self._pick = itemgetter(*(places.get(field, self._width) for field in FIELDS))
        names = _unique(header)
        self._others = [(names[i], i) for i in range(self._width) if i not in places.values()]

    def check(self, maker: RowMaker, name: str) -> None:
        """Refuse a table without usable columns: one sentence now instead of a reject for every row."""
        if "url" in self.mapping:
            return
        if "parcel_id" not in self.mapping:
            raise InputError(_no_column(self.header, name))
        known = self.mapping.keys() | {field for field, value in maker.given.items() if value}
        if "platform" not in known and not {"state", "county"} <= known:
            column = self.mapping["parcel_id"]
            raise InputError(
                f"{name} has parcel ids (in {column!r}) but no URLs and no platform to build them; give the platform,"
                " or the state and the county"
            )

    def sort(self, cells: list[str]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return our fields in their order, and the rest by name."""
        if len(cells) != self._width:
            self._fit(cells)
        cells.append("")
        extra = {}
        for name, place in self._others:
            cell = cells[place]
            if cell and not cell.isspace():
                extra[name] = cell
        return self._pick(cells), extra

    def _fit(self, cells: list[str]) -> None:
        """Pad or trim the cells to the header: cells may be missing at the end, or be there and empty."""
        if any(cell.strip() for cell in cells[self._width :]):
            raise BadRowError(
                "too_many_columns",
                f"the row has {len(cells)} columns where the header has {self._width}; "
                "put quotes around a value that holds the separator",
            )
        del cells[self._width :]
        cells.extend([""] * (self._width - len(cells)))


def _opening(head: str) -> tuple[str | None, str]:
    """Return the delimiter that Excel's `sep=;` names, if there is such a line, and the line of the header."""
    lines = (line.strip("\r\n ") for line in head.splitlines())
    line = next((line for line in lines if line), "")
    return (line[4], next(lines, "")) if _is_hint(line) else (None, line)


def _is_hint(line: str) -> bool:
    return len(line) == 5 and line[:4].lower() == "sep=" and line[4] in DELIMITERS


def _split_header(line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _read_header(records: Iterator[tuple[int, str, list[str] | BadRowError]], name: str) -> list[str]:
    for number, text, cells in records:
        if not text.strip() or _is_hint(text.strip("\r\n ")):
            continue
        try:
            if isinstance(cells, BadRowError):
                raise cells
            check_line(text)
        except BadRowError as error:
            raise InputError(f"{name} has a header (line {number}) that cannot be read: {error.detail}") from None
        if len(cells) > MAX_COLUMNS:
            raise InputError(f"{name} has {len(cells):,} columns; give a table of at most {MAX_COLUMNS:,}")
        return [cell.strip() for cell in cells]
    raise InputError(f"{name} is empty; there is nothing to read in it")


def _unique(header: list[str]) -> list[str]:
    """Return names for the other columns: OWNER NAME, OWNER NAME 2; a column without a name is `column 5`."""
    taken = set(header)
    counts: Counter[str] = Counter()
    names = []
    for place, column in enumerate(header, 1):
        base = name = column or f"column {place}"
        counts[base] += 1
        while counts[base] > 1 and (name := f"{base} {counts[base]}") in taken:
            counts[base] += 1
        taken.add(name)
        names.append(name)
    return names


def _no_column(header: list[str], name: str) -> str:
    if header[0].lower().startswith(("http://", "https://")):
        return f"{name} has no header: its first line is a URL; put a line with the word url above it"
    there = ", ".join(repr(column) for column in header[:12])
    return (
        f"{name} has no column with a URL or a parcel id; its first line reads {there}: "
        "name the column url or parcel_id, or map one to it"
    )


# The records of a delimited file, each with the line that it begins on.
#
# Most lines have no quote in them and are split as they are, several times faster than by the csv module. A record
# with quotes goes to the csv module and may span lines. Where a quote is never closed only its own line is lost: the
# lines that it swallowed are put back and read again.


MAX_RECORD_LINES = 200

Numbered = tuple[int, str]


class Records:
    """Iterates over (line, text, cells); cells are a `BadRowError` where they cannot be told apart."""

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
        """Read a line such as `7,"THE" TRUST`, which breaks the rule but not the meaning, if it stands alone."""
        if isinstance(error, _RunawayError) or self._feed.ended or len(self._feed.taken) > 1:
            return BadRowError("unclosed_quote", 'a quote (") opens in the row and does not close; close or remove it')
        try:
            return next(csv.reader([line], delimiter=self._delimiter))
        except csv.Error as again:
            return BadRowError("bad_csv", f"the row cannot be split into cells ({again}); correct it")


class _Lines:
    """Numbered lines that can be put back."""

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
    """What the csv module reads from: remembers the lines of the current record, and stops one that has no end."""

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
