"""The tables of qPublic and Beacon: what a module's title says of them is put into their heads.

Counties show the same heads (`Year | Land | Building | Total`) for what a parcel is worth and for the part of it that
is assessed; bills come a year a column, or with both installments in one cell.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.bounds import check_cells
from lienworker.platforms.reading import Grid
from lienworker.platforms.reading.elements import UNREAD, cells_of, lines_of
from lienworker.platforms.reading.labels import normalise

_ASSESSED = re.compile(r"assess", re.I)
_MARKET = re.compile(r"apprais|market|100 ?%", re.I)
_PAYABLE = re.compile(r"(?:19|20)\d\d\s+pay(?:able)?\b", re.I)
_ONLY_PAYABLE = re.compile(r"(?:19|20)\d\d\s+payable", re.I)
_NEW_TAB = re.compile(r"\s*\(?opens in (?:a )?new (?:tab|window)\)?", re.I)
# What a year's bill comes to, the last word on it first.
_TAX_ROWS = ("total taxes due", "total tax due", "total tax", "net taxes due", "net tax due", "net tax", "total taxes")


def shaped(table: Any, title: str) -> list[Grid]:
    """The grids that a table amounts to, below the title of its module."""
    elements = list(table.iter("tr"))
    rows = [[_text(cell) for cell in cells_of(row)] for row in elements]
    start = next((n for n, row in enumerate(rows) if _is_head(row)), None)
    if start is None:
        return []
    head = rows[start]
    if any(map(_PAYABLE.match, head)):
        bills = _bills_by_column(head, rows[start + 1 :])
        return bills if any(map(_ONLY_PAYABLE.match, head)) else [Grid(head, _fitted(rows[start + 1 :], head)), *bills]
    below = zip(elements[start + 1 :], rows[start + 1 :], strict=True)
    by_year = any("year" in normalise(name) for name in head)  # a sale of two lines is still one sale
    body = [part for element, row in below for part in (_parts(element, row) if by_year else [row])]
    if _ASSESSED.search(title) and not _MARKET.search(title):
        years = [place for place, name in enumerate(head) if clean.year(name)]
        if not years:
            head = [_assessed(name) for name in head]
        elif "assessed" in title.lower():
            body = [[*map(_assessed, row[: years[0]]), *row[years[0] :]] for row in body]
    return [_paid_or_not(Grid(head, _fitted(body, head)))] if body else []


def shown(line: str) -> str:
    """Without what only a screen reader says of a link."""
    return _NEW_TAB.sub("", line) if "opens in" in line else line


def _is_head(row: list[str]) -> bool:
    """The first row of two texts, or of a year alone above its column."""
    return sum(map(bool, row)) > 1 or (len(row) > 1 and any(map(clean.year, row)))


def _text(cell: Any) -> str:
    return shown(" ".join(lines_of(cell)))


def _fitted(rows: list[list[str]], head: list[str]) -> list[list[str]]:
    check_cells(len(head), len(rows))
    return [(row + [""] * len(head))[: len(head)] for row in rows if any(row)]


def _assessed(head: str) -> str:
    """Land and building at a part of their worth have no field of their own; their sum has."""
    word = normalise(head)
    if word in ("total", "total value", "value"):
        return "Assessed Value"
    return f"Assessed part of {head}" if word in ("land", "building", "land value", "building value") else head


def _bills_by_column(head: list[str], rows: list[list[str]]) -> list[Grid]:
    """`2026 Payable | 2025 Payable`: each column is a bill."""
    named = {normalise(label.lstrip("+=- ")): row for row in rows for label in _label(row, head)}
    amounts = next((named[word] for word in _TAX_ROWS if word in named), None)
    if amounts is None:
        return []
    bills = [[name, cell] for name, cell in zip(head, amounts, strict=False) if _PAYABLE.match(name) and cell]
    return [Grid(["Year", "Total Tax"], bills, about="taxes")] if bills else []


def _label(row: list[str], head: list[str]) -> list[str]:
    """The name of a row: the last text before its first year, where signs may stand before it."""
    first = next(place for place, name in enumerate(head) if clean.year(name))
    return [cell for cell in row[:first] if cell][-1:]


def _parts(element: Any, row: list[str]) -> list[list[str]]:
    """A row that has both installments in its cells, broken at the same place, as two rows."""
    if next(element.iter("br"), None) is None:
        return [row]
    broken = [_runs(cell) for cell in cells_of(element)]
    sizes = {len(runs) for runs in broken if len(runs) > 1}
    if len(sizes) != 1 or sum(len(runs) > 1 for runs in broken) < 3:
        return [row]
    (size,) = sizes
    return [[runs[place] if len(runs) > 1 else runs[0] for runs in broken] for place in range(size)]


def _runs(cell: Any) -> list[str]:
    """The texts between the breaks of a cell, the empty ones too."""
    runs = [cell.text or ""]
    for element in cell.iterdescendants():
        if element.tag == "br":
            runs.append("")
        elif isinstance(element.tag, str) and element.tag not in UNREAD:  # no comment, no script
            runs[-1] += element.text or ""
        runs[-1] += element.tail or ""
    return [shown(clean.text(run) or "") for run in runs]


def _paid_or_not(grid: Grid) -> Grid:
    """A column `Paid` of yes and no is a status, no amount."""
    place = next((n for n, word in enumerate(grid.words) if word == "paid"), None)
    if place is None or not grid.rows or any(clean.yes_no(row[place]) is None for row in grid.rows if row[place]):
        return grid
    head = [*grid.head[:place], "Status", *grid.head[place + 1 :]]
    said = {True: "Paid", False: "Unpaid", None: ""}
    return Grid(
        head, [[*r[:place], said[clean.yes_no(r[place])], *r[place + 1 :]] for r in grid.rows], about=grid.about
    )
