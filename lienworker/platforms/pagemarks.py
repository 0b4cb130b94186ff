"""The kinds of pages that give no result, and the words by which each is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from lienworker.platforms.base import Page


@dataclass(frozen=True)
class Shown:
    """What a person sees of a page."""

    text: str
    """Title, texts and buttons, in lower case."""
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
    in_source: bool = False
    """Whether the marks are in the source (a script, an attribute) rather than in the visible text."""

    @cached_property
    def marks(self) -> tuple[str, ...]:
        return tuple(self.words.split("|"))


def _has_a_map(page: Page, shown: Shown) -> bool:
    return bool(page.selector.xpath(_MAP_ELEMENT))


def _is_nearly_bare(page: Page, shown: Shown) -> bool:
    return len(shown.text) < 1_500 and shown.fields <= 2


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
KINDS = (
    Kind(
        "captcha",
        "the site asks whether we are human",
        "captcha|verify you are human|are you human|are you a robot|not a robot|unusual traffic"
        "|checking your browser|incapsula incident|access denied|request blocked|bot detection"
        "|automated access|security check|attention required|verifying your browser|request unsuccessful"
        "|just a moment|pardon our interruption|requested url was rejected|request rejected|too many requests",
        retryable=True,
    ),
    Kind(
        "captcha",
        "the site asks a script whether we are human",
        "g-recaptcha|h-captcha|hcaptcha.com|cf-chl|challenge-platform|px-captcha|_incapsula_resource|datadome",
        retryable=True,
        also=_is_nearly_bare,
        in_source=True,
    ),
    Kind(
        "error_page",
        "the site shows an error instead of the parcel",
        "system unavailable|system is unavailable|system is currently unavailable|temporarily unavailable"
        "|currently unavailable|service unavailable|internal server error|server error in|runtime error"
        "|stack trace|traceback (most recent call last)|unhandled exception|an error has occurred|an error occurred"
        "|error occurred|unexpected error|application error|bad gateway|gateway time-out|gateway timeout"
        "|under maintenance|down for maintenance|undergoing maintenance|scheduled maintenance|routine maintenance"
        "|error executing database|fatal error|ole db provider|odbc|database error|try again later|site is down"
        "|server is too busy|query timeout|timeout expired|something went wrong|server error|microsoft vbscript"
        "|technical difficulties|not currently available|is not responding|session has expired|session expired"
        "|session timed out|invalid viewstate"
        "|unable to process your request|could not connect|connection failed|proxy error|unable to connect"
        "|currently down|is offline|error loading|there was an error|an exception",
        retryable=True,
    ),
    Kind(
        "parcel_not_found",
        "the site has no such parcel",
        "no records found|no record found|no records were found|no results found|no results were found"
        "|no matching|no matches|not found|does not exist|could not be found|no data found|no parcel found"
        "|no parcels found|invalid parcel|no property found|no properties found|0 records|no record matches"
        "|no results|unable to find|unable to locate|cannot be found|no information found|not a valid parcel"
        "|no such|no items found|no data available|did not match any|returned no|no records match"
        "|no records to display|no longer exists|no longer active|no records|was not located",
    ),
    Kind(
        "login_required",
        "the site asks for a log-in",
        "type=\"password\"|type='password'|type=password",
        in_source=True,
    ),
    Kind(
        "disclaimer",
        "the site wants its terms accepted first",
        "i agree|i accept|accept terms|agree to the terms|accept the terms|i understand|click agree|you must accept"
        "|you must agree|accept and continue|accept & continue|i have read|do you agree|agree and continue"
        "|agree & continue|do not agree|i acknowledge|accept disclaimer|agree to these terms",
        also=_few_fields,
    ),
    Kind(
        "disclaimer",
        "the site wants its terms accepted first",
        "disclaimer|terms and conditions|terms of use|conditions of use|by clicking|license agreement",
        also=_asks_to_agree,
    ),
    Kind(
        "map_shell",
        "the page is a map that loads its parcels later",
        "openlayers|esri|arcgis|leaflet|mapbox|google.maps|maps.googleapis|mapviewer|map_canvas|webmap",
        also=_has_a_map,
        in_source=True,
    ),
    Kind(
        "search_form",
        "the page is a search form",
        "search|look up|lookup|find a |find your |enter your |enter a |enter the ",
        also=_has_fields,
    ),
)
