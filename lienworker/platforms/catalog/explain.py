"""Which rule found what, and what it saw: for the developer of a parser.

Rules are asked again, one by one, about a page that was parsed already. What no rule explains was worked out by the
platform's own code; then it is said where on the page the value stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lienworker.platforms.catalog.provenance import Origin, names_of, origins_of
from lienworker.platforms.core.base import Page, Platform, Record, Target
from lienworker.platforms.reading import Grid, Names, Pair, read
from lienworker.platforms.reading.canon import field_of
from lienworker.platforms.reading.elements import lines_of
from lienworker.platforms.reading.gridfacts import facts_of
from lienworker.platforms.rules import RulePlatform
from lienworker.platforms.selectors import SelectorPlatform

_LONGEST_SEEN = 300


@dataclass(frozen=True)
class Clue:
    """One field: its value in the record, the rule that looked for it, what the rule saw, and where that stands."""

    field: str
    value: Any
    rule: str
    saw: str
    where: str = ""


def explain(platform: Platform, page: Page, target: Target, record: Record, field: str | None = None) -> list[Clue]:
    """All that is known about each field of the record; with `field` about that one, found or not.

    Of a page without a record: what each rule saw.
    """
    evidence = [found for part in page.parts.values() for found in _evidence(platform, part, target)]
    found_names = record or dict.fromkeys(about for about, _, _ in evidence)
    names = [field] if field else [name for name in found_names if name != "fields"]
    origins = {origin.field: origin for origin in reversed(origins_of(page, record, names_of(platform)))}
    clues = []
    for name in names:
        value = record.get(name)
        origin = origins.get(name) or _of_most([it for place, it in origins.items() if _is_part(place, name)])
        where = f"{_of_part(page, origin.part)}{origin.path}: {origin.text}"[:_LONGEST_SEEN] if origin else ""
        found = [Clue(name, value, rule, saw[:_LONGEST_SEEN], where) for about, rule, saw in evidence if about == name]
        clues += found or [_without_a_rule(platform, name, value, where)]
    return clues


def _of_most(origins: list[Origin]) -> Origin | None:
    """The first on the page that most of them stand on: a seller's name may stand on another one as the owner's."""
    page = Counter(origin.part for origin in origins).most_common(1)
    return next((origin for origin in origins if origin.part == page[0][0]), None)


def _of_part(page: Page, part: str) -> str:
    """Which of a parcel's pages it is, where there are several."""
    return f"{part} " if page.more else ""


def _is_part(place: str, name: str) -> bool:
    return place.startswith((f"{name}[", f"{name}."))


def unused(platform: Platform, page: Page, target: Target) -> list[Pair]:
    """The labels and values that became no canonical field: what a parser may still learn from."""
    return [pair for part in page.parts.values() for pair in _unused(platform, part, target)]


def _unused(platform: Platform, page: Page, target: Target) -> list[Pair]:
    pairs, _, names = _read_by(platform, page)
    seen = {_plain(text) for _, _, saw in _by_spots(platform, page, target) for text in saw.split(" | ")}
    return [pair for pair in pairs if not field_of(pair, names) and _plain(" ".join(pair.lines)) not in seen]


def _plain(text: str) -> str:
    return " ".join(text.replace(" / ", " ").split())


def _by_spots(platform: Platform, page: Page, target: Target) -> Iterator[tuple[str, str, str]]:
    """What is found by its place on the page, whatever its label says."""
    if isinstance(platform, SelectorPlatform):
        yield from _by_selectors(platform, page, target)
        if platform.extends is not None:
            yield from _by_spots(platform.extends, page, target)
    elif isinstance(platform, RulePlatform) and platform.spots and not page.is_json:
        yield from _by_ids(platform, page)


def _evidence(platform: Platform, page: Page, target: Target) -> Iterator[tuple[str, str, str]]:
    if isinstance(platform, SelectorPlatform):
        yield from _by_selectors(platform, page, target)
        if platform.extends is not None:
            yield from _evidence(platform.extends, page, target)
        return
    if isinstance(platform, RulePlatform) and platform.spots and not page.is_json:
        yield from _by_ids(platform, page)
    pairs, grids, names = _read_by(platform, page)
    for pair in pairs:
        if name := field_of(pair, names):
            section = f" under {pair.section!r}" if pair.section else ""
            yield name, f"{platform.name}: label {pair.label!r}{section}", " / ".join(pair.lines)
    for grid in grids:
        if found := facts_of(grid):
            yield found[0], f"{platform.name}: table with {len(grid.rows)} rows", " | ".join(grid.head)


def _by_selectors(platform: SelectorPlatform, page: Page, target: Target) -> Iterator[tuple[str, str, str]]:
    here, root = platform.rules_for(target), page.selector.root
    where = "" if here is platform else f" of county {target.county}"
    for name, spot in {**here.fields, **here.tables}.items():
        seen = spot.seen(root)
        yield name, f"{platform.name}: selector {spot.select!r}{where}", " | ".join(seen) or "(nothing there)"


def _by_ids(platform: RulePlatform, page: Page) -> Iterator[tuple[str, str, str]]:
    for name, (place, _) in platform.spots.items():
        found = page.selector.root.xpath("//*[@id=$place]", place=place)
        yield name, f"{platform.name}: id {place!r}", " / ".join(lines_of(found[0])) if found else "(no such id)"


def _read_by(platform: Platform, page: Page) -> tuple[list[Pair], list[Grid], Names]:
    """Pairs and grids as this platform sees them; as anybody would see them where it has no rules of its own."""
    if isinstance(platform, RulePlatform) and (platform.labels or platform.tables) and not page.is_json:
        root = page.selector.root
        return platform.pairs(root), platform.grids(root), platform.names
    reading = read(page)
    return reading.pairs, reading.grids, {}


def _without_a_rule(platform: Platform, name: str, value: Any, where: str) -> Clue:
    if value is None:
        return Clue(name, None, f"{platform.name}: no rule found it", "")
    return Clue(name, value, f"{platform.name}: its own code", "" if where else "(put together by it)", where)
