"""Where on its page each value of a record stands. Worked out when somebody asks; parsing pays nothing for it.

A parser does not say which element it took a value from, and keeping that for every page would cost more than parsing.
So the page is searched for what the record says: a text with its spaces folded, an amount as a number, a date as a
date. Of several places the one beside a label of that field is taken, else the first; how many there are is said.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from lienworker.platforms.catalog.guarded import call_limited, page_facts, page_under_limits
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import CANONICAL, Page, Platform, Record
from lienworker.platforms.reading.canon import Names, field_of
from lienworker.platforms.reading.pairs import Pair

#: Of one record; a list of ten thousand parcels is not shown value by value.
MOST_ORIGINS = 300
#: Characters of an element that is the place of a value, and not of half the page.
_LONGEST = 600
#: Texts before a value among which its label is looked for: a sign may stand between them.
_LABEL_WITHIN = 2
#: Values that are looked for inside of others, and the characters of the shortest of them.
_MOST_SEARCHES = 50
_SHORTEST_INSIDE = 4
#: `0.25 acres`, `2024 Certified`; not the seventh of a month.
_MEASURED = re.compile(r"-?[\d,]*\.?\d+(?: ?[a-z%][a-z%. ]{0,15})?", re.I)
_UNREAD = frozenset({"script", "style", "noscript", "head", "option"})
_NO_NAMES: Names = {}


class Origin(NamedTuple):
    """A field and where it stands: the part of the result, the path in it, and the text there as it stands."""

    field: str
    value: Any
    part: str
    path: str
    text: str
    places: int
    """In how many places the page says the same; 0 where it is put together from several, and the first is shown."""


class _Spot(NamedTuple):
    text: str
    before: tuple[str, ...]
    """What stands before it, the nearest last."""
    place: Any


def origins_of(page: Page, record: Record, names: Names = _NO_NAMES) -> list[Origin]:
    """The places of the record's values, in the order of the record; what stands nowhere is left out.

    A parcel of several pages is searched in their order: the first that says a value is its place.
    """
    indexes = {part: _Index(list(_spots(one)), names) for part, one in page.parts.items()}
    found = (_first_origin(indexes, name, value) for name, value in _values(record))
    return [origin for origin in found if origin][:MOST_ORIGINS]


def _first_origin(indexes: Mapping[str, _Index], name: str, value: Any) -> Origin | None:
    found = (index.origin(name, value, part) for part, index in indexes.items())
    return next((origin for origin in found if origin), None)


def origins_guarded(page: Page, record: Record, platform: Platform) -> list[Origin]:
    """The same in a process with limits, for a page that nobody has looked at."""
    about = {"page": page_facts(page), "record": record, "names": dict(names_of(platform))}
    found = json.loads(call_limited("lienworker.platforms.catalog.provenance:origins_job", about, page.body))
    return [Origin(*item) for item in found]


def origins_job(about: dict[str, Any], body: bytes) -> bytes:
    """`origins_guarded` on the other side."""
    page = page_under_limits(about["page"], body)
    return json.dumps(origins_of(page, about["record"], about["names"])).encode()


def names_of(platform: Platform) -> Names:
    """What a platform's labels mean, where it says so."""
    return getattr(platform, "names", _NO_NAMES)


def _values(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in CANONICAL:
        if name in record and name != "fields":
            yield from _leaves(name, record[name])


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "fields":
                yield from _leaves(f"{name}.{key}", item)
    elif isinstance(value, list):
        for n, item in enumerate(value[:MOST_ORIGINS]):
            yield from _leaves(f"{name}[{n}]", item)
    else:
        yield name, value


class _Index:
    """The spots of a page by what they say."""

    def __init__(self, spots: list[_Spot], names: Names) -> None:
        self._names = names
        self._spots = spots
        self._folded: list[str] = []
        self._searches = _MOST_SEARCHES
        self._by: dict[object, list[_Spot]] = defaultdict(list)
        for spot in spots:
            label, colon, rest = spot.text.partition(":")
            keys = _keys(spot.text) | (_keys(rest) if colon and len(label) < 60 else set())
            for key in keys:
                self._by[key].append(spot)

    def origin(self, name: str, value: Any, part: str) -> Origin | None:
        spots = self._found(value)
        beside = [spot for spot in spots if self._is_labelled(spot, name)]
        if isinstance(value, bool):
            spots = beside  # a bare `No` says nothing of which question it answers
        places = len(spots)
        if not spots:
            spots = self._begins_with(value) or self._within(value)
        if not spots:
            return None
        spot = (beside or spots)[0]
        return Origin(name, value, part, _path(spot.place), spot.text, places)

    def _found(self, value: Any) -> list[_Spot]:
        if isinstance(value, bool):
            return self._by.get(("answer", value), [])
        if isinstance(value, int | float):
            return self._by.get(float(value), [])
        return self._by.get(_fold(str(value)), [])

    def _begins_with(self, value: Any) -> list[_Spot]:
        """The first piece of what is put together: the street of an address whose city stands elsewhere."""
        words = str(value).split() if isinstance(value, str) else []
        for n in range(len(words) - 1, 1, -1):
            if spots := self._by.get(_fold(" ".join(words[:n]))):
                return spots
        return []

    def _within(self, value: Any) -> list[_Spot]:
        """The smallest text that has it inside (`00-12 (3585) HX`); by a look at each, so not for every value."""
        wanted = _fold(value) if isinstance(value, str) else ""
        if len(wanted) < _SHORTEST_INSIDE or not self._searches:
            return []
        self._searches -= 1
        self._folded = self._folded or [_fold(spot.text) for spot in self._spots]
        around = [spot for spot, text in zip(self._spots, self._folded, strict=True) if wanted in text]
        return [min(around, key=lambda spot: len(spot.text))] if around else []

    def _is_labelled(self, spot: _Spot, name: str) -> bool:
        field = name.partition("[")[0].partition(".")[0]
        wanted = {field, "owner_name"} if field == "owner_names" else {field}
        labels = (*spot.before, spot.text.partition(":")[0])
        return any(label and field_of(Pair(label.rstrip(" :"), ("x",)), self._names) in wanted for label in labels)


def _fold(text: str) -> str:
    return "".join(text.split()).lower()


def _keys(text: str) -> set[object]:
    """What a text may be in a record: itself, an amount, a date, an answer."""
    keys: set[object] = {_fold(text)}
    if any(map(str.isdigit, text)):
        keys |= {clean.money(text), clean.iso_date(text), clean.number(text) if _MEASURED.fullmatch(text) else None}
    elif (answer := clean.yes_no(text)) is not None:
        keys.add(("answer", answer))
    return keys - {None, ""}


def _path(place: Any) -> str:
    return place if isinstance(place, str) else str(place.getroottree().getpath(place))


def _spots(page: Page) -> Iterator[_Spot]:
    if page.is_json:
        yield from _json_spots(page.json(), "$", "")
    elif "<" in page.text[:2000]:
        yield from _html_spots(page.selector.root)
    else:
        for n, line in enumerate(page.text.splitlines(), start=1):
            for cell in (line, *line.replace("|", "\t").replace(",", "\t").split("\t")):
                if text := clean.text(cell.strip('" ')):
                    yield _Spot(text, (), f"line {n}")


def _json_spots(data: Any, path: str, name: str) -> Iterator[_Spot]:
    if isinstance(data, dict):
        for key, item in data.items():
            yield from _json_spots(item, f"{path}.{key}", str(key))
    elif isinstance(data, list):
        for n, item in enumerate(data):
            yield from _json_spots(item, f"{path}[{n}]", name)
    elif (text := clean.text(data)) is not None:
        yield _Spot(text, (name,), path)


def _html_spots(root: Any) -> Iterator[_Spot]:
    """Every element with a short text, innermost first, and its pieces: the lines of a cell, what follows a label.

    An element that says no more than its child is passed over.
    """
    said: dict[Any, str] = {}
    before: list[str] = []
    steps = etree.iterwalk(root, events=("start", "end"))
    for event, element in steps:
        if event == "start":
            if element.tag in _UNREAD:
                steps.skip_subtree()
            continue
        if element.tag in _UNREAD:
            continue
        inner = [(said.pop(child, ""), child.tail or "") for child in element]
        text = " ".join(" ".join([element.text or "", *(word for pair in inner for word in pair)]).split())
        said[element] = text
        if element.tag == "pre" and len(text) > _LONGEST:
            lines = map(clean.text, (element.text or "").splitlines())
            yield from (_Spot(line, (), element) for line in lines if line)
        if not text or len(text) > _LONGEST or any(piece == text for piece, _ in inner):
            continue
        near = tuple(before[-_LABEL_WITHIN:])
        yield _Spot(text, near, element)
        if not inner:
            before.append(text)
            continue
        for piece in (element.text, *(tail for _, tail in inner)):
            if (line := clean.text(piece)) and line != text:
                yield _Spot(line, near, element)
                before.append(line)
