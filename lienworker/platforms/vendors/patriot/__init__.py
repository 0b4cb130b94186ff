"""Patriot Properties WebPro (*.patriotproperties.com), which towns in New England use: the card of an account.

The card is a frame without parameters (`summary-bottom.asp`): it shows the parcel that the session opened last.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.flows import Flow
from lienworker.platforms.guided import GuidedPlatform
from lienworker.platforms.reading.elements import text_of
from lienworker.platforms.vendors.patriot.flow import BY_ACCOUNT, BY_PARCEL

_LOST = ("session has timed out", "either no search has been executed")
_BUILT = re.compile(r"\bbuilt about (\d{4})\b", re.I)
_BEDROOMS = re.compile(r"(\d+) (?:total )?bedroom", re.I)
_NAMES = {
    "location": "property_address",
    "property account number": "account",
    "account number": "account",
    "parcel id": "parcel_id",
    "total value": "assessed_value",
    "building value": "",
    "land value": "",
    "land area": "acres",
}


class PatriotPlatform(GuidedPlatform):
    """Labels and values, and a sentence about the building at the end."""

    name = "patriot"
    version = "1"
    delay = 5.0
    concurrency = 1
    evidence = "from documentation"
    reach = "from documentation"
    url_pattern = re.compile(r"//[\w-]+\.patriotproperties\.com/", re.I)
    marks = ("Property Account Number", "Narrative Description")
    names = _NAMES
    flow = BY_PARCEL

    def flow_for(self, target: Target) -> Flow:
        return BY_ACCOUNT if target.extra.get("account") else BY_PARCEL

    def parse(self, page: Page, target: Target) -> Record:
        if any(words in page.lower_text for words in _LOST):
            raise PageError("login_required", "the session of this site is over", retryable=True)
        return super().parse(page, target)

    def finish(self, record: Record, root: Any, page: Page) -> None:
        told = text_of(root)
        if built := _BUILT.search(told):
            record.setdefault("year_built", int(built[1]))
        if beds := _BEDROOMS.search(told):
            record.setdefault("bedrooms", int(beds[1]))


PLATFORM = PatriotPlatform()
