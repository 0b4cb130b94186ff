"""Pages that are not parcel pages, told apart, each with its reason and whether a retry makes sense.

Parcel pages have search boxes, log-in links, disclaimers and captcha scripts in their frame too. So a mark alone
condemns nobody: it only makes us look closer, and a page that shows a parcel id and several labelled values passes.
"""

from __future__ import annotations

from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page
from lienworker.platforms.reading import shows_parcel
from lienworker.platforms.reading.pagemarks import KINDS, Kind, Shown
from lienworker.platforms.reading.tokens import tokens_of

_BY_STATUS = {401: "login_required", 403: "captcha", 404: "parcel_not_found", 410: "parcel_not_found", 429: "captcha"}
_BUTTON_TEXTS = "//title/text()|//button//text()|//input[@type='submit' or @type='button']/@value"
#: Characters in which the marks of such pages are looked for, three hundred of them; what says no more is short.
_LOOKED_AT = 1_000_000
_KIND_OF = {kind.reason: kind for kind in KINDS}
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
        raise PageError(kind.reason, kind.detail, retryable=kind.retryable)
    if not any(map(str.isalnum, shown.text)):
        raise PageError("empty_page", "the page shows no text (it may need a browser to fill it)")
    if not any(word in shown.text for word in _ABOUT_PARCELS):
        raise PageError("not_a_parcel", "nothing on the page speaks of a parcel")


def _look_at(page: Page) -> Shown:
    tokens = tokens_of(page.selector)
    texts = [token.text for token in tokens] + page.selector.xpath(_BUTTON_TEXTS).getall()
    fields = sum(token.barrier and token.element.get("type") not in ("checkbox", "radio") for token in tokens)
    return Shown(" ".join(" ".join(texts).lower().split())[:_LOOKED_AT], fields)


def _kind_by_status(status: int) -> Kind | None:
    if status >= 500:
        return _KIND_OF["error_page"]
    return _KIND_OF.get(_BY_STATUS.get(status, ""))


def _kind_by_marks(page: Page, shown: Shown) -> Kind | None:
    for kind in KINDS:
        text = page.lower_text[:_LOOKED_AT] if kind.in_source else shown.text
        if any(mark in text for mark in kind.marks) and (kind.also is None or kind.also(page, shown)):
            return kind
    return None


def _check_json(page: Page) -> None:
    data: Any = page.json()
    if data in ({}, [], None, ""):
        raise PageError("parcel_not_found", "the service answered with an empty list")
    if isinstance(data, dict) and data.get("error") and "features" not in data:
        raise PageError("error_page", f"the service answered: {data['error']}"[:200], retryable=True)
