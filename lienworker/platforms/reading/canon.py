"""From pairs and grids to the canonical record.

A platform that knows its labels better says so in `names`: a normalised label, with its section before it where
the label alone is ambiguous, and the field it stands for (an empty text: none).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.core.bounds import LONGEST_REMEMBERED
from lienworker.platforms.reading import people
from lienworker.platforms.reading.choosing import Said, chosen
from lienworker.platforms.reading.columns import VALUE_OF
from lienworker.platforms.reading.fields import fields_of
from lienworker.platforms.reading.gridfacts import contradicts, is_list_of_parcels, owners_of, shared_by_all
from lienworker.platforms.reading.grids import Grid
from lienworker.platforms.reading.groups import of_this_parcel, repeated_parcels, shown_id
from lienworker.platforms.reading.histories import take_grid, take_newest, take_sale, take_year_labels
from lienworker.platforms.reading.labels import FIELD_OF, ID_RANK, OTHER_ID, meaning, normalise, year_of_title
from lienworker.platforms.reading.pairs import Pair

Names = Mapping[str, str]
# A pair, the words by which its label is looked up, and the canonical field it is about (or an empty text).
Named = tuple[Pair, str, str]
_NO_NAMES: Names = {}
CLEANERS: dict[str, Callable[[object], Any]] = {
    "acres": clean.acres,
    "land_area_sqft": clean.square_feet,
    "building_area_sqft": clean.square_feet,
    "year_built": clean.year,
    "bedrooms": clean.integer,
    "bathrooms": clean.number,
    "homestead": clean.yes_no,
    "tax_year": clean.year,
    **dict.fromkeys(VALUE_OF, clean.money),
    **dict.fromkeys(("tax_amount", "total_due"), clean.money),
}
_AREAS = frozenset({"acres", "land_area_sqft"})
_OF_BILLS = frozenset({"tax_amount", "total_due"})
_AMOUNTS = frozenset({*VALUE_OF, *_AREAS, *_OF_BILLS, "tax_year"})
#: Where two words with two amounts are two sums, of which the page means one.
_ONE_WORD = frozenset({"total_due", "tax_year"})
#: Words that also head what is counted, or numbered.
_COUNTED = frozenset({"building", "buildings", "building s", "bldg", "land", "improvement", "improvements", "imps"})
_LEAST_WORTH = 100
_ANY_AREA = frozenset({"square feet", "square footage", "total sq ft", "total square feet", "total area", "gross area"})
_OF_LAND = re.compile(r"\b(?:land|lot|site)\b", re.I)
_WHOLE_ID = 5  # characters; a shorter one may be a part of another
_WHOLE_BLOCK = frozenset({"property_address", "legal_description", "property_use"})
_NAME_WORDS = dict.fromkeys(("name", "name s", "names", "name 1"), "owner_name") | {"name 2": "co_owner"}
# Whether what follows is the owner's place or the parcel's.
_PLACES = {"owner_name": True, "co_owner": True, "owner_address": True, "property_address": False, "parcel_id": False}
#: A line of an address that stands right below the street, with a label of its own.
_TOWN_LINE = re.compile(r"city (?:and )?st(?:ate)?(?: and)?(?: zip(?: ?code)?)?")
_BARE_PLACES = frozenset({"city", "zip", "zip code", "zipcode", "postal code"})
_ABOUT_ASSESSMENT = re.compile(r"assess", re.I)
_ABOUT_OWNER = re.compile(r"owner|taxpayer|mailing", re.I)
_MORE = frozenset("234")
_MORE_ADDRESS = re.compile(r"(?:mailing|mail|owner) addr(?:ess)?(?: line)? ?[2-4]")
_NAMES_SOMEBODY = re.compile(r"[A-Z]{2,}, [A-Z]{2,}|;|\b(?:LLC|INC|CORP|TRUST|LP|LTD)\b")
_PART_OF_YEAR = re.compile(r"half|install|quarter|semi", re.I)
_FORMER = re.compile(r"prior|previous|former|history|sale", re.I)
_ACRES = re.compile(r"\d\s*(?:ac|acres?)\b")
_SQUARE_FEET = re.compile(r"\d\s*(?:sq\.? ?f|sf\b|square f)")
_NO_LEGAL = re.compile(
    r"(?:do not|not to be|not for|for (?:the )?(?:full|complete)|see |click|view|this is|may not)", re.I
)
_SENTENCE_START = re.compile(r"(?:is|are|was|this|these) ", re.I)
_ABOUT_MARKET = re.compile(r"market|just|apprais", re.I)


def record_of(pairs: list[Pair], grids: Iterable[Grid] = (), names: Names = _NO_NAMES) -> Record:
    """The canonical record that pairs and grids amount to."""
    grids = list(grids)
    words = [meaning(pair.label) for pair in pairs]
    if groups := repeated_parcels(pairs, words):
        items = [record_of(group, names=names) for group in groups]
        return {"parcels": items, "fields": fields_of(pairs[: pairs.index(groups[0][0])], grids)}
    shared = [pair for grid in grids for pair in shared_by_all(grid)]
    pairs, words = pairs + shared, words + [meaning(pair.label) for pair in shared]
    named = [(pair, word, _field_of(pair, word, names)) for pair, word in of_this_parcel(pairs, words)]
    if not _ANY_AREA.isdisjoint(words):
        named = _areas_told_apart(named)
    record = _ids(named, names) | _facts(named, names)
    if any(map(contradicts, grids)):
        record["parcel_id"] = record["alternate_ids"].pop("account", None)
    for grid in grids:
        if is_list_of_parcels(grid):
            if not (record.get("parcel_id") and _is_told(record)):
                _take_list(record, grid, names)  # else they are the neighbours of the page's own parcel
        elif not record.get("owner_name") and (owners := owners_of(grid))[0]:
            record |= {"owner_name": owners[0][0], "owner_names": owners[0]}
            record["owner_address"] = record.get("owner_address") or owners[1]
        else:
            take_grid(record, grid)
    if (address := record.get("owner_address")) and record.get("owner_names"):
        record["owner_address"] = people.without_name(address, record["owner_names"])
    take_year_labels(record, pairs)
    take_sale(record, pairs)
    take_newest(record)
    # Blanks deeper down are the registry's to take out, once for the whole record.
    found = {name: value for name, value in record.items() if value or value == 0}
    if fields := fields_of(pairs, grids):
        found["fields"] = fields
    return found


def _areas_told_apart(named: list[Named]) -> list[Named]:
    """`Square Feet` beside acres, or below a title about land, are the land's."""
    fields = ["", *(name for _, _, name in named), ""]
    return [
        (pair, word, "land_area_sqft")
        if word in _ANY_AREA
        and name == "building_area_sqft"
        and ("acres" in (fields[at], fields[at + 2]) or _OF_LAND.search(pair.section))
        else (pair, word, name)
        for at, (pair, word, name) in enumerate(named)
    ]


def _is_told(record: Record) -> bool:
    """Whether a page says of its parcel what only its own page does."""
    facts = sum(record.get(name) is not None for name in (*CLEANERS, "legal_description", "property_use"))
    return bool(record.get("owner_name") or record.get("property_address")) or facts > 2


def field_of(pair: Pair, names: Names) -> str:
    """The canonical field that a pair is about, or an empty text."""
    return _field_of(pair, meaning(pair.label), names)


def _field_of(pair: Pair, word: str, names: Names) -> str:
    if names:
        if pair.section and (key := f"{normalise(pair.section)} {word}") in names:
            return names[key]
        if word in names:
            return names[word]
    if len(word) + len(pair.section) > LONGEST_REMEMBERED:
        return ""
    return _usual_field(word, pair.section)


@lru_cache(maxsize=4096)
def _usual_field(word: str, section: str) -> str:
    """What a label under a title is about; counties use the same few on all their pages."""
    name = FIELD_OF.get(word) or ("parcel_id" if word in ID_RANK else "")
    if section and name in VALUE_OF:
        return _in_section(name, word, section)
    if name in ("tax_amount", "total_due") and _PART_OF_YEAR.search(section):
        return ""  # of a half year, of an installment
    if name in ("city", "zip") and word == name and _ABOUT_OWNER.search(section):
        return ""  # where the owner lives
    return name or _weak_field(word, section)


def _weak_field(word: str, section: str) -> str:
    """Words that say too little alone, under a title that says the rest."""
    if word in _NAME_WORDS and "owner" in section.lower() and not _FORMER.search(section):
        return _NAME_WORDS[word]
    return "owner_address" if word == "address" and _ABOUT_OWNER.search(section) else ""


def _in_section(name: str, word: str, section: str) -> str:
    """Land and total of an *assessment* are not the market's, though they go by the same words."""
    if not _ABOUT_ASSESSMENT.search(section) or _ABOUT_MARKET.search(section):
        return name
    if name == "market_value" and word in ("total value", "total"):
        return "assessed_value"
    return "" if name in ("land_value", "building_value") else name


def _ids(named: list[Named], names: Names) -> Record:
    """The parcel id by the strongest label; the other ids under their own names."""
    ranked: list[tuple[int, str]] = []
    others: Record = {}
    for pair, word, name in named:
        if name == "parcel_id" and (value := shown_id(pair)):
            ranked.append((-1 if word in names else ID_RANK[word], value))
            others.setdefault(word.replace(" ", "_"), value)
            others.setdefault("internal", people.internal_number(pair.lines[0]))
        elif (kind := names.get(word, OTHER_ID.get(word, ""))) and (word in OTHER_ID or kind in _OTHER_KINDS):
            others.setdefault(kind, _other_id(pair.lines[0]))
    best = min(ranked, key=lambda found: found[0])[1] if ranked else others.get("account")
    if best and len(best) < _WHOLE_ID and (wholes := [value for _, value in ranked if best in value[1:]]):
        best = max(wholes, key=len)  # `PARCEL: 006` beside `PID: 1906300006000` is a piece of the id
    if best and (whole := others.get("prop_id")) and best == others.get("pin") and best.startswith(whole):
        best = whole  # a PIN that only extends the property's id names a piece of it
    return {"parcel_id": best, "alternate_ids": {name: value for name, value in others.items() if value != best}}


def _other_id(line: str) -> str | None:
    """An id has a digit; what has none is the text of a link (`Map`)."""
    return clean.identifier(line) if any(map(str.isdigit, line)) else None


_OTHER_KINDS = frozenset(OTHER_ID.values()) | {"folio", "strap", "pin", "ticket", "advertising_number", "geo_id"}


def _facts(named: list[Named], names: Names) -> Record:
    record: Record = {}
    amounts: dict[str, list[Said]] = {}
    before, address, of_owner = "", None, False
    owners: set[str] = set()
    for pair, word, name in named:
        if name in _PLACES:
            of_owner = _PLACES[name]
        elif of_owner and word in _BARE_PLACES:
            continue  # where the owner lives
        if name == "owner_name":
            _take_owner(record, pair)
        elif name == "co_owner":
            _take_co_owner(record, pair, owners)
        elif name in _AMOUNTS:
            _take_amount(amounts, name, pair, word, names)
        elif name and name not in _OTHER_KINDS and name != "parcel_id" and record.get(name) is None:
            record[name] = _cleaned(name, pair)
        elif word == "address" == normalise(pair.label) and before not in ("owner_name", "co_owner"):
            # Alone it is the property's, unless it stands right below the owner, where it may be either's.
            address = _cleaned("property_address", pair)
        before = name
    record["property_address"] = record.get("property_address") or address
    _take_more_address(record, named)
    return record | _settled(amounts)


def _take_more_address(record: Record, named: list[Named]) -> None:
    """`mailingAddress2` continues `mailingAddress1`, and so does `City, State, Zip` right below a mailing address."""
    if not record.get("owner_address"):
        return
    more = [pair.value for pair, word, _ in named if word[-1:] in _MORE and _MORE_ADDRESS.fullmatch(word)]
    if not more:
        below = [later for earlier, later in pairwise(named) if earlier[2] == "owner_address"]
        more = [pair.value for pair, word, _ in below[:1] if _TOWN_LINE.fullmatch(word)]
    record["owner_address"] = " ".join([record["owner_address"], *more])


def _settled(amounts: dict[str, list[Said]]) -> Record:
    """The amount of each field. An area of zero beside another one is an area that nobody measured."""
    if any(one.amount for name in (*_AREAS, "") for one in amounts.get(name, ())):
        for name in _AREAS & amounts.keys():
            amounts[name] = [one for one in amounts[name] if one.amount]
    return {name: chosen(said, any_word=name not in _ONE_WORD) for name, said in amounts.items() if name}


def _take_amount(amounts: dict[str, list[Said]], name: str, pair: Pair, word: str, names: Names) -> None:
    amount: float | None
    if name in VALUE_OF or name in _OF_BILLS:
        amount = _amount(pair, word, names)
    elif name == "acres" and _says_no_unit(word, names):
        name, amount = _measured(pair)
    else:
        amount = CLEANERS[name](pair.lines[0])
    if amount is not None:
        year = year_of_title(pair.section) if pair.section else None
        amounts.setdefault(name, []).append(Said(amount, word, year))


def _amount(pair: Pair, word: str, names: Names) -> float | None:
    """The amount of a line, or the one that begins it: `$299,201 Ag Land $0`."""
    amount = clean.money(pair.lines[0])
    if amount is None and any(sign in pair.first for sign in "$,"):
        amount = clean.money(pair.first)
    if amount is not None and round(amount, 2) != amount:
        return None  # a millage
    # `Buildings: 2` counts them.
    counts = word in _COUNTED and word not in names and amount is not None and 0 < amount < _LEAST_WORTH
    return None if counts and "$" not in pair.lines[0] else amount


def _says_no_unit(word: str, names: Names) -> bool:
    return word not in names and not any(part.startswith("acre") for part in word.split())


def _measured(pair: Pair) -> tuple[str, float | None]:
    """A `Lot Size` is acres or square feet only where it says so; else an area of no field."""
    shown = pair.value.lower()
    if _ACRES.search(shown):
        return "acres", clean.acres(pair.value)
    return "land_area_sqft" if _SQUARE_FEET.search(shown) else "", clean.square_feet(pair.value)


def _take_owner(record: Record, pair: Pair) -> None:
    names, address = people.owner_and_address(pair.lines)
    if not names or record.get("owner_name"):
        return
    if meaning(pair.label) == "ownership" and not _NAMES_SOMEBODY.search(names[0]):
        return  # `Ownership: Fee Simple` says how, not who
    record |= {"owner_name": names[0], "owner_names": names}
    if address and not record.get("owner_address"):
        record["owner_address"] = people.mailing_address(address)


def _take_co_owner(record: Record, pair: Pair, known: set[str]) -> None:
    """`known` are the owners so far; a page may name thousands, each of them again and again."""
    name = pair.lines[0]
    if not record.get("owner_name") or not people.is_owner(name):
        return
    if not known:
        known.update(record["owner_names"])
    if name not in known:
        known.add(name)
        record["owner_names"].append(name)


def _cleaned(name: str, pair: Pair) -> Any:
    if name == "owner_address":
        return people.mailing_address(pair.lines)
    if name in CLEANERS:
        return CLEANERS[name](pair.lines[0])
    value = clean.known(people.without_remarks(pair.lines if name in _WHOLE_BLOCK else pair.lines[:1]))
    return value if value and _is_sound(name, value) else None


def _is_sound(name: str, value: str) -> bool:
    """A situs that is an amount or an essay was never one, nor is a warning a legal description."""
    if name == "property_address":
        return len(value) <= 150 and clean.money(value) is None
    if name == "legal_description":
        return not _NO_LEGAL.match(value)
    if name == "property_use":
        return "$" not in value and not _SENTENCE_START.match(value)
    if name == "zip":
        return re.fullmatch(r"\d{5}(?:-\d{4})?", value) is not None
    return name != "city" or not any(map(str.isdigit, value))


def _take_list(record: Record, grid: Grid, names: Names) -> None:
    items = [
        record_of(
            [Pair(head, (cell,)) for head, cell in zip(grid.head, row, strict=True) if head and cell], names=names
        )
        for row in grid.rows
    ]
    if len(items) > 1:
        record.setdefault("parcels", []).extend(item for item in items if "parcel_id" in item)
