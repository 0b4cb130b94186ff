"""What a platform is, what it reads and whose page it reads.

A platform is pure: it turns the bytes of a page into the canonical record and touches no database, no network
and no environment. So the same page gives the same record tomorrow, and stored pages can be parsed again.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lxml import etree  # type: ignore[import-untyped]
from parsel import Selector
from w3lib.encoding import html_to_unicode, resolve_encoding

from lienworker.errors import HeavyPageError, PageError
from lienworker.platforms.core.addresses import AddressPlace, place_of_address
from lienworker.platforms.core.bounds import check_attributes, check_bytes, check_text, too_complex
from lienworker.platforms.core.merging import merge

if TYPE_CHECKING:
    from lienworker.platforms.flows import Flow

Record = dict[str, Any]
# The canonical names, in the order in which a person wants to read them.
CANONICAL = (
    "parcel_id", "alternate_ids", "owner_name", "owner_names", "owner_address", "property_address", "city", "state",
    "zip", "legal_description", "property_use", "acres", "land_area_sqft", "building_area_sqft", "year_built",
    "bedrooms", "bathrooms", "homestead", "land_value", "building_value", "market_value", "assessed_value",
    "taxable_value", "values", "tax_year", "tax_amount", "total_due", "tax_status", "taxes", "liens", "sales",
    "auction", "documents", "images", "geometry", "centroid", "parcels", "fields",
)  # fmt: skip
T = TypeVar("T")
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_NO_PAGES: Mapping[str, Any] = MappingProxyType({})
_UTF8 = frozenset({"utf-8", "UTF-8"})
_MAY_BE_A_BOM = frozenset({b"\xef", b"\xfe", b"\xff", b"\x00"})


def in_order(record: Record) -> Record:
    """The canonical names in their order, then whatever else a platform gave."""
    known = {name: record[name] for name in CANONICAL if name in record}
    return known if len(known) == len(record) else known | record


@dataclass(frozen=True)
class Target:
    """The parcel that a task asks for, as far as the task says."""

    platform: str | None = None
    state: str | None = None
    county: str | None = None
    parcel_id: str | None = None
    url: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Page:
    """One downloaded page. Decoded and parsed when first asked for, and then only once."""

    def __init__(
        self, url: str, body: bytes, content_type: str = "", charset: str | None = None, status: int = 200
    ) -> None:
        self.url = url
        self.body = body
        self.content_type = content_type
        self.charset = charset
        self.status = status
        self.headers = _NO_HEADERS
        """The reply's headers, for the steps of a flow; a stored page has none."""
        self.part = "page"
        """Its name among the pages of its parcel."""
        self.more: Mapping[str, Page] = _NO_PAGES
        """The parcel's other pages by their names, where a flow keeps several: of the parcel's own page."""
        self.under_limits = False
        """Whether this process may use only so much time and memory, so that no page can do it harm."""
        self._memo: dict[str, Any] = {}

    @property
    def parts(self) -> dict[str, Page]:
        """All pages of the parcel by their names, its own first."""
        return {self.part: self, **self.more}

    @cached_property
    def text(self) -> str:
        """The decoded body: by the HTTP header, the BOM or the page's own word, then UTF-8, then cp1252."""
        if self.charset in _UTF8 and self.body[:1] not in _MAY_BE_A_BOM:
            return self.body.decode("utf-8", "replace")  # nearly always; asking w3lib takes five times as long
        header = f"text/html; charset={self.charset}" if self.charset else None
        return html_to_unicode(header, self.body, auto_detect_fun=_guess_encoding)[1]

    @cached_property
    def lower_text(self) -> str:
        """The text in lower case, for the cheap substring tests of recognition."""
        return self.text.lower()

    @cached_property
    def selector(self) -> Selector:
        """As parsel makes it, but of plain elements: `lxml.html` looks a class up in Python for each of them.

        Refuses what would hold a worker up.
        """
        self.check()
        check_attributes(self.text, under_limits=self.under_limits)
        text = self.text.replace("\x00", "") if "\x00" in self.text else self.text
        source = text.strip().encode("utf-8", "replace") or b"<html/>"
        root = self._tree(source)
        return Selector(root=etree.Element("html") if root is None else root, type="html")

    def _tree(self, source: bytes) -> Any:
        """The tree, where it is no deeper than libxml2 allows: 256 elements, or 2048 for who has limits."""
        parser = etree.HTMLParser(recover=True, encoding="utf-8", huge_tree=self.under_limits)
        root = etree.fromstring(source, parser)
        last = parser.error_log.last_error
        if last is None or "Excessive depth" not in last.message:
            return root
        raise self._too_deep()

    def _too_deep(self) -> PageError:
        if not self.under_limits:
            return HeavyPageError("the page is nested deeply")
        return too_complex("the page is built to be slow: it is nested too deeply")

    def check(self) -> None:
        """Raises PageError where the page has too much of anything; once is enough."""
        self.memo("check", self._check)

    def _check(self) -> None:
        if not self.under_limits:
            check_bytes(self.body)
        check_text(self.text, is_json=self.is_json, under_limits=self.under_limits)

    def forget(self) -> None:
        """Lets go of all that was made of the body, which somebody else will do again."""
        for name in ("text", "lower_text", "selector"):
            self.__dict__.pop(name, None)
        self._memo.clear()
        for page in self.more.values():
            page.forget()

    @cached_property
    def is_json(self) -> bool:
        if "json" in self.content_type.lower():
            return True
        # Some county services send JSON as text/plain or text/html.
        return self.body[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")

    def json(self) -> Any:
        self.check()
        return self.memo("json", self._load_json)

    def memo(self, key: str, make: Callable[[], T]) -> T:
        """Something worked out about this page and kept with it, so that recognising and parsing share it."""
        if key not in self._memo:
            self._memo[key] = make()
        return cast(T, self._memo[key])

    def _load_json(self) -> Any:
        try:
            return json.loads(self.text.lstrip("\ufeff"))
        except ValueError as error:
            raise PageError("not_a_parcel", f"the page should be JSON and is not: {error}") from None
        except RecursionError:
            raise self._too_deep() from None


class Platform(ABC):
    """A county platform: recognises its pages, builds its addresses, reads its parcels."""

    name: str
    version: str = "1"
    delay: float | None = None
    """Seconds between two requests to one host; None leaves it to the setting."""
    concurrency: int | None = None
    """Requests in the air to one host; None leaves it to the setting."""
    evidence: str = ""
    """What it was written from, and so how sure it is: `real pages`, `a real page`, `from documentation`."""
    reach: str = ""
    """How sure its way to the pages is, where it is more than one GET: `verified on recorded pages`, `from
    documentation`; or that there is none: `parse only`."""
    flow: Flow | None = None
    """How its pages are reached, where one GET is not enough."""
    settings: Mapping[str, str] = MappingProxyType({})
    """Placeholders of its addresses and of its flow, for a definition that extends it."""

    def matches_url(self, url: str) -> bool:
        return False

    def recognises(self, page: Page) -> bool:
        return False

    def build_url(self, target: Target) -> str | None:
        """The address of a target's page, or None where the target does not say enough."""
        return None

    def place(self, url: str) -> AddressPlace:
        """Return the state and the county that an address of this platform tells.

        A result needs both to be delivered. A platform of one county overrides this, so that its lists need not name
        them.
        """
        return place_of_address(url)

    def flow_for(self, target: Target) -> Flow | None:
        """The flow that reaches this target's pages; it may differ by county."""
        return self.flow

    @abstractmethod
    def parse(self, page: Page, target: Target) -> Record:
        """The canonical record of the page. Raises PageError where the page is not a parcel's."""

    def list_of(self, item: Record, url: str) -> Target | None:
        """The target of an item that is a list itself (a day of a calendar at `url`); None where it is none."""
        return None

    def parse_parts(self, parts: Mapping[str, Page], target: Target) -> Record:
        """The record of all pages that the flow kept, by their names; the first is the parcel's own.

        Unless a platform knows better, each page is parsed by itself, and what an earlier one says stands. A page that
        has no parcel of its own adds nothing; one of another parcel is refused: sites that keep the parcel in the
        session may show the one before.
        """
        pages = list(parts.items())
        record = self.parse(pages[0][1], target)
        for name, page in pages[1:]:
            try:
                other = self.parse(page, target)
            except HeavyPageError:
                raise
            except PageError as problem:
                if problem.reason != "not_a_parcel":
                    raise
                continue
            if other.get("parcel_id") not in (None, record.get("parcel_id")):
                detail = f"the part {name!r} is of parcel {other['parcel_id']}, not of {record.get('parcel_id')}"
                raise PageError("unexpected_page", detail, retryable=True)
            merge(record, other)
        return record


def _guess_encoding(body: bytes) -> str | None:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return resolve_encoding("cp1252")
    return "utf-8"
