"""Pages that are not parcel pages, told apart, each with its reason and whether a retry makes sense.

Parcel pages have search boxes, log-in links, disclaimers and captcha scripts in their frame too. So a mark alone
condemns nobody: it only makes us look closer, and a page that shows a parcel id and several labelled values passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lienworker.errors import PageError
from lienworker.hostnames import host_of
from lienworker.platforms.core.base import Page
from lienworker.platforms.reading import shows_parcel
from lienworker.platforms.reading.tokens import tokens_of

# What pages without a parcel say, in lower case, split by bars.
#: Sites that doubt us, or have had enough of us.
_CAPTCHA = (
    "captcha|verify you are human|are you human|are you a robot|not a robot|unusual traffic|checking your browser"
    "|incapsula incident|access denied|request blocked|bot detection|automated access|security check"
    "|attention required|verifying your browser|request unsuccessful|just a moment|pardon our interruption"
    "|requested url was rejected|request rejected|too many requests|exceeded the maximum number of|over limit"
    "|overlimit|temporarily blocked|rate limit|verify that you're not|confirm you are human|has been blocked"
)
#: The same, said by a script.
_CAPTCHA_SCRIPTS = (
    "g-recaptcha|h-captcha|hcaptcha.com|cf-chl|challenge-platform|px-captcha|_incapsula_resource|datadome"
    "|captcha-delivery.com|awswaf.com|cf-turnstile|perimeterx"
)
#: Sites in trouble.
_ERROR = (
    "system unavailable|system is unavailable|system is currently unavailable|temporarily unavailable"
    "|currently unavailable|service unavailable|internal server error|server error in|runtime error|stack trace"
    "|traceback (most recent call last)|unhandled exception|an error has occurred|an error occurred"
    "|error occurred|unexpected error|application error|bad gateway|gateway time-out|gateway timeout"
    "|under maintenance|down for maintenance|undergoing maintenance|scheduled maintenance|routine maintenance"
    "|error executing database|fatal error|ole db provider|odbc|database error|try again later|site is down"
    "|server is too busy|query timeout|timeout expired|something went wrong|server error|microsoft vbscript"
    "|technical difficulties|not currently available|is not responding|session has expired|session expired"
    "|session timed out|invalid viewstate|unable to process your request|could not connect|connection failed"
    "|proxy error|unable to connect|currently down|is offline|error loading|there was an error|an exception"
    "|session has timed out|session timeout|system maintenance|performing maintenance|maintenance in progress"
    "|be back soon|temporarily down|could not be processed"
)
#: Sites that looked and found nothing.
_NOT_FOUND = (
    "no records found|no record found|no records were found|no results found|no results were found|no matching"
    "|no matches|not found|does not exist|could not be found|no data found|no parcel found|no parcels found"
    "|invalid parcel|no property found|no properties found|0 records|no record matches|no results|unable to find"
    "|unable to locate|cannot be found|no information found|not a valid parcel|no such|no items found"
    "|no data available|did not match any|returned no|no records match|no records to display|no longer exists"
    "|no longer active|no records|was not located|no property match|no parcel match|no parcels match"
    "|no properties match|no account match|did not find any|did not yield any|has been retired|is retired"
    "|is inactive|parcel is no longer|no account found|no accounts found|nothing found|could not find|not on file"
    "|no parcel with|no property with|invalid account|invalid pin|invalid property|0 results|0 parcels found"
)
#: Pages that a script fills.
_SHELL = (
    "enable javascript|javascript is disabled|id=\"root\"|id='root'|id=root|id=\"app\"|id='app'|id=app|<app-root"
    '|id="__next"'
)


@dataclass(frozen=True)
class Shown:
    """What a person sees of a page."""

    text: str
    """Title, texts and buttons, in lower case."""
    said_first: str
    """The same without footers and long prose: what a page is about, it says there."""
    fields: int
    """How many form fields wait to be filled in."""


@dataclass(frozen=True)
class Kind:
    """A kind of page that gives no result, and the lower-case words (split by bars) that such a page shows."""

    reason: str
    detail: str
    words: str
    retryable: bool = False
    also: Callable[[Page, Shown], bool] | None = None
    """What must be true of the page besides."""
    said_first: bool = False
    """Whether a footer or a disclaimer that has the words condemns nothing ("routine maintenance on Fridays")."""
    in_source: bool = False
    """Whether the marks are in the source (a script, an attribute) rather than in the visible text."""
    is_gate: bool = False
    """Whether the parcel is behind this page: one GET does not reach it, a flow may."""

    @cached_property
    def marks(self) -> tuple[str, ...]:
        return tuple(self.words.split("|"))


def _has_a_map(page: Page, shown: Shown) -> bool:
    return bool(page.selector.xpath(_MAP_ELEMENT))


def _is_nearly_bare(page: Page, shown: Shown) -> bool:
    return len(shown.text) < 1_500 and shown.fields <= 2


def _says_nothing(page: Page, shown: Shown) -> bool:
    """Nothing but a title and perhaps a word to wait."""
    return len(shown.text) < 200 and not shown.fields


def _few_fields(page: Page, shown: Shown) -> bool:
    """A search form too says "by clicking Search I agree"; what asks for nothing but agreement has few fields."""
    return shown.fields <= 2


def _asks_to_agree(page: Page, shown: Shown) -> bool:
    """A button or a link that is nothing but consent."""
    texts = page.selector.xpath(_CONSENTS).getall()
    return shown.fields <= 2 and any(_CONSENT.match(" ".join(text.split())) for text in texts)


def _has_fields(page: Page, shown: Shown) -> bool:
    return shown.fields > 0


_MAP_ELEMENT = (
    "//div[contains(translate(concat(@id, ' ', @class), 'MAP', 'map'), 'map')]"
    "|//canvas|//*[contains(@class, 'esri')]|//iframe[contains(translate(@src, 'MAP', 'map'), 'map')]"
)
_CONSENTS = "//button//text()|//a/text()|//input[@type='submit' or @type='button']/@value"
_CONSENT = re.compile(r"(?:yes,? )?(?:i )?(?:agree|accept|acknowledge|understand|continue|proceed)\b.{0,20}$", re.I)
# In this order: the first kind whose mark is found names the reason.
_KINDS = (
    Kind(
        "captcha",
        "the site asks whether we are human",
        _CAPTCHA,
        retryable=True,
    ),
    Kind(
        "captcha",
        "the site asks a script whether we are human",
        _CAPTCHA_SCRIPTS,
        retryable=True,
        also=_is_nearly_bare,
        in_source=True,
    ),
    Kind(
        "error_page",
        "the site shows an error instead of the parcel",
        _ERROR,
        retryable=True,
        said_first=True,
    ),
    Kind(
        "parcel_not_found",
        "the site has no such parcel",
        _NOT_FOUND,
    ),
    Kind(
        "login_required",
        "the site asks for a log-in",
        "type=\"password\"|type='password'|type=password",
        in_source=True,
        is_gate=True,
    ),
    Kind(
        "disclaimer",
        "the site wants its terms accepted first",
        "i agree|i accept|accept terms|agree to the terms|accept the terms|i understand|click agree|you must accept"
        "|you must agree|accept and continue|accept & continue|i have read|do you agree|agree and continue"
        "|agree & continue|do not agree|i acknowledge|accept disclaimer|agree to these terms",
        also=_few_fields,
        is_gate=True,
    ),
    Kind(
        "disclaimer",
        "the site wants its terms accepted first",
        "disclaimer|terms and conditions|terms of use|conditions of use|by clicking|license agreement",
        also=_asks_to_agree,
        is_gate=True,
    ),
    Kind(
        "map_shell",
        "the page is a map that loads its parcels later",
        "openlayers|esri|arcgis|leaflet|mapbox|google.maps|maps.googleapis|mapviewer|map_canvas|webmap",
        also=_has_a_map,
        in_source=True,
    ),
    Kind(
        "empty_page",
        "the page is a shell that a browser would fill",
        _SHELL,
        also=_says_nothing,
        in_source=True,
    ),
    Kind(
        "search_form",
        "the page is a search form",
        "search|look up|lookup|find a |find your |enter your |enter a |enter the ",
        also=_has_fields,
        is_gate=True,
    ),
)

_BY_STATUS = {401: "login_required", 403: "captcha", 404: "parcel_not_found", 410: "parcel_not_found", 429: "captcha"}
_BUTTON_TEXTS = "//title/text()|//button//text()|//input[@type='submit' or @type='button']/@value"
_FOOTERS = "//footer|//*[contains(translate(concat(@id, ' ', @class), 'FOTER', 'foter'), 'footer')]"
#: Characters of a text that says what happened; a longer one is a disclaimer.
_LONGEST_SAID = 200
#: Characters in which the marks of such pages are looked for, three hundred of them; what says no more is short.
_LOOKED_AT = 1_000_000
_LONGEST_NAME = 30
_KIND_OF = {kind.reason: kind for kind in _KINDS}
_ABOUT_PARCELS = ("parcel", "owner", "assess", "account", "folio", "property", "tax", "certificate", "deed", "auction")


def check_page(page: Page) -> None:
    """Raises PageError where the page is not a parcel's; says nothing where it may well be one."""
    if not page.body.strip():
        raise PageError("empty_page", "the site answered with nothing at all", retryable=True)
    if page.is_json:
        _check_json(page)
    elif not shows_parcel(page):
        _condemn(page)


def _condemn(page: Page) -> None:
    """The reason why this page without a parcel has none; says nothing where no reason is to be seen."""
    shown = _look_at(page)
    if kind := _kind_by_status(page.status) or _kind_by_marks(page, shown):
        detail = f"{kind.detail}; {_way_in(page.url)}" if kind.is_gate else kind.detail
        raise PageError(kind.reason, detail, retryable=kind.retryable)
    if not any(map(str.isalnum, shown.text)):
        raise PageError("empty_page", "the page shows no text (it may need a browser to fill it)")
    if not any(word in shown.text for word in _ABOUT_PARCELS):
        raise PageError("not_a_parcel", "nothing on the page speaks of a parcel")


def _way_in(url: str) -> str:
    """Return how to begin the flow that a gate needs, as a command for the site's own name."""
    return f"its parcels need a flow, begun with: lienworker platforms new {flow_name(url)} --flow"


def flow_name(url: str) -> str:
    """Return a name for the flow of a site; one that can be typed, whatever the address is."""
    words = re.findall(r"[a-z0-9]+", host_of(url).removeprefix("www."), re.ASCII)
    name = "_".join(words)[:_LONGEST_NAME].rstrip("_") or "county"
    return name if name[0].isalpha() else f"site_{name}"


def _look_at(page: Page) -> Shown:
    tokens = tokens_of(page.selector)
    buttons = page.selector.xpath(_BUTTON_TEXTS).getall()
    fields = sum(token.barrier and token.element.get("type") not in ("checkbox", "radio") for token in tokens)
    footers = {element for footer in page.selector.root.xpath(_FOOTERS) for element in footer.iter()}
    first = [token.text for token in tokens if len(token.text) <= _LONGEST_SAID and token.element not in footers]
    return Shown(_joined([token.text for token in tokens] + buttons), _joined(first + buttons), fields)


def _joined(texts: list[str]) -> str:
    return " ".join(" ".join(texts).lower().split())[:_LOOKED_AT]


def _kind_by_status(status: int) -> Kind | None:
    if status >= 500:
        return _KIND_OF["error_page"]
    return _KIND_OF.get(_BY_STATUS.get(status, ""))


def _kind_by_marks(page: Page, shown: Shown) -> Kind | None:
    for kind in _KINDS:
        text = page.lower_text[:_LOOKED_AT] if kind.in_source else shown.said_first if kind.said_first else shown.text
        if any(mark in text for mark in kind.marks) and (kind.also is None or kind.also(page, shown)):
            return kind
    return None


def _check_json(page: Page) -> None:
    data: Any = page.json()
    if data in ({}, [], None, ""):
        raise PageError("parcel_not_found", "the service answered with an empty list")
    if isinstance(data, dict) and data.get("error") and "features" not in data:
        raise PageError("error_page", f"the service answered: {data['error']}"[:200], retryable=True)
