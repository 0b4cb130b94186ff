"""A sheet of a workbook (.xlsx, .xls, .ods) as CSV, row by row as it stands there. Runs in a process with limits.

The line numbers of the CSV are the row numbers of the sheet: rows above the header are blank lines, and a line break
inside a cell is a space. A number that its format shows with zeros or hyphens (`00123`, `12-34-56`) is written so,
because that is the id a person sees.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
    load_workbook,
)

from lienworker.errors import PageError
from lienworker.intake.fields import propose_mapping, squeeze
from lienworker.intake.number_formats import shown_numbers

#: Rows in which a header is looked for: titles, dates and notes stand above it.
_LOOKED_AT = 50
#: Excel keeps fifteen digits of a number; a longer one has been rounded.
_MOST_EXACT = 10**15


def convert(about: Mapping[str, Any], body: bytes) -> bytes:
    """Return the sheet with the parcels as gzipped CSV. A `PageError` has the sentence for people."""
    try:
        return _converted(about, body)
    except (PageError, MemoryError, RecursionError):
        raise
    except Exception as error:  # the libraries fail in many ways on what is damaged
        raise _unreadable(error) from None


def _converted(about: Mapping[str, Any], body: bytes) -> bytes:
    workbook = _open(body)
    name, first = _choose(workbook, about)
    shown = shown_numbers(body, name)
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="", write_through=True)
        text.write("\n" * first)
        writer = csv.writer(text, lineterminator="\n")
        for at, row in islice(enumerate(_rows(workbook, name)), first, None):
            writer.writerow(_written(row, at, shown))
        text.detach()
    return out.getvalue()


def _open(body: bytes) -> CalamineWorkbook:
    try:
        return load_workbook(io.BytesIO(body))
    except PasswordError:
        raise _refused("is protected with a password; save it without one") from None
    except (CalamineError, OSError, ValueError) as error:
        raise _unreadable(error) from None


def _choose(workbook: CalamineWorkbook, about: Mapping[str, Any]) -> tuple[str, int]:
    """Return the name of the sheet and the place of its header, counted from 0."""
    names = [about["sheet"]] if about["sheet"] else _visible(workbook)
    if about["sheet"] and about["sheet"] not in workbook.sheet_names:
        there = ", ".join(map(repr, workbook.sheet_names[:12]))
        raise _refused(f"has no sheet {about['sheet']!r}; its sheets are {there}")
    if about["header_row"]:
        _one_of(names)
        return names[0], about["header_row"] - 1
    wanted = {squeeze(column) for column in about["columns"]}
    found = {name: at for name in names if (at := _header(_rows(workbook, name), wanted)) is not None}
    if not found:
        raise _refused(
            f"has no sheet with a column for a URL or a parcel id in its first {_LOOKED_AT} rows: name the column url"
            " or parcel_id, map one to it, or say which row is the header (--header-row)"
        )
    _one_of(list(found))
    return next(iter(found.items()))


def _one_of(names: list[str]) -> None:
    if len(names) > 1:
        raise _refused(
            f"has parcels on {len(names)} sheets ({', '.join(map(repr, names[:12]))}); say which one (--sheet)"
        )


def _visible(workbook: CalamineWorkbook) -> list[str]:
    return [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
    ]


def _header(rows: Iterator[list[Any]], wanted: set[str]) -> int | None:
    """Return the place of the first row that names a column we can use."""
    for at, row in enumerate(islice(rows, _LOOKED_AT)):
        cells = [cell for cell in row if isinstance(cell, str) and cell]
        if not {"url", "parcel_id"}.isdisjoint(propose_mapping(cells)) or any(squeeze(c) in wanted for c in cells):
            return at
    return None


def _rows(workbook: CalamineWorkbook, name: str) -> Iterator[list[Any]]:
    """Yield all rows from the sheet's first on; the library skips the blank ones at the top and at the left."""
    try:
        sheet: CalamineSheet = workbook.get_sheet_by_name(name)
    except CalamineError as error:
        raise _refused(f"has a sheet {name!r} that cannot be read ({error}); save it as CSV") from None
    if sheet.start is None:
        return
    above, left = sheet.start
    for _ in range(above):
        yield []
    for row in sheet.iter_rows():
        yield [""] * left + list(row)


def _written(row: Sequence[Any], at: int, shown: Mapping[tuple[int, int], str]) -> list[str]:
    cells = [shown.get((at, column)) or _text(cell) for column, cell in enumerate(row)]
    return cells if any(cells) else []


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return " ".join(cell.splitlines()) if not cell.isprintable() else cell
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return _number(cell)
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return "" if cell is None else str(cell)


def _number(value: float) -> str:
    """Write 1234.0 as 1234; what Excel has rounded keeps the form that gives it away."""
    if abs(value) >= _MOST_EXACT:
        return f"{value:.14E}"
    return str(int(value)) if value.is_integer() else repr(value)


def _unreadable(error: Exception) -> PageError:
    words = " ".join(str(error).split())[:120] or type(error).__name__
    return _refused(f"is a workbook that cannot be read ({words}); save the sheet as CSV")


def _refused(why: str) -> PageError:
    return PageError("workbook", why)
