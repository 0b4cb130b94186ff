"""A platform as a definition, in TOML here: data, no code. The same names make one in YAML.

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

[settings]                                        # placeholders of addresses and of the flow
base_url = "https://www.sunny.example"

[county.Dixie]                                    # what is different there: url, settings, single fields or tables
fields = { owner_name = "#owner2" }

Where one GET is not enough, `[flow]` says how the pages are reached (see `flow_definitions`); a definition without
one has that of the platform that it extends, with its own settings.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lxml import etree  # type: ignore[import-untyped]

from lienworker.errors import PageError
from lienworker.platforms.catalog.flow_definitions import flow_of, settings_of
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import CANONICAL, Platform
from lienworker.platforms.flows import Flow, FlowError
from lienworker.platforms.rules import Cleaner
from lienworker.platforms.selectors import SelectorPlatform, Spot

if TYPE_CHECKING:
    from yaml import Node

SUFFIXES = (".toml", ".yaml", ".yml")
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
_TEXTS = ("name", "version", "url", "extends")
_LISTS = ("hosts", "url_patterns", "marks")
_NUMBERS = {"delay": (int, float), "concurrency": (int,)}
_GROUPS = ("fields", "tables", "county", "settings", "flow")
_KNOWN = frozenset({*_TEXTS, *_LISTS, *_NUMBERS, *_GROUPS})
_IN_COUNTY = frozenset({"url", "hosts", "fields", "tables", "settings"})
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_NO_RULES: Mapping[str, Any] = {}


class DefinitionError(ValueError):
    """What is wrong, and where: the names that lead to it, from the outside in."""

    def __init__(self, words: str, *where: str | int) -> None:
        super().__init__(words)
        self.where = where


class Definition(SelectorPlatform):
    """What a definition says, as a platform."""

    def __init__(self, said: Mapping[str, Any], stem: str, find: Callable[[str], Platform]) -> None:
        """`find` gives the platform that `extends` names. Raises DefinitionError."""
        _check(said, _KNOWN)
        self.name = said.get("name", stem).lower()
        if not _NAME.fullmatch(self.name):
            raise DefinitionError(f"{self.name!r} is no name: use a-z, 0-9, '_', '.' and '-'", "name")
        self.version = said.get("version", "1")
        self.hosts, self.url_patterns, self.marks = (tuple(said.get(name, ())) for name in _LISTS)
        self.url_template = said.get("url", "")
        self.extends = _found(find, said["extends"]) if "extends" in said else None
        self.delay = said.get("delay", self.extends.delay if self.extends else None)
        self.concurrency = said.get("concurrency", self.extends.concurrency if self.extends else None)
        self.fields = _spots(said, "fields", CANONICAL)
        self.tables = _spots(said, "tables", _TABLES)
        self.settings = _settings(said, self.extends.settings if self.extends else _NO_RULES)
        self.flow = _flow(said, self.settings, self.extends)
        if not (self.extends or "parcel_id" in self.fields):
            raise DefinitionError("it says neither where the parcel_id is nor which platform it extends")
        counties = said.get("county", _NO_RULES)
        self.counties = {name.lower(): self._in_county(name, other) for name, other in counties.items()}
        try:
            assert self._patterns is not None  # compiled now, so that a wrong one is said now
        except re.error as error:
            raise DefinitionError(f"url_patterns: {error}", "url_patterns") from None

    def _in_county(self, name: str, other: Any) -> SelectorPlatform:
        where = ("county", name)
        if not isinstance(other, dict):
            raise DefinitionError(f"county {name} must be a group of names with values", *where)
        _check(other, _IN_COUNTY, where)
        here = SelectorPlatform.__new__(_County)
        here.hosts = tuple(other.get("hosts", ()))
        here.url_template = other.get("url", self.url_template)
        here.fields = {**self.fields, **_spots(other, "fields", CANONICAL, where)}
        here.tables = {**self.tables, **_spots(other, "tables", _TABLES, where)}
        here.settings = _settings(other, self.settings, where)
        here.flow = replace(self.flow, settings=here.settings) if self.flow else None
        return here


class _County(SelectorPlatform):
    """Only ever asked for its rules, by the platform that it belongs to."""


def _found(find: Callable[[str], Platform], name: str) -> Platform:
    try:
        return find(name)
    except PageError as error:
        raise DefinitionError(error.detail, "extends") from None


def _settings(said: Mapping[str, Any], known: Mapping[str, str], where: tuple[str, ...] = ()) -> dict[str, str]:
    try:
        return {**known, **settings_of(said.get("settings", _NO_RULES), (*where, "settings"))}
    except FlowError as wrong:
        raise DefinitionError(str(wrong), *wrong.where) from None


def _flow(said: Mapping[str, Any], settings: Mapping[str, str], extends: Platform | None) -> Flow | None:
    """The definition's own flow, or that of the platform that it extends; with its settings."""
    try:
        if "flow" in said:
            return flow_of(said["flow"], settings)
        if extends is None or extends.flow is None:
            return None
        return replace(extends.flow, settings={**extends.flow.settings, **settings})
    except FlowError as wrong:
        raise DefinitionError(f"flow: {wrong}", "flow", *wrong.where) from None


def _check(said: Mapping[str, Any], known: frozenset[str], where: tuple[str, ...] = ()) -> None:
    for name, value in said.items():
        if name not in known:
            place = " ".join(where) or "a definition"
            raise DefinitionError(
                f"there is no {name!r} in {place}; there are {', '.join(sorted(known))}", *where, name
            )
        if must := _what_it_must_be(name, value):
            raise DefinitionError(f"{name} must be {must}", *where, name)


def _what_it_must_be(name: str, value: Any) -> str:
    """What a value is not and has to be; an empty text where it is."""
    if name in _TEXTS:
        return "" if isinstance(value, str) else "a text (in quotes)"
    if name in _LISTS:
        fine = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return "" if fine else "a list of texts (in quotes)"
    if name in _NUMBERS:
        fine = isinstance(value, _NUMBERS[name]) and not isinstance(value, bool) and value >= 0
        return "" if fine else "a number of at least 0"
    return "" if isinstance(value, dict) else "a group of names with values"


def _spots(
    said: Mapping[str, Any], group: str, allowed: tuple[str, ...], where: tuple[str, ...] = ()
) -> dict[str, Spot]:
    found = {}
    for name, rule in said.get(group, _NO_RULES).items():
        try:
            found[name] = _spot(name, rule, allowed)
        except ValueError as error:
            raise DefinitionError(str(error), *where, group, name) from None
    return found


def _spot(name: str, rule: Any, allowed: tuple[str, ...]) -> Spot:
    if name not in allowed:
        raise ValueError(f"there is no {name!r} in a record; there are {', '.join(allowed)}")
    select = rule.get("select") if isinstance(rule, dict) else rule
    word = rule.get("clean") if isinstance(rule, dict) else None
    if not isinstance(select, str) or not select.strip():
        raise ValueError(f"{name} needs a selector, in quotes (in YAML a # begins a remark)")
    if word is not None and word not in WASHES:
        raise ValueError(f"{name} cannot be cleaned as {word!r}; use one of {', '.join(WASHES)}")
    spot = Spot(select, WASHES[word] if word else None)
    try:
        etree.XPath(spot.path.expression)
    except etree.XPathError as error:
        raise ValueError(f"{name}: {select!r} is no XPath: {error}") from None
    return spot


def load_definition(file: Path, find: Callable[[str], Platform]) -> Platform:
    """The platform of a file. Raises ValueError in words, with the line where that can be told."""
    written = file.read_text(encoding="utf-8-sig")
    said = _toml(written) if file.suffix == ".toml" else _yaml(written)
    if not isinstance(said, dict):
        raise ValueError("it is not a definition: there are no names with values in it")
    try:
        return Definition(said, file.stem, find)
    except DefinitionError as wrong:
        line = line_of(written, wrong.where)
        raise ValueError(f"line {line}: {wrong}" if line else str(wrong)) from None


def line_of(written: str, where: tuple[str | int, ...]) -> int | None:
    """The line on which these names follow each other, the outer ones first; None where one is not there.

    A number is the place in a list of groups: TOML heads each of them `[[name]]`, YAML puts a dash before each.
    """
    place = 0
    lines = written.splitlines()
    for before, name in zip(("", *where), where, strict=False):
        found = _item_line(lines, place, str(before), name) if isinstance(name, int) else _name_line(lines, place, name)
        if found is None:
            return None
        place = found  # not the next one: TOML has many names on a line
    return place + 1 if where else None


def _name_line(lines: list[str], start: int, name: str) -> int | None:
    names_it = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    for n in range(start, len(lines)):
        if not lines[n].lstrip().startswith("#") and names_it.search(lines[n]):
            return n
    return None


def _item_line(lines: list[str], start: int, group: str, number: int) -> int | None:
    """The line on which the item of a list begins; where the list is on one line, that line."""
    head = re.compile(rf"\s*\[\[.*\b{re.escape(group)}\s*\]\]")
    heads = [n for n in range(start, len(lines)) if head.match(lines[n])]
    if not heads:
        dashes = [n for n in range(start, len(lines)) if lines[n].lstrip().startswith("- ")]
        depth = len(lines[dashes[0]]) - len(lines[dashes[0]].lstrip()) if dashes else 0
        heads = [n for n in dashes if len(lines[n]) - len(lines[n].lstrip()) == depth]
    return heads[number] if number < len(heads) else start


def _toml(written: str) -> Any:
    try:
        return tomllib.loads(written)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is no TOML: {error}") from None


def _yaml(written: str) -> Any:
    import yaml  # here, since few write YAML and every command pays for an import

    try:
        loader = yaml.SafeLoader(written)  # plain data only
        node = loader.get_single_node()
        if node is not None:
            _check_names(node)
        return loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{line}it is no YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {error}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply, or within itself") from None


def _check_names(node: Node) -> None:
    """A name that is there twice is refused, as TOML does it; PyYAML would forget the first."""
    seen: set[str] = set()
    for name, value in node.value if node.tag.endswith(":map") else ():
        line = name.start_mark.line + 1
        if name.value in seen:
            raise ValueError(f"line {line}: {name.value!r} is there twice")
        if not name.tag.endswith((":str", ":merge")):
            raise ValueError(f"line {line}: the name {name.value!r} needs quotes, or YAML takes it for something else")
        seen.add(name.value)
        _check_names(value)
