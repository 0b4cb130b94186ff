"""DevNet wEdge (*.devnetwedge.com): one page a parcel and year, plain GET.

A year that is not billed yet shows another one; the year that the page names counts, not the one of the address.
"""

from __future__ import annotations

import re

from lienworker.platforms.guided import GuidedPlatform

_NAMES = {
    "parcel number": "parcel_id",
    "property id": "parcel_id",
    "site address": "property_address",
    "owner name address": "owner_name",
    "net taxable value": "taxable_value",
    "total unpaid": "total_due",
    "tax billed": "",
}


class DevNetPlatform(GuidedPlatform):
    """Labels above their values, and tables of assessments, payments and sales."""

    name = "devnet"
    version = "1"
    delay = 3.0
    evidence = "from documentation"
    url_pattern = re.compile(r"//[\w-]+\.devnetwedge\.com/", re.I)
    url_template = "https://{town}.devnetwedge.com/parcel/view/{parcel_digits}/{tax_year}"
    marks = ("devnetwedge",)
    names = _NAMES


PLATFORM = DevNetPlatform()
