"""What a page says of more than one year or deed: values, bills, liens and sales, and the head they give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.reading.columns import SALES, VALUE_OF
from lienworker.platforms.reading.gridfacts import facts_of, kind_of
from lienworker.platforms.reading.grids import Grid
from lienworker.platforms.reading.labels import FIELD_OF, normalise, without_year, year_of_title
from lienworker.platforms.reading.pairs import Pair

# Words that mean a sale even outside a table of sales.
_SALE_WORDS = frozenset(
    {"sale date", "sale price", "sales date", "sales price", "date of sale", "last sale date", "last sale price"}
    | {"transfer date", "transfer price"}
)
_BESIDE_A_SALE = _SALE_WORDS | {
    "grantor", "grantee", "seller", "buyer", "deed type", "book page", "book and page", "instrument", "legal reference",
}  # fmt: skip


_SUMS = {"market_value": "market", "assessed_value": "assessed"}
#: Entries of one year that a new one may complete; more than a few contradict each other anyway.
_MOST_OF_A_YEAR = 100


def take_grid(record: Record, grid: Grid) -> None:
    found = facts_of(grid)
    if found is None:
        return
    known = _history(record, found[0])
    for entry in found[1]:
        if found[0] == "values" and (same := known.completed_by(entry)):
            same |= entry
        else:
            known.add(entry)


def _history(record: Record, name: str) -> _Entries:
    known = record.get(name)
    if not isinstance(known, _Entries):  # a platform may have made a list of its own
        known = record[name] = _Entries(known or ())
    return known


class _Entries(list[Record]):
    """A history that knows what it holds: looking through all of it for each new row takes hours on a hostile page."""

    def __init__(self, entries: Iterable[Record]) -> None:
        super().__init__()
        self._seen: set[frozenset[tuple[str, Any]]] = set()
        self._by_year: dict[tuple[Any, Any], list[Record]] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Record) -> None:
        """Adds an entry that is not there yet."""
        items = frozenset(
            (name, str(value) if isinstance(value, (dict, list)) else value) for name, value in entry.items()
        )
        if items not in self._seen:
            self._seen.add(items)
            self._by_year.setdefault((entry.get("year"), entry.get("kind")), []).append(entry)
            self.append(entry)

    def completed_by(self, entry: Record) -> Record | None:
        """The entry of the same year, where the new one contradicts none of it."""
        same_year = self._by_year.get((entry.get("year"), entry.get("kind")), [])
        return next((other for other in same_year[:_MOST_OF_A_YEAR] if _completes(entry, other)), None)


def _completes(entry: Record, other: Record) -> bool:
    """The same year told in two tables (appraised, assessed) is one entry; where they contradict, it is two."""
    if "year" not in entry or entry.get("kind") != other.get("kind"):
        return False
    return entry["year"] == other.get("year") and all(other.get(name, value) == value for name, value in entry.items())


def take_year_labels(record: Record, pairs: list[Pair]) -> None:
    """Labels that name their year (`2023 Just Value`), or stand below a title that does, add to that year's values."""
    by_year: dict[tuple[int, str | None], Record] | None = None
    for pair in pairs:
        word, year = without_year(pair.label)
        if (name := FIELD_OF.get(word)) not in VALUE_OF or (year := year or year_of_title(pair.section)) is None:
            continue
        if (amount := clean.money(pair.lines[0])) is None:
            continue
        known = _history(record, "values")
        if by_year is None:
            by_year = {(entry["year"], entry.get("kind")): entry for entry in reversed(known) if "year" in entry}
        kind = kind_of(pair.section)
        entry = by_year.get((year, kind.get("kind")))
        if entry is None:
            entry = by_year[year, kind.get("kind")] = {"year": year, **kind}
            known.append(entry)
        entry.setdefault(VALUE_OF[name], amount)


def take_sale(record: Record, pairs: list[Pair]) -> None:
    """The sale that a page tells in pairs, where it has no table of sales."""
    if record.get("sales"):
        return
    sales: list[Record] = []
    for pair in pairs:
        word = normalise(pair.label)
        if word not in (_BESIDE_A_SALE if sales else _SALE_WORDS):
            continue
        name, wash = SALES[word]
        if not sales or name in sales[-1]:
            sales.append({})
        sales[-1][name] = wash(pair.lines[0])
    kept = [sale for sale in clean.compact(sales) if "date" in sale or sale.get("price")]
    if kept:
        record["sales"] = kept


def take_newest(record: Record) -> None:
    """The head of the record from the newest year of its histories, where the page has no head of its own."""
    values = [entry for entry in record.get("values", ()) if entry.get("year")]
    if values:
        newest = max(values, key=lambda entry: int(entry["year"]))
        older = [entry for entry in values if entry["year"] != newest["year"]]
        # A head that agrees with the newest year is of that year; what is said otherwise of it is said of a part.
        is_of_newest = any(record.get(name) == newest.get(column, "") for name, column in _SUMS.items())
        for name, column in VALUE_OF.items():
            known = record.get(name)
            is_older = known is not None and any(entry.get(column) == known for entry in older)
            if known is None or ((is_of_newest or is_older) and column in newest):
                record[name] = newest.get(column)
    taxes = [entry for entry in record.get("taxes", ()) if entry.get("year")]
    if taxes and record.get("tax_amount") is None:
        newest = max(int(entry["year"]) for entry in taxes)
        bills = [entry for entry in taxes if entry["year"] == newest]
        # One of several installments is not what the year's taxes are.
        record |= {"tax_year": newest, "tax_amount": bills[0].get("amount") if len(bills) == 1 else None}
