"""What a grid is about, told by the words of its head, and its rows as entries of the record's lists."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.reading import people
from lienworker.platforms.reading.columns import KINDS, LIENS, VALUES, YEAR_WORDS, Cleaner
from lienworker.platforms.reading.grids import Grid
from lienworker.platforms.reading.labels import FIELD_OF, ID_RANK, OTHER_ID, meaning, without_year
from lienworker.platforms.reading.pairs import Pair

Facts = tuple[str, list[Record]]
#: Columns of a head that is remembered from page to page.
_WIDEST_REMEMBERED = 100
_OWNER_HEADS = frozenset({"ownership", "owners", "owner type", "title holder", "titleholder", "owner"})
_ABOUT_A_PARCEL = frozenset({"owner_name", "property_address", "certificate_number", "face_amount", "total_due"})
_OF_OWNERS = re.compile(r"^(?!.*(?:prior|prev|former|sale|history)).*owner", re.I)
_MOST_OWNERS = 10
_LINE_WORDS = (
    "line|ln|line no|line number|lines|seq|sequence|unit price|unit type|adjusted unit price|adj unit price|unit rate"
    "|depth factor|depth chart|front feet|eff front|effective frontage|land line|land type|subarea|sub area"
)
_LINE_HEADS = frozenset(_LINE_WORDS.split("|"))
# What a table of exemptions or permits gives a year and an amount is no tax.
_NO_HISTORY = frozenset({"exemption", "exemption type", "exemption code", "permit", "permit number", "permit type"})
_OF_A_SALE = frozenset({"owner_name", "co_owner"})
_OF_A_BILL = frozenset({"tax_amount", "total_due"})
_YEARS = frozenset(YEAR_WORDS.split("|"))
_ACCOUNTS = frozenset(word for word, kind in OTHER_ID.items() if kind == "account")
_NAMES_PARCEL = _ACCOUNTS | ID_RANK.keys()
_TOLD_ONCE = _NAMES_PARCEL | {word for word, name in FIELD_OF.items() if name == "owner_name"}


def facts_of(grid: Grid) -> Facts | None:
    """(`sales`, rows), (`taxes`, rows) …, or None where the head does not say."""
    if grid.facts is None:
        grid.facts = (_facts(grid),)
    found: Facts | None = grid.facts[0]
    return found


def _facts(grid: Grid) -> Facts | None:
    words = grid.words
    if words and ((words[0] in _OWNER_HEADS and "name" in words) or (words[0] in _NO_HISTORY and not grid.about)):
        return None
    if years := _years(grid):
        return "values", _by_year(grid, years)
    look_up = _kind if len(words) <= _WIDEST_REMEMBERED else _kind.__wrapped__
    kind = look_up(tuple(words), grid.about)
    if kind is None:
        return None
    return kind.name, [entry for row in grid.rows if (entry := _entry(row, kind))]


class _Kind(NamedTuple):
    name: str
    columns: tuple[tuple[int, str, Cleaner], ...]
    """The place, the name and the cleaner of each column that has a name."""
    telling: frozenset[str]
    """Names of which a row must have at least one."""


@lru_cache(maxsize=1024)
def _kind(words: tuple[str, ...], about: str) -> _Kind | None:
    """What a table with this head is; counties use the same few heads on all their pages."""
    for name, columns, needed in KINDS:
        known = tuple((place, *columns[word]) for place, word in enumerate(words) if word in columns)
        roles = {role for _, role, _ in known}
        if about == name if about else any(need <= roles for need in needed):
            return _Kind(name, known, frozenset().union(*needed))
    return None


def _entry(row: list[str], kind: _Kind) -> Record | None:
    entry: Record = {}
    for place, name, wash in kind.columns:
        if cell := row[place]:
            if name not in entry:
                entry[name] = wash(cell)
            if name == "year":
                if entry["year"] is None:
                    return None  # `Total:` where the year should be
                if not cell.isdigit():
                    entry |= kind_of(cell)
    if "book" in entry:
        entry.setdefault("book_page", clean.joined((entry.pop("book"), entry.pop("page", None)), "/"))
    entry = clean.compact(entry)
    # A row without what makes it a sale or a bill is a subtotal or a remark.
    return entry if len(entry) > 1 and not kind.telling.isdisjoint(entry) else None


def _years(grid: Grid) -> list[int | None]:
    """The year of each column, where the head is years (after one or two columns of names)."""
    start = next((place for place, head in enumerate(grid.head[:3]) if _head_year(head)), 0)
    # What stands above the names may say what the columns are (`Assessed Year | 2024 | 2023`).
    if not start or any(head and not _head_year(head) for head in grid.head[start:]):
        return []
    return [_head_year(head) for head in grid.head]


def _head_year(head: str) -> int | None:
    return clean.year(head) if head and len(head) <= 40 else None


def _by_year(grid: Grid, years: list[int | None]) -> list[Record]:
    entries: dict[str, Record] = {}
    start = next(place for place, year in enumerate(years) if year)
    labels = [next((cell for cell in reversed(row[:start]) if cell), "") for row in grid.rows]
    words = [_value_word(label) for label in labels]
    # The part that is assessed comes after what it is a part of, wherever it stands.
    for word, row in sorted(zip(words, grid.rows, strict=True), key=lambda pair: _is_assessed_part(pair[0])):
        name = VALUES.get(word, ("", clean.money))[0]
        for head, year, cell in zip(grid.head[start:], years[start:], row[start:], strict=True):
            amount = clean.money(cell)
            if year and amount is not None:
                entry = entries.setdefault(head, {"year": year, **kind_of(head)})
                if name:
                    entry.setdefault(name, amount)
    return [entry for entry in entries.values() if entry.keys() - {"year", "kind"}]


def _value_word(label: str) -> str:
    word = without_year(label.lstrip("+=- "))[0]
    return word if word in VALUES else meaning(label.lstrip("+=- "))


def _is_assessed_part(word: str) -> bool:
    return "assess" in word and VALUES.get(word, ("",))[0] in ("land", "building")


def kind_of(head: str) -> Record:
    """Whether a year's values are certified or still being worked on, where its head says so."""
    word = head.lower()
    if "certified" in word or "final" in word:
        return {"kind": "certified"}
    return {"kind": "working"} if any(mark in word for mark in ("working", "prelim", "proposed")) else {}


def owners_of(grid: Grid) -> tuple[list[str], str | None]:
    """The names of a table of owners (`Ownership | Name | …`, `Owner(s) | Mailing Address`), and of no other table.

    With their address, where a column of it goes on from row to row.
    """
    words = grid.words
    if not words or facts_of(grid):
        return [], None
    if "name" in words and (words[0] in _OWNER_HEADS or _OF_OWNERS.search(grid.title)):
        place = words.index("name")
        return [people.name_of(row[place]) for row in grid.rows if row[place]], None
    fields = [FIELD_OF.get(word, "") for word in words]
    if fields[0] != "owner_name" or "owner_address" not in fields or len(grid.rows) > _MOST_OWNERS:
        return [], None
    names = [people.name_of(row[0]) for row in grid.rows if people.is_owner(row[0])]
    place = fields.index("owner_address")
    return names, people.mailing_address([row[place] for row in grid.rows if row[place]]) if names else None


def is_list_of_parcels(grid: Grid) -> bool:
    """One parcel a row: each has its id, and something that tells whose or what it is."""
    words = grid.words
    if len(grid.rows) < 2 or _NAMES_PARCEL.isdisjoint(words):
        return False
    about = {FIELD_OF.get(word) for word in words} | {LIENS.get(word, ("",))[0] for word in words}
    return bool(about & _ABOUT_A_PARCEL) and not _is_history(words, grid)


def said_of_parcel(grid: Grid) -> list[Pair]:
    """What the only row of a table says of the parcel: nothing, where the row is one line of its land."""
    if len(grid.rows) != 1 or not _LINE_HEADS.isdisjoint(grid.words):
        return []
    unsaid = _not_of_parcel(grid)
    return [pair for pair in grid.pairs() if FIELD_OF.get(without_year(pair.label)[0]) not in unsaid]


def _not_of_parcel(grid: Grid) -> frozenset[str]:
    """Fields that the row of a sale or of a fee has too, and means otherwise."""
    found = facts_of(grid)
    kind = found[0] if found else ""
    if kind == "sales" and not any(word in ID_RANK for word in grid.words):
        return _OF_A_SALE  # who bought then, not who owns now
    has_sum = any(word.startswith("total") for word in grid.words)
    return frozenset() if kind == "taxes" or has_sum else _OF_A_BILL


def shared_by_all(grid: Grid) -> list[Pair]:
    """What all rows of a history say alike (the account, the owner) is said of the parcel."""
    words = grid.words
    if len(grid.rows) < 2 or _TOLD_ONCE.isdisjoint(words) or not _is_history(words, grid):
        return []
    columns = zip(grid.head, words, zip(*grid.rows, strict=True), strict=True)
    return [
        Pair(head, (cells[0],))
        for head, word, cells in columns
        if word in _TOLD_ONCE and cells[0] and len(set(cells)) == 1
    ]


def contradicts(grid: Grid) -> bool:
    """A history of one account whose rows have different ids: then those number the bills, not the parcel."""
    words = grid.words
    places = [place for place, word in enumerate(words) if word in ID_RANK]
    if not places or len(grid.rows) < 2 or not _is_history(words, grid):
        return False
    return any(len({row[place] for row in grid.rows}) > 1 for place in places)


def _is_history(words: list[str], grid: Grid) -> bool:
    """Bills of one parcel repeat its account, or differ in their years."""
    account = next((place for place, word in enumerate(words) if word in _ACCOUNTS), None)
    if account is not None and len({row[account] for row in grid.rows}) == 1:
        return True
    place = next((place for place, word in enumerate(words) if word in _YEARS), None)
    return place is not None and len({row[place] for row in grid.rows}) == len(grid.rows) > 2
