"""The kinds of pages that give no result, and the words by which each is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from lienworker.platforms.core.base import Page
from lienworker.platforms.reading.pagewords import CAPTCHA, CAPTCHA_SCRIPTS, ERROR, NOT_FOUND, SHELL


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
KINDS = (
    Kind(
        "captcha",
        "the site asks whether we are human",
        CAPTCHA,
        retryable=True,
    ),
    Kind(
        "captcha",
        "the site asks a script whether we are human",
        CAPTCHA_SCRIPTS,
        retryable=True,
        also=_is_nearly_bare,
        in_source=True,
    ),
    Kind(
        "error_page",
        "the site shows an error instead of the parcel",
        ERROR,
        retryable=True,
    ),
    Kind(
        "parcel_not_found",
        "the site has no such parcel",
        NOT_FOUND,
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
        "empty_page",
        "the page is a shell that a browser would fill",
        SHELL,
        also=_says_nothing,
        in_source=True,
    ),
    Kind(
        "search_form",
        "the page is a search form",
        "search|look up|lookup|find a |find your |enter your |enter a |enter the ",
        also=_has_fields,
    ),
)
