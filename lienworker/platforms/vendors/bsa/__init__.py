"""BS&A Online (bsaonline.com), which towns and counties in Michigan use. For saved pages: never tried live."""

from __future__ import annotations

import re

from lienworker.platforms.guided import GuidedPlatform

_NAMES = {"parcel number": "parcel_id", "property class": "property_use", "sev": "assessed_value"}


class BsaPlatform(GuidedPlatform):
    """Labels and values; the State Equalized Value is the assessed one."""

    name = "bsa"
    version = "1"
    delay = 5.0
    evidence = "from documentation"
    reach = "parse only"
    url_pattern = re.compile(r"//(?:www\.)?bsaonline\.com/", re.I)
    marks = ("BS&amp;A Software", "Parcel Number")
    names = _NAMES


PLATFORM = BsaPlatform()
