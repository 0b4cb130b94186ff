"""A platform by selectors: where each field is, and how it is cleaned. The quickest way to a county of one's own.

A selector is CSS (`#owner`, `td.value::text`) or, where it begins with `/`, `.` or `(`, XPath. It is compiled once.
The same class reads definitions in TOML and YAML (see `definitions`); `lienworker platforms new` starts from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from parsel.csstranslator import HTMLTranslator

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Platform, Record, Target
from lienworker.platforms.flows import Flow
from lienworker.platforms.reading.canon import CLEANERS
from lienworker.platforms.reading.elements import grid_of, lines_of
from lienworker.platforms.reading.histories import take_grid, take_newest
from lienworker.platforms.rules import Cleaner, Path, fill, flow_address

_MANY = frozenset({"owner_names", "documents", "images"})
_DEFAULTS: Mapping[str, Cleaner] = {"parcel_id": clean.identifier, **CLEANERS}


@dataclass(frozen=True)
class Spot:
    """Where a field is, and how what is there is cleaned."""

    select: str
    wash: Cleaner | None = None
    path: Path = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(xpath_of(self.select)))

    def seen(self, root: Any) -> list[str]:
        """What the selector finds, as text; nothing where it is still blank."""
        texts = (item if isinstance(item, str) else " ".join(lines_of(item)) for item in self.elements(root))
        return [text for text in texts if text.strip()]

    def elements(self, root: Any) -> list[Any]:
        return self.path(root) if self.select else []

    def read(self, name: str, root: Any) -> Any:
        wash = self.wash or _DEFAULTS.get(name, clean.known)
        values = [value for text in self.seen(root) if (value := wash(text)) is not None]
        if name in _MANY:
            return values
        return values[0] if values else None


def xpath_of(select: str) -> str:
    """The XPath of a selector; raises ValueError for one that cannot be understood."""
    if select[:1] in ("/", ".", "(") and not re.match(r"\.[A-Za-z_-]", select):
        return select
    try:
        return str(HTMLTranslator().css_to_xpath(select)) if select else ""
    except Exception as error:
        raise ValueError(f"{select!r} is neither CSS nor XPath: {error}") from None


class SelectorPlatform(Platform):
    """Fields and tables by selectors, over what another platform (`extends`) makes of the page."""

    hosts: tuple[str, ...] = ()
    """Host names, with `*` for any part: `*.county.example`."""
    url_patterns: tuple[str, ...] = ()
    """Regular expressions, of which one must be found in the address."""
    marks: tuple[str, ...] = ()
    """Texts that are all in the source of each of its pages."""
    url_template: str = ""
    fields: Mapping[str, Spot] = {}
    tables: Mapping[str, Spot] = {}
    """Tables by what they are about: `values`, `taxes`, `liens`, `sales`."""
    extends: Platform | None = None
    counties: Mapping[str, SelectorPlatform] = {}
    """What is different in one county, by its name in lower case."""

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern, re.I) for pattern in self.url_patterns)

    @property
    def _mends(self) -> Platform | None:
        """The platform whose place this one takes, under the same name: its addresses and pages are ours."""
        return self.extends if self.extends is not None and self.extends.name == self.name else None

    def matches_url(self, url: str) -> bool:
        host = urlsplit(url).hostname or ""
        if any(fnmatch(host, pattern.lower()) for pattern in self.hosts):
            return not self._patterns or any(pattern.search(url) for pattern in self._patterns)
        found = not self.hosts and any(pattern.search(url) for pattern in self._patterns)
        mended = self._mends
        return (
            found
            or (mended is not None and mended.matches_url(url))
            or any(county.matches_url(url) for county in self.counties.values())
        )

    def recognises(self, page: Page) -> bool:
        if self.marks:
            return all(mark in page.text for mark in self.marks)
        return self._mends is not None and self._mends.recognises(page)

    def build_url(self, target: Target) -> str | None:
        here = self.rules_for(target)
        known = {**target.extra, **{name: value for name, value in here.settings.items() if value}}
        return (
            fill(here.url_template, target, here.settings)
            or flow_address(self, target)
            or (self.extends.build_url(replace(target, extra=known)) if self.extends else None)
        )

    def flow_for(self, target: Target) -> Flow | None:
        return self.rules_for(target).flow

    def parse(self, page: Page, target: Target) -> Record:
        here = self.rules_for(target)
        record: Record = dict(self.extends.parse(page, target)) if self.extends else {"fields": {}}
        root = page.selector.root
        for name, spot in here.fields.items():
            if (value := spot.read(name, root)) not in (None, []):
                record[name] = value
        for about, spot in here.tables.items():
            grids = [grid for table in spot.elements(root) if (grid := grid_of(table, about))]
            for grid in grids:
                take_grid(record, grid)
        take_newest(record)
        self.finish(record, page)
        if not (record.get("parcel_id") or record.get("parcels")):
            raise PageError("not_a_parcel", f"the page has no parcel as {self.name} shows them")
        return record

    def parse_parts(self, parts: Mapping[str, Page], target: Target) -> Record:
        """Read the parts as the platform that it extends does, where it has no rules of its own."""
        here = self.rules_for(target)
        if self.extends and not (here.fields or here.tables):
            return self.extends.parse_parts(parts, target)
        return super().parse_parts(parts, target)

    def finish(self, record: Record, page: Page) -> None:
        """For what selectors cannot say."""

    def rules_for(self, target: Target) -> SelectorPlatform:
        """What counts in the target's county."""
        return self.counties.get((target.county or "").lower(), self)
