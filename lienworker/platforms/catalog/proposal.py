"""Selectors for what `generic` found on a page: a platform of one's own begins with them.

The page is searched for each value of the record (`provenance`). Of the element there several selectors are tried, the
one that a redesign breaks last comes first: its id, the label before it, its class, and only then its path. A selector
is proposed only if it reads the very value, so what is written works on this page; what none reads is left to a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lienworker.errors import InputError
from lienworker.platforms.catalog.provenance import names_of, origins_of
from lienworker.platforms.core.base import CANONICAL, Page, Platform, Record, Target
from lienworker.platforms.reading.elements import grid_of
from lienworker.platforms.reading.histories import take_grid
from lienworker.platforms.selectors import Spot

TABLES = ("values", "taxes", "liens", "sales")
_PLAIN_NAME = re.compile(r"[A-Za-z][\w-]*")
_OF_CLASS = "//*[contains(concat(' ', @class, ' '), $one)]"
#: What is longer is a text, and what has a digit or a quotation mark in it is a value, or the year of one.
_LABEL = re.compile(r"[^\d'\"]{1,60}")


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a page has, by canonical name: the values, and the selectors that read them."""

    record: Record
    fields: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)

    def expected(self) -> Record:
        """What the proposed platform reads of the page."""
        return {name: value for name, value in self.record.items() if name in self.fields or name in self.tables}

    def left(self) -> dict[str, Any]:
        """The plain values for which no selector was found."""
        said = {*self.fields, *self.tables, "fields"}
        return {
            name: value
            for name, value in self.record.items()
            if name not in said and not isinstance(value, list | dict)
        }


def propose(page: Page, generic: Platform) -> Proposal:
    """Return selectors for what `generic` finds on the HTML page of a parcel; raise PageError where it finds none."""
    if page.is_json or "<" not in page.text[:2000]:
        raise InputError("Selectors are for HTML; this page is none. `lienworker platforms parse` shows what is in it.")
    page.under_limits = True  # somebody waits for it, and can stop it
    record = {name: value for name, value in generic.parse(page, Target()).items() if name in CANONICAL}
    if "parcels" in record:
        raise InputError("This page is a list; begin with the page of one parcel.")
    places: dict[str, Any] = {}
    for origin in origins_of(page, record, names_of(generic)):
        places.setdefault(origin.field.partition(".")[0], page.selector.root.getroottree().xpath(origin.path)[0])
    plain = ((name, value) for name, value in record.items() if name in places)
    fields = {name: select for name, value in plain if (select := _field(page, name, value, places[name]))}
    tables = {name: select for name in TABLES if (select := _table(page, name, record, places))}
    return Proposal(record, fields, tables)


def _field(page: Page, name: str, value: Any, element: Any) -> str | None:
    """The first selector that reads the value, and nothing else."""
    root = page.selector.root
    return next((select for select in _selectors(element) if Spot(select).read(name, root) == value), None)


def _table(page: Page, about: str, record: Record, places: Mapping[str, Any]) -> str | None:
    """A selector of the table that the rows of a history stand in."""
    cells = [element for name, element in places.items() if name.startswith(f"{about}[")]
    table = next((parent for cell in cells for parent in cell.iterancestors("table")), None)
    if table is None:
        return None
    return next((select for select in _selectors(table) if _reads(page, about, select, record)), None)


def _reads(page: Page, about: str, select: str, record: Record) -> bool:
    made: Record = {}
    for table in Spot(select).elements(page.selector.root):
        if grid := grid_of(table, about):
            take_grid(made, grid)
    return bool(made.get(about) == record[about])


def _selectors(element: Any) -> Iterator[str]:
    """Ways to select an element, from the one that is likely to stay to the one that a redesign breaks first."""
    root = element.getroottree()
    name = element.get("id") or ""
    if _PLAIN_NAME.fullmatch(name) and len(root.xpath("//*[@id=$name]", name=name)) == 1:
        yield f"#{name}"
    for place in (element, *element.iterancestors("td", "dd", "li", "p", "div")):
        yield from _by_label(place)
    for one in (element.get("class") or "").split():
        if _PLAIN_NAME.fullmatch(one) and len(root.xpath(_OF_CLASS, one=f" {one} ")) == 1:
            yield f"{element.tag}.{one}"
    yield str(root.getpath(element))


def _by_label(place: Any) -> Iterator[str]:
    label = place.getprevious()
    if label is None or not isinstance(label.tag, str) or not isinstance(place.tag, str):
        return
    said = " ".join("".join(label.itertext()).split())
    if _LABEL.fullmatch(said):
        yield f"//{label.tag}[normalize-space()='{said}']/following-sibling::{place.tag}[1]"
