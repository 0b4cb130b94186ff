"""An export as an Excel workbook: a sheet of parcels, and one each for their liens, taxes, values and sales.

Numbers are numbers and dates are dates, so that they can be summed and sorted; ids are text, so that none loses its
leading zeros. Rows go to disk as they come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from lienworker.errors import InputError, OperatorError
from lienworker.queries.export import Selection, flatten, table_of

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

#: Histories of a parcel, each on a sheet of its own.
_HISTORIES = ("liens", "taxes", "values", "sales")
#: What a row of a history says of its parcel.
_WHOSE = ("parcel_id", "county", "state", "task_id")
_MOST_ROWS = 1_048_576
_LONGEST_CELL = 32_767
#: Excel counts 15 digits; a longer number is an id, or would be another one.
_LARGEST = 10**15
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?")
_FIRST_DAY = datetime(1900, 3, 1)


def write_workbook(selection: Selection, fields: tuple[str, ...], out: BinaryIO) -> int:
    """Write all items as a workbook; return their number."""
    book = _new(out)
    table = table_of(selection, fields, frozenset(_HISTORIES))
    parcels = _Sheet(book, "parcels", list(table.columns))
    histories = {name: _Sheet(book, name, columns) for name, columns in _columns_of_histories(selection).items()}
    n = 0
    for item in selection.items():
        n += 1
        parcels.write(table.values(item))
        for name, row in _entries(item):
            histories[name].write(row)
    book.close()
    return n


def _new(out: BinaryIO) -> Workbook:
    try:
        from xlsxwriter import Workbook
    except ImportError:
        raise OperatorError("Excel needs the package xlsxwriter: pip install 'lienworker[excel]'.") from None
    return Workbook(out, {"constant_memory": True})


def _columns_of_histories(selection: Selection) -> dict[str, list[str]]:
    columns: dict[str, dict[str, None]] = {name: dict.fromkeys(_WHOSE) for name in _HISTORIES}
    for item in selection.items():
        for name, row in _entries(item):
            columns[name].update(dict.fromkeys(row))
    return {name: list(found) for name, found in columns.items()}


def _entries(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    whose = {name: item.get(name) for name in _WHOSE}
    for name in _HISTORIES:
        for entry in item["data"].get(name) or ():
            if isinstance(entry, dict):
                yield name, {**whose, **flatten(entry)}


class _Sheet:
    """One sheet, written row by row."""

    def __init__(self, book: Workbook, name: str, columns: list[str]) -> None:
        self._sheet: Worksheet = book.add_worksheet(name)
        self._name = name
        self._columns = columns
        self._day = book.add_format({"num_format": "yyyy-mm-dd"})
        self._moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._row = 0
        self._sheet.freeze_panes(1, 0)
        for column, title in enumerate(columns):
            self._sheet.write_string(0, column, title, book.add_format({"bold": True}))

    def write(self, values: Mapping[str, Any]) -> None:
        self._row += 1
        if self._row >= _MOST_ROWS:
            raise InputError(f"a sheet of Excel has {_MOST_ROWS:,} rows, and there are more {self._name}: use .csv.")
        for column, name in enumerate(self._columns):
            self._write_cell(column, values.get(name))

    def _write_cell(self, column: int, value: Any) -> None:
        if value is None or value == "":
            return
        if isinstance(value, bool):
            self._sheet.write_boolean(self._row, column, value)
        elif isinstance(value, int | float) and abs(value) < _LARGEST:
            self._sheet.write_number(self._row, column, value)
        elif moment := _moment(str(value)):
            style = self._day if len(str(value)) == len("2026-01-31") else self._moment
            self._sheet.write_datetime(self._row, column, moment, style)
        else:
            self._sheet.write_string(self._row, column, _fitting(str(value)))


def _moment(text: str) -> datetime | None:
    """A day or a time as the record writes it; UTC, since a workbook knows no zones."""
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return moment if moment >= _FIRST_DAY else None


def _fitting(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"
