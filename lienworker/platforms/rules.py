"""The declarative part of a platform: where its labels, tables and single fields are.

A platform mostly says: these are my addresses and my marks, there are the labels (the value is the next element
that says anything), there the tables, this label means that field. The expressions are compiled once, and each
walks the page once; what a field means is decided by its label, not by another search of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from lxml import etree  # type: ignore[import-untyped]

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Platform, Record, Target
from lienworker.platforms.core.words import words_of
from lienworker.platforms.flows import first_address
from lienworker.platforms.flows.templates import UnfilledError
from lienworker.platforms.reading import Grid, Names, Pair, record_of
from lienworker.platforms.reading.elements import Element, grid_of, lines_of, next_saying, text_of

Cleaner = Callable[[object], Any]


class Path:
    """An XPath expression, compiled when first used."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._compiled: Any = None

    def __call__(self, element: Element) -> list[Element]:
        if self._compiled is None:
            self._compiled = etree.XPath(self.expression, regexp=False)
        found = self._compiled(element)
        return found if isinstance(found, list) else [found]


_NOTHING: Mapping[str, Any] = {}
_EVERY_ID = Path("//*[@id]")


@dataclass(frozen=True)
class Labels:
    """Where labels are, and under which titles; `sections` holds the labels, `title` is inside a section."""

    labels: Path
    sections: Path | None = None
    title: Path | None = None

    def pairs(self, root: Element) -> Iterator[Pair]:
        for section in self.sections(root) if self.sections else (root,):
            title = _first_text(self.title, section) if self.title else ""
            for label in self.labels(section):
                name = text_of(label).strip(" :*")
                value = next_saying(label)
                if name and value is not None and (lines := lines_of(value)):
                    yield Pair(name, lines, title)


class RulePlatform(Platform):
    """A platform whose rules are class attributes; `finish` is for what rules cannot say."""

    url_pattern: re.Pattern[str]
    marks: tuple[str, ...] = ()
    """Texts that are all in the source of each of its pages."""
    url_template: str = ""
    """The address of a parcel; its names are filled from the target and its `extra`."""
    labels: tuple[Labels, ...] = ()
    tables: Mapping[str, Path] = _NOTHING
    """Tables by what they are about (`sales`, `taxes`, …); under an empty name those whose heads tell it."""
    names: Names = _NOTHING
    spots: Mapping[str, tuple[str, Cleaner]] = _NOTHING
    """Single fields by the id of their element."""

    def matches_url(self, url: str) -> bool:
        return bool(self.url_pattern.search(url))

    def recognises(self, page: Page) -> bool:
        return bool(self.marks) and all(mark in page.text for mark in self.marks)

    def build_url(self, target: Target) -> str | None:
        return fill(self.url_template, target, self.settings) or flow_address(self, target)

    def parse(self, page: Page, target: Target) -> Record:
        root = page.selector.root
        record = record_of(self.pairs(root), self.grids(root), self.names) | self.read_spots(root)
        record.setdefault("fields", {})
        self.finish(record, root, page)
        return self.checked(record)

    def checked(self, record: Record) -> Record:
        """The record, where it is one: a page without a parcel has none. Its blanks are the registry's to take out."""
        if not record.get("parcel_id") and not clean.compact(record.get("parcels")):
            raise PageError("not_a_parcel", f"the page has no parcel as {self.name} shows them")
        return record

    def pairs(self, root: Element) -> list[Pair]:
        return [pair for rule in self.labels for pair in rule.pairs(root)]

    def grids(self, root: Element) -> list[Grid]:
        found = ((about, table) for about, path in self.tables.items() for table in path(root))
        return [grid for about, table in found if (grid := grid_of(table, about))]

    def read_spots(self, root: Element) -> Record:
        if not self.spots:
            return {}
        places = {element.get("id"): element for element in reversed(_EVERY_ID(root))}
        found = {
            name: wash(" ".join(lines_of(places[place])))
            for name, (place, wash) in self.spots.items()
            if place in places
        }
        return {name: value for name, value in found.items() if value is not None}

    def finish(self, record: Record, root: Element, page: Page) -> None:
        """The platform's own touch."""


def flow_address(platform: Platform, target: Target) -> str | None:
    """The address that stands for a target whose pages a flow reaches; None where the target does not say enough."""
    flow = platform.flow_for(target)
    try:
        return first_address(flow, target) if flow else None
    except UnfilledError:
        return None


def fill(template: str, target: Target, settings: Mapping[str, str] = _NOTHING) -> str | None:
    """The template with the target's words, each fit for an address; None where a word is missing."""
    words = words_of(target) | {name: value for name, value in settings.items() if value}
    needed = re.findall(r"{(\w+)}", template)
    if not template or not all(words.get(name) for name in needed):
        return None
    safe = {
        name: str(words[name]).rstrip("/") if name == "base_url" else quote(str(words[name]), "") for name in needed
    }
    return template.format(**safe)


def _first_text(path: Path, element: Element) -> str:
    found = path(element)
    return text_of(found[0]) if found else ""
