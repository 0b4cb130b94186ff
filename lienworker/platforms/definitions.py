"""A platform as a TOML definition: data, no code.

name = "sunny"                                    # the file's name, if it is not given
version = "1"
hosts = ["*.sunny.example"]                       # or url_patterns = ["/parcel/\\\\d+"]; marks = ["id='sunny'"]
url = "https://www.sunny.example/parcel/{parcel_id}"
delay = 2.0
extends = "generic"                               # what that platform reads, and over it:

[fields]
parcel_id = "#pid"                                # CSS, or XPath
market_value = { select = "td.just", clean = "money" }

[tables]
sales = "table#sales"

[county.Dixie]                                    # what is different there: url, and single fields or tables
fields = { owner_name = "#owner2" }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from lienworker.platforms import clean
from lienworker.platforms.base import Platform
from lienworker.platforms.record import CANONICAL
from lienworker.platforms.rules import Cleaner
from lienworker.platforms.selectors import SelectorPlatform, Spot

WASHES: Mapping[str, Cleaner] = {
    "text": clean.text,
    "known": clean.known,
    "identifier": clean.identifier,
    "money": clean.money,
    "number": clean.number,
    "integer": clean.integer,
    "year": clean.year,
    "acres": clean.acres,
    "square_feet": clean.square_feet,
    "yes_no": clean.yes_no,
    "date": clean.iso_date,
}
_TABLES = ("values", "taxes", "liens", "sales")
_TEXTS = {"name": str, "version": str, "url": str, "extends": str}
_LISTS = ("hosts", "url_patterns", "marks")
_NUMBERS = {"delay": (int, float), "concurrency": (int,)}
_KNOWN = frozenset({*_TEXTS, *_LISTS, *_NUMBERS, "fields", "tables", "county"})
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class Definition(SelectorPlatform):
    """What a TOML file says, as a platform."""

    def __init__(self, said: Mapping[str, Any], stem: str, find: Callable[[str], Platform]) -> None:
        """`find` gives the platform that `extends` names. Raises ValueError where the definition is wrong."""
        _check(said)
        self.name = said.get("name", stem).lower()
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name: use a-z, 0-9, '_', '.' and '-'")
        self.version = said.get("version", "1")
        self.hosts, self.url_patterns, self.marks = (tuple(said.get(name, ())) for name in _LISTS)
        self.url_template = said.get("url", "")
        self.extends = find(said["extends"]) if "extends" in said else None
        self.delay = said.get("delay", self.extends.delay if self.extends else None)
        self.concurrency = said.get("concurrency", self.extends.concurrency if self.extends else None)
        self.fields = _spots(said.get("fields", {}), CANONICAL)
        self.tables = _spots(said.get("tables", {}), _TABLES)
        if not (self.extends or "parcel_id" in self.fields):
            raise ValueError("it says neither where the parcel_id is nor which platform it extends")
        counties = said.get("county", {})
        self.counties = {name.lower(): self._in_county(name, other) for name, other in counties.items()}
        assert self._patterns is not None  # compiled now, so that a wrong one is said now

    def _in_county(self, name: str, other: Mapping[str, Any]) -> SelectorPlatform:
        if wrong := sorted(other.keys() - {"url", "fields", "tables", "hosts"}):
            raise ValueError(f"county {name} has an unknown {wrong[0]!r}; it may have url, hosts, fields and tables")
        here = SelectorPlatform.__new__(_County)
        here.hosts = tuple(other.get("hosts", ()))
        here.url_template = other.get("url", self.url_template)
        here.fields = {**self.fields, **_spots(other.get("fields", {}), CANONICAL)}
        here.tables = {**self.tables, **_spots(other.get("tables", {}), _TABLES)}
        return here


class _County(SelectorPlatform):
    """Only ever asked for its rules, by the platform that it belongs to."""


def _check(said: Mapping[str, Any]) -> None:
    if wrong := sorted(said.keys() - _KNOWN):
        raise ValueError(f"there is no {wrong[0]!r} in a definition; there are {', '.join(sorted(_KNOWN))}")
    for name, value in said.items():
        if name in _TEXTS and not isinstance(value, str):
            raise ValueError(f"{name} must be a text")
        if name in _LISTS and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise ValueError(f"{name} must be a list of texts")
        if name in _NUMBERS and (not isinstance(value, _NUMBERS[name]) or isinstance(value, bool) or value < 0):
            raise ValueError(f"{name} must be a number of at least 0")


def _spots(said: Mapping[str, Any], allowed: tuple[str, ...]) -> dict[str, Spot]:
    return {name: _spot(name, rule, allowed) for name, rule in said.items()}


def _spot(name: str, rule: Any, allowed: tuple[str, ...]) -> Spot:
    if name not in allowed:
        raise ValueError(f"there is no {name!r} in a record; there are {', '.join(allowed)}")
    select = rule.get("select") if isinstance(rule, dict) else rule
    word = rule.get("clean") if isinstance(rule, dict) else None
    if not isinstance(select, str) or not select.strip():
        raise ValueError(f"{name} needs a selector")
    if word is not None and word not in WASHES:
        raise ValueError(f"{name} cannot be cleaned as {word!r}; use one of {', '.join(WASHES)}")
    spot = Spot(select, WASHES[word] if word else None)
    try:
        etree.XPath(spot.path.expression)
    except etree.XPathError as error:
        raise ValueError(f"{name}: {select!r} is no XPath: {error}") from None
    return spot
