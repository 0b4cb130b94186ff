"""Which column of a source is taken for what, worked out once for all of its rows.

The words are those of the arcgis platform (`vendors/arcgis/names.py`), which knows the habits of many layers. A page is
read label by label; a million rows of one table are not: here each column gets its use before the first row is read, so
that a person can be shown the whole mapping, and a row costs some tens of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lienworker.errors import InputError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record, in_order
from lienworker.platforms.reading import Pair
from lienworker.platforms.reading.canon import CLEANERS, field_of
from lienworker.platforms.reading.labels import ID_RANK, OTHER_ID, meaning
from lienworker.platforms.vendors.arcgis.names import (
    BARE,
    MAILING,
    MAILING_WORDS,
    NAMES,
    SALE,
    SITUS,
    spelled,
    squeezed,
)

#: What `--map` may name.
FIELDS = (
    "parcel_id", "county", "owner_name", "co_owner", "owner_address", "property_address", "city", "zip",
    "legal_description", "property_use", "acres", "land_area_sqft", "building_area_sqft", "year_built", "bedrooms",
    "bathrooms", "homestead", "land_value", "building_value", "market_value", "assessed_value", "taxable_value",
    "tax_year", "tax_amount", "total_due", "tax_status",
)  # fmt: skip
_OF_OWNER = frozenset({"owner_name", "co_owner", "owner_address"})
_COUNTY = frozenset({"county", "countyname", "propertycounty", "cntyname", "coname"})
_LATER = frozenset("23456789")
_SALE_PARTS = ("date", "price", "book", "page", "year", "month")
#: A mapped word of a page that is no field of a row: kinds of ids go to `alternate_ids`.
_ID_KINDS = frozenset({*OTHER_ID.values(), "folio", "strap", "pin", "ticket", "geo_id"})
_TEXTS = frozenset({*FIELDS} - {*CLEANERS})
_SITUS_PLACE = {word: place for place, words in enumerate(SITUS) for word in words}

Use = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Uses:
    """What each column is used for: the first of several for one field that has a value counts."""

    by_column: dict[str, Use] = field(default_factory=dict)

    def described(self) -> list[tuple[str, str]]:
        """Return pairs of what a column is taken for, in words, and its name."""
        return [(_in_words(use), column) for column, use in self.by_column.items() if use[0] != "rest"]

    @property
    def rest(self) -> list[str]:
        """The columns without a canonical name."""
        return [column for column, use in self.by_column.items() if use[0] == "rest"]

    def takes(self, name: str) -> bool:
        """Return whether a column is taken for this field."""
        return ("field", name) in self.by_column.values()


def _in_words(use: Use) -> str:
    kind, what = use
    if kind == "mailing":
        return "owner_address"
    if kind == "situs":
        return "property_address"
    if kind == "sale":
        return f"sales[{what[0]}].{what[1]}"
    return f"alternate_ids.{what}" if kind == "other_id" else str(what)


def uses_of(columns: Sequence[str], chosen: Mapping[str, str], name: str = "The source") -> Uses:
    """Return the use of each column. Raises InputError for a choice that the source cannot fulfil."""
    picked = {_find(columns, column, name): ("field", _known(what)) for what, column in chosen.items()}
    uses = {column: picked.get(column) or use for column, use in _guessed(columns).items()}
    for column, use in uses.items():
        if column not in picked and use[0] == "field" and use[1] in chosen:
            uses[column] = ("other_id", squeezed(column)) if use[1] == "parcel_id" else ("rest", column)
        if column not in picked and use == ("mailing", 0) and "owner_address" in chosen:
            uses[column] = ("rest", column)
    return Uses(uses)


def _known(what: str) -> str:
    if what not in FIELDS:
        raise InputError(f"cannot map {what!r}: the names to map are {', '.join(FIELDS)}")
    return what


def _find(columns: Sequence[str], column: str, name: str) -> str:
    for candidate in columns:
        if candidate == column:
            return candidate
    for candidate in columns:
        if squeezed(candidate) == squeezed(column):
            return candidate
    there = ", ".join(map(repr, columns[:30]))
    raise InputError(f"{name} has no column {column!r}; its columns are {there}")


def _guessed(columns: Sequence[str]) -> dict[str, Use]:
    """Return the use of each column by its name, and by its neighbors where a name says too little."""
    uses: dict[str, Use] = {}
    ranked: dict[str, int] = {}
    is_of_owner = False
    for column in columns:
        use, word = _use_of(column, is_of_owner)
        uses[column] = use
        if use == ("field", "parcel_id"):
            ranked[column] = -1 if word in NAMES else ID_RANK.get(word, 0)
        if use[0] == "mailing" or (use[0] == "field" and use[1] in _OF_OWNER):
            is_of_owner = True
        elif use in (("field", "property_address"), ("field", "parcel_id")):
            is_of_owner = False
    best = min(ranked, key=lambda column: ranked[column], default=None)
    for column in ranked:
        if column != best:
            uses[column] = ("other_id", meaning(spelled(column)).replace(" ", "_"))
    return uses


def _use_of(column: str, is_of_owner: bool) -> tuple[Use, str]:
    word = meaning(spelled(column))
    name = field_of(Pair(spelled(column), ("",)), NAMES)
    if squeezed(column) in _COUNTY:
        return ("field", "county"), word
    if is_of_owner and word in BARE:
        return ("mailing", BARE[word]), word
    if word in MAILING_WORDS and word not in BARE:
        return ("mailing", MAILING_WORDS[word]), word
    if sale := _sale_of(word):
        return ("sale", sale), word
    if word in OTHER_ID or name in _ID_KINDS:
        return ("other_id", NAMES.get(word) or OTHER_ID.get(word) or name), word
    if name in FIELDS:
        return ("field", name), word
    if word in _SITUS_PLACE:
        return ("situs", _SITUS_PLACE[word]), word
    return ("rest", column), word


def _sale_of(word: str) -> tuple[int, str] | None:
    """Return which sale, counted from 0, and which part of it: rolls have `SALE_PRC2` beside `SALE_PRC1`."""
    if word in SALE:
        return 0, SALE[word]
    if word[-1:] in _LATER and (first := f"{word[:-1]}1") in SALE:
        return int(word[-1]) - 1, SALE[first]
    return None


Put = Callable[[Any, Record, dict[str, Any]], None]


class Reader:
    """Makes the records of rows whose columns are all alike."""

    def __init__(self, uses: Uses, dates: Sequence[str] = ()) -> None:
        self._plan = [(column, *_steps_of(use, column in dates)) for column, use in uses.by_column.items()]

    def record(self, values: Mapping[str, Any]) -> Record:
        """Return the canonical record of a row."""
        record: Record = {}
        rest: dict[str, Any] = {}
        parts: dict[str, Any] = {}
        for column, kind, name, read in self._plan:
            value = values.get(column)
            if value is None or value == "":
                continue
            found = read(value)
            if found is None:
                continue
            if kind == "rest":
                rest[name] = found
            elif kind == "field":
                record.setdefault(name, found)
            else:
                parts.setdefault(kind, {}).setdefault(name, found)
        _finish(record, parts)
        if rest:
            record["fields"] = rest
        return in_order(record)


def _steps_of(use: Use, is_date: bool) -> tuple[str, Any, Callable[[Any], Any]]:
    """Return where a value goes and what it is read by."""
    kind, name = use
    if is_date:
        return kind, name, clean.epoch_date
    if kind == "field":
        return kind, name, _identifier if name == "parcel_id" else CLEANERS.get(name, clean.known)
    if kind == "other_id":
        return kind, name, _identifier
    if kind == "sale":
        return kind, name, {"date": clean.iso_date, "price": clean.money}.get(name[1], _shown)
    return kind, name, _shown


def _identifier(value: Any) -> str | None:
    """An id as shown; a layer may keep one as a number with a fraction of nothing."""
    return clean.identifier(int(value) if value.__class__ is float and value.is_integer() else value)


def _shown(value: Any) -> str | None:
    return clean.text(int(value) if value.__class__ is float and value.is_integer() else value)


def _finish(record: Record, parts: Mapping[str, Any]) -> None:
    """Put together what is made of several columns."""
    if other := parts.get("other_id"):
        record["alternate_ids"] = {name: value for name, value in other.items() if value != record.get("parcel_id")}
        if not record["alternate_ids"]:
            del record["alternate_ids"]
    if owner := record.get("owner_name"):
        second = record.pop("co_owner", None)
        record["owner_names"] = [owner, second] if second and second != owner else [owner]
    lines = parts.get("mailing", {})
    if any(place in lines for place in range(3)):
        record.setdefault("owner_address", " ".join(lines[place] for place in range(len(MAILING)) if place in lines))
    situs = parts.get("situs", {})
    if situs.get(0, "").strip("0 ") and 2 in situs:
        record.setdefault("property_address", " ".join(situs[place] for place in sorted(situs)))
    if sales := _sales(parts.get("sale", {})):
        record["sales"] = sales


def _sales(found: Mapping[tuple[int, str], Any]) -> list[Record]:
    """The sales that have a day, or at least a month and a year; the roll's order is newest first."""
    sales = []
    for n in sorted({place for place, _ in found}):
        part = {name: found.get((n, name)) for name in _SALE_PARTS}
        day = part["date"] or _month(part["year"], part["month"])
        if day:
            book = clean.joined((part["book"], part["page"]), "/")
            sales.append(
                {k: v for k, v in (("date", day), ("price", part["price"]), ("book_page", book)) if v is not None}
            )
    return sales


def _month(year: Any, month: Any) -> str | None:
    """`2021-05`: a roll that says no day."""
    number, which = clean.year(year), clean.integer(month)
    if number is None:
        return None
    return f"{number}-{which:02d}" if which is not None and 1 <= which <= 12 else str(number)
