"""Which platforms there are, and which one reads a page.

Built in by a table, added to by entry points (`lienworker.platforms`). A module is imported when first needed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from lienworker.errors import HeavyPageError, PageError
from lienworker.platforms.core.addresses import AddressPlace
from lienworker.platforms.core.base import Page, Platform, Record, Target, in_order
from lienworker.platforms.core.clean import compact
from lienworker.platforms.reading.pagekind import check_page

logger = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "lienworker.platforms"
FALLBACK = "generic"
#: What says as much about the process that parses as about the page; only one with limits may judge by it.
NO_VERDICT = (MemoryError, RecursionError)
#: The platforms that come with the program, in the order in which detection asks them. They are also in the package's
#: own entry points; here they are so that an uninstalled checkout works.
BUILT_IN = {
    "demo": "lienworker.platforms.vendors.demo:PLATFORM",
    "generic": "lienworker.platforms.vendors.generic:PLATFORM",
    "qpublic": "lienworker.platforms.vendors.qpublic:PLATFORM",
    "beacon": "lienworker.platforms.vendors.qpublic:BEACON",
    "vgsi": "lienworker.platforms.vendors.vgsi:PLATFORM",
    "tyler": "lienworker.platforms.vendors.tyler:PLATFORM",
    "iasworld": "lienworker.platforms.vendors.iasworld:PLATFORM",
    "floridapa": "lienworker.platforms.vendors.floridapa:PLATFORM",
    "leepa": "lienworker.platforms.vendors.leepa:PLATFORM",
    "collier": "lienworker.platforms.vendors.collier:PLATFORM",
    "cook": "lienworker.platforms.vendors.cook:PLATFORM",
    "cuyahoga": "lienworker.platforms.vendors.cuyahoga:PLATFORM",
    "polk_ia": "lienworker.platforms.vendors.polk_ia:PLATFORM",
    "wvauditor": "lienworker.platforms.vendors.wvauditor:PLATFORM",
    "mygovonline": "lienworker.platforms.vendors.mygovonline:PLATFORM",
    "taxsys": "lienworker.platforms.vendors.taxsys:PLATFORM",
    "arcgis": "lienworker.platforms.vendors.arcgis:PLATFORM",
    "realauction": "lienworker.platforms.vendors.realauction:PLATFORM",
    "bas": "lienworker.platforms.vendors.bas:PLATFORM",
    "broward": "lienworker.platforms.vendors.broward:PLATFORM",
    "civilview": "lienworker.platforms.vendors.civilview:PLATFORM",
    "cooktreasurer": "lienworker.platforms.vendors.cooktreasurer:PLATFORM",
    "govhub": "lienworker.platforms.vendors.govhub:PLATFORM",
    "greenville": "lienworker.platforms.vendors.greenville:PLATFORM",
    "hillsborough": "lienworker.platforms.vendors.hillsborough:PLATFORM",
    "miamidade": "lienworker.platforms.vendors.miamidade:PLATFORM",
    "pinellas": "lienworker.platforms.vendors.pinellas:PLATFORM",
    "sheriffsale": "lienworker.platforms.vendors.sheriffsale:PLATFORM",
    "bisconsultants": "lienworker.platforms.vendors.bisconsultants:PLATFORM",
    "bsa": "lienworker.platforms.vendors.bsa:PLATFORM",
    "devnet": "lienworker.platforms.vendors.devnet:PLATFORM",
    "eagleweb": "lienworker.platforms.vendors.eagleweb:PLATFORM",
    "megabyte": "lienworker.platforms.vendors.megabyte:PLATFORM",
    "patriot": "lienworker.platforms.vendors.patriot:PLATFORM",
    "propaccess": "lienworker.platforms.vendors.propaccess:PLATFORM",
    "munis": "lienworker.platforms.vendors.munis:PLATFORM",
    "sri": "lienworker.platforms.vendors.sri:PLATFORM",
}
_SURELY_A_PARCEL = 7  # facts, where the page shows its id without a label
_EMPTY_WITHOUT = frozenset({"fields", "state", "county"})


@dataclass(frozen=True)
class ParsedPage:
    """A page turned into its canonical record, and by whom."""

    platform: str
    version: str
    record: Record


class Registry:
    """Platforms by name, loaded when needed."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """`places` maps a name to `module:attribute`, in the order in which detection asks."""
        self._places = dict(places)
        self._loaded: dict[str, Platform] = {}
        self._with_flows: list[Platform] | None = None
        self.folder: Path | None = None  # where platforms of the operator's own are
        self.broken: list[str] = []  # a sentence for each file that was to bring a platform and could not

    def names(self) -> list[str]:
        return sorted(self._places)

    def get(self, name: str) -> Platform:
        if name not in self._places:
            raise PageError("unknown_platform", f"there is no platform {name!r}; there are {', '.join(self.names())}")
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def add(self, platform: Platform, place: str = "") -> None:
        """A platform from elsewhere (a folder of definitions, a test) under its own name; asked first."""
        self._places.pop(platform.name, None)
        self._places = {platform.name: place, **self._places}
        self._loaded[platform.name] = platform
        self._with_flows = None

    def with_flows(self) -> list[Platform]:
        """The platforms whose pages a flow reaches; asked for every task without a platform, so worked out once."""
        if self._with_flows is None:
            self._with_flows = [platform for platform in self._specific() if platform.flow is not None]
        return self._with_flows

    def copy(self) -> Registry:
        """The same platforms, to add others to."""
        other = Registry(self._places)
        other._loaded |= self._loaded
        return other

    def place_of(self, name: str) -> str:
        """Where a platform comes from: `module:attribute`, or its file."""
        return self._places[name]

    def for_url(self, url: str) -> Platform | None:
        return next((platform for platform in self._specific() if _says_yes(platform, "matches_url", url)), None)

    def for_page(self, page: Page) -> Platform:
        found = next((platform for platform in self._specific() if _says_yes(platform, "recognises", page)), None)
        return found or self.get(FALLBACK)

    def place(self, platform: str | None, url: str) -> AddressPlace:
        """Return the state and the county that an address tells, as its platform reads it."""
        try:
            chosen = self.get(platform) if platform else self.for_url(url) or self.get(FALLBACK)
            return chosen.place(url)
        except PageError:  # an unknown platform is said where the page is parsed
            return AddressPlace()
        except Exception:
            logger.exception("platform %s failed on the place of %s", platform or "of this address", url)
            return AddressPlace()

    def choose(self, page: Page, target: Target) -> Platform:
        """The target's own word first, then the address, then what the page looks like."""
        if target.platform:
            return self.get(target.platform)
        return self.for_url(page.url) or self.for_page(page)

    def parse(self, page: Page, target: Target) -> ParsedPage:
        """The record of the page, or a PageError with the reason why it has none; never an empty record."""
        page.check()
        for part in page.more.values():
            part.check()
        platform = self.choose(page, target)
        try:
            found = platform.parse_parts(page.parts, target) if page.more else platform.parse(page, target)
            record = compact(found)
        except PageError as error:
            if error.reason == "not_a_parcel":
                check_page(page)  # an error page, a captcha or a form has a better reason than that
            raise
        except NO_VERDICT:
            raise
        except Exception as error:
            # A parser's fault is the outcome of this page, not the end of the batch it travels in.
            logger.exception("platform %s failed on %s", platform.name, page.url)
            detail = f"{platform.name} failed on this page: {type(error).__name__}: {error}"
            raise PageError("parser_error", detail) from error
        if not _is_sure(platform, record):
            check_page(page)
        if record.keys() <= _EMPTY_WITHOUT:
            raise PageError("not_a_parcel", f"{platform.name} found nothing of a parcel in this page")
        return ParsedPage(platform.name, platform.version, in_order(record))

    def _specific(self) -> Iterator[Platform]:
        for name in self._places:
            if name == FALLBACK:
                continue
            try:
                yield self.get(name)
            except PageError as error:
                # One broken add-on must not stop the others from being recognised.
                logger.warning("platform %s is left out: %s", name, error.detail)

    def _load(self, name: str) -> Platform:
        module, _, attribute = self._places[name].partition(":")
        try:
            loaded = getattr(import_module(module), attribute)
        except Exception as error:
            detail = f"platform {name!r} ({self._places[name]}) cannot be loaded: {error}"
            raise PageError("unknown_platform", detail) from error
        if not isinstance(loaded, Platform):
            raise PageError("unknown_platform", f"{self._places[name]} is a {type(loaded).__name__}, not a Platform")
        return loaded


def reach_of(platform: Platform) -> str:
    """Return how a platform's pages are reached, and how sure that is."""
    if platform.flow is None:
        return platform.reach or "one GET"
    return f"flow: {platform.reach}" if platform.reach else "flow"


def _says_yes(platform: Platform, question: str, about: str | Page) -> bool:
    """The platform's answer; one that fails to answer has not recognised anything."""
    try:
        return bool(getattr(platform, question)(about))
    except (HeavyPageError, *NO_VERDICT):
        raise
    except Exception:
        logger.exception("platform %s failed in %s", platform.name, question)
        return False


def _is_sure(platform: Platform, record: Record) -> bool:
    """A parcel id with several facts, or found where this platform has it, or a list: no need to look closer."""
    # Checking every page first was rejected: it reads all labels of the page, which costs more than parsing it.
    if record.get("parcels"):
        return True
    facts = len(record.keys() - _EMPTY_WITHOUT)
    if "parcel_id" in record:
        return platform.name != FALLBACK or facts >= 4
    return {"owner_name", "property_address"} <= record.keys() and facts >= _SURELY_A_PARCEL


@cache
def default_registry() -> Registry:
    """The platforms of this installation: other people's first, since they know their counties better."""
    installed = {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=ENTRY_POINT_GROUP)}
    others = {name: place for name, place in installed.items() if name not in BUILT_IN}
    return Registry(others | BUILT_IN | installed)
