"""Tyler iasWorld Public Access: a banner with the parcel, and datalets of headings and data.

Values, sales and taxes are other pages (`mode=`) of the same parcel, built the same way.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms import clean
from lienworker.platforms.base import Page, Record
from lienworker.platforms.elements import cells_of, lines_of, text_of
from lienworker.platforms.reading import Grid, Pair, people
from lienworker.platforms.rules import Path, RulePlatform

_BANNER_TOP = Path("//td[contains(@class, 'DataletHeaderTop')]|//tr[contains(@class, 'DataletHeaderTop')]/td")
_BANNER_BOTTOM = Path("//td[contains(@class, 'DataletHeaderBottom')]|//tr[contains(@class, 'DataletHeaderBottom')]/td")
_DATALETS = Path("//div[starts-with(@id, 'datalet_div_')]")
_TITLE = Path(".//td[contains(@class, 'DataletTitleColor')]")
_HEADINGS = Path(".//td[contains(@class, 'DataletSideHeading')]")
_HEADED_ROWS = Path(".//tr[td[contains(@class, 'DataletTopHeading')]]")
_PARID = re.compile(r"\s*(?:PARID|PIN|PARCEL(?: ID| NUMBER)?|MAP|ACCOUNT)\s*[:#]\s*(.*)", re.I | re.S)
_NAMES = {
    "name s": "owner_name",
    "municipality": "",
    "owner name s": "owner_name",
    "city": "",
    "zip code": "",
    "land use code": "property_use",
    "classification": "",
    "homestead farmstead": "",
    "tax district": "",
}
_PREFIX = re.compile(r"(?:(?P<owner>owner)|parcel location|location|situs|address)(?:\s*name)?\s*:\s*", re.I)
_STREET = re.compile(
    r"^\d|\b(?:st|street|ave?|avenue|rd|road|dr|drive|ln|lane|blvd|ct|court|way|hwy|highway|pl|cir|ter|trl|pkwy|pike"
    r"|route|rte?|sq|loop|run|xing|row)\b\.?(?:\s+[nsew]{1,2})?$",
    re.I,
)
_CITY_LINE = re.compile(r"city,? ?/? ?state", re.I)


class TylerPlatform(RulePlatform):
    """Side headings are labels; top headings are the heads of grids."""

    name = "tyler"
    version = "1"
    delay = 3.0
    concurrency = 1
    url_pattern = re.compile(r"/datalets?/datalet\.aspx", re.I)
    url_template = "{base_url}/Datalets/Datalet.aspx?mode={mode}&UseSearch=no&pin={parcel_id}"
    marks = ("DataletHeaderTop",)
    names = _NAMES

    def pairs(self, root: Any) -> list[Pair]:
        """A heading left blank goes on with the value above it (a second name, the next line of an address)."""
        pairs: list[Pair] = []
        for datalet in _DATALETS(root):
            title = text_of(_TITLE(datalet)[0]) if _TITLE(datalet) else ""
            named = False
            for heading in _HEADINGS(datalet):
                name, value = text_of(heading).strip(" :"), heading.getnext()
                lines = lines_of(value) if value is not None else ()
                if name and lines:
                    pairs.append(Pair(name, lines, title))
                elif lines and named:
                    last = pairs.pop()
                    pairs.append(Pair(last.label, last.lines + lines, title))
                named = bool(lines) and (bool(name) or named)
        return pairs

    def grids(self, root: Any) -> list[Grid]:
        grids: list[Grid] = []
        for head in (row for datalet in _DATALETS(root) for row in _HEADED_ROWS(datalet)):
            names = [text_of(cell).strip(" :") for cell in cells_of(head)]
            rows = [[" ".join(lines_of(cell)) for cell in cells_of(row)] for row in head.itersiblings("tr")]
            body = [row for row in rows if len(row) == len(names) and any(row)]
            if body:
                grids.append(Grid(names, body))
        return grids

    def finish(self, record: Record, root: Any, page: Page) -> None:
        for cell in _BANNER_TOP(root):
            # Not folded: the inner spaces belong to the id, and the site wants them back in its addresses.
            if found := _PARID.fullmatch("".join(cell.itertext())):
                record["parcel_id"] = clean.identifier(found[1])
                record["fields"].setdefault("PARID", clean.text(found[1]))
        self._take_banner(record, [text_of(cell) for cell in _BANNER_BOTTOM(root)])
        self._complete(record)

    def _take_banner(self, record: Record, texts: list[str]) -> None:
        """Owner and situs, in the one order or the other: what looks like a street is never taken for an owner."""
        owner = situs = None
        for text in texts:
            label = _PREFIX.match(text)
            value = clean.text(text[label.end() if label else 0 :].rstrip(" ,"))
            if not value:
                continue
            is_street = not label["owner"] if label else bool(_STREET.search(value))
            if is_street:
                situs = situs or value
            elif owner is None and people.is_owner(value):
                owner = value
            elif situs is None:
                situs = value
        known = record.get("owner_names", [])
        if owner and (situs or not known or owner in known):
            record |= {"owner_name": owner, "owner_names": [owner, *(name for name in known if name != owner)]}
        if situs and situs not in known and not record.get("property_address"):
            record["property_address"] = situs

    def _complete(self, record: Record) -> None:
        """The mailing address goes on under a heading of its own; a homestead is a code with its name."""
        fields: dict[str, str] = record["fields"]
        city = next((value for label, value in fields.items() if _CITY_LINE.search(label)), None)
        if city and record.get("owner_address") and city not in record["owner_address"]:
            record["owner_address"] = f"{record['owner_address']} {city}"
        homestead = next((value for label, value in fields.items() if label.lower().startswith("homestead")), "")
        if "homestead" in homestead.lower() and record.get("homestead") is None:
            record["homestead"] = not homestead.lower().startswith("no")


PLATFORM = TylerPlatform()
