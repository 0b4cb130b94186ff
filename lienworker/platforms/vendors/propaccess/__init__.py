"""PropAccess of True Automation (PACS), which appraisal districts in Texas and Washington use: one page of panels."""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.guided import GuidedPlatform
from lienworker.platforms.vendors.propaccess.flow import FLOW

_NAMES = {
    "property id": "parcel_id",
    "geographic id": "geo_id",
    "name": "owner_name",
    "address": "property_address",
    "mailing address": "owner_address",
    # Market less the agricultural use is called appraised here, and appraised less the cap is assessed.
    "appraised value": "",
    "market value": "market_value",
    "assessed value": "assessed_value",
    **dict.fromkeys(("improvements", "land market", "appraised", "assessed", "ag valuation", "hs cap"), ""),
}


class PropAccessPlatform(GuidedPlatform):
    """The page of a property is one GET where the district allows it, else it wants a search first."""

    name = "propaccess"
    version = "1"
    delay = 3.0
    evidence = "from documentation"
    reach = "from documentation"
    url_pattern = re.compile(r"/clientdb/(?:Property|SearchResults)\.aspx", re.I)
    url_template = "{base_url}/clientdb/Property.aspx?cid={cid}&prop_id={parcel_id}"
    marks = ("propertyHeading_searchResults",)
    names = _NAMES
    flow = FLOW

    def parse(self, page: Page, target: Target) -> Record:
        if "Property not found." in page.text:
            raise PageError("parcel_not_found", "the district has no such property")
        return super().parse(page, target)

    def finish(self, record: Record, root: Any, page: Page) -> None:
        record.pop("taxes", None)  # what it lists by year are estimates


PLATFORM = PropAccessPlatform()
