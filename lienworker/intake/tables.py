"""CSV and its relatives: commas, semicolons, tabs or pipes under a header in any order and spelling."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from lienworker.errors import InputError
from lienworker.intake.fields import RowMaker
from lienworker.intake.mapping import FIELDS, propose_mapping, resolve_mapping, squeeze
from lienworker.intake.records import Records
from lienworker.intake.rows import BadRowError, ParcelRow, Reject
from lienworker.intake.text import Batches, check_line

DELIMITERS = ",;\t|"
#: More than a spreadsheet has.
MAX_COLUMNS = 20_000


def looks_like_table(head: str, chosen: Mapping[str, str] | None = None) -> bool:
    """True if the first line names a column that we can use."""
    hint, line = _opening(head)
    cells = _split_header(line, hint or choose_delimiter(line, chosen))
    wanted = {squeeze(column) for column in (chosen or {}).values()}
    return not {"url", "parcel_id"}.isdisjoint(propose_mapping(cells)) or any(squeeze(c) in wanted for c in cells)


def choose_delimiter(line: str, chosen: Mapping[str, str] | None = None) -> str:
    """The one that makes the most known columns of the header; among equals, the most columns."""
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
    columns = _Columns(_read_header(records, name), chosen, name)
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


class _Columns:
    """Where in a row of the table each of our fields stands, and what the other columns are called."""

    def __init__(self, header: list[str], chosen: Mapping[str, str] | None, name: str) -> None:
        self.header = header
        self.mapping = resolve_mapping(header, chosen, name)
        places = {field: header.index(column) for field, column in self.mapping.items()}
        self._width = len(header)
        # A field without a column is taken from one place past the end, where `sort` puts an empty cell.
        self._pick = itemgetter(*(places.get(field, self._width) for field in FIELDS))
        names = _unique(header)
        self._others = [(names[i], i) for i in range(self._width) if i not in places.values()]

    def check(self, maker: RowMaker, name: str) -> None:
        """One sentence now instead of a reject for every row."""
        if "url" in self.mapping:
            return
        if "parcel_id" not in self.mapping:
            raise InputError(_no_column(self.header, name))
        if "platform" not in self.mapping and maker.default_platform is None:
            column = self.mapping["parcel_id"]
            raise InputError(
                f"{name} has parcel ids (in {column!r}) but no URLs and no platform to build them; give the platform"
            )

    def sort(self, cells: list[str]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Our fields in their order, and the rest by name."""
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
        """Cells may be missing at the end, or be there without anything in them."""
        if any(cell.strip() for cell in cells[self._width :]):
            raise BadRowError(
                "too_many_columns",
                f"the row has {len(cells)} columns where the header has {self._width}; "
                "put quotes around a value that holds the separator",
            )
        del cells[self._width :]
        cells.extend([""] * (self._width - len(cells)))


def _opening(head: str) -> tuple[str | None, str]:
    """The delimiter that Excel's `sep=;` names, if there is such a line, and the line of the header."""
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
    """Names to keep the other columns under: OWNER NAME, OWNER NAME 2; a column without a name is `column 5`."""
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
