"""Lee County, Florida, Property Appraiser (leepa.org). The parcel is known by its folio; its STRAP is kept too."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record
from lienworker.platforms.reading import people
from lienworker.platforms.reading.elements import cells_of, lines_of, text_of
from lienworker.platforms.rules import Labels, Path, RulePlatform

_HEADLINE = Path("//*[@id='parcelLabel']")
_IDS = re.compile(r"STRAP:\s*(?P<strap>\S+)(?:.*?Folio ID:\s*(?P<folio>\S+))?", re.S)
_OWNER = Path("//*[@id='divDisplayParcelOwner']//div[contains(@class, 'textPanel')][1]/div[1]")
_PANELS = Path("//*[@id='divDisplayParcelOwner']//div[contains(@class, 'sectionSubTitle')]")
_TABLES = {
    "values": Path("//table[@id='valueGrid']"),
    "sales": Path("//div[@id='SalesDetails']//table[contains(@class, 'detailsTable')]"),
}
_LABELS = Labels(Path("//table[contains(concat(@class, ' '), 'appraisalDetails ')]//tr/th[1]"))
_ROOMS = re.compile(r"(?<!\d)(\d{1,4})\s*/\s*(\d{1,4}(?:\.\d{1,4})?)")
_NAMES = {"1st year building on tax roll": "", "total bedrooms bathrooms": ""}
_USE = Path("//table[contains(@class, 'appraisalAttributes')][.//th[normalize-space()='Land Tracts']]//tr[td]")


class LeepaPlatform(RulePlatform):
    """Panels below their titles, and grids with ids."""

    name = "leepa"
    version = "3"
    delay = 3.0
    evidence = "real pages"
    url_pattern = re.compile(r"//(?:www\.)?leepa\.org/", re.I)
    url_template = "https://www.leepa.org/Display/DisplayParcel.aspx?FolioID={parcel_id}"
    marks = ("parcelLabel", "divDisplayParcelOwner")
    labels = (_LABELS,)
    tables = _TABLES
    names = _NAMES

    def finish(self, record: Record, root: Any, page: Page) -> None:
        found = _IDS.search(" ".join(text_of(element) for element in _HEADLINE(root)))
        if found is None:
            record["parcel_id"] = None
            return
        record["parcel_id"] = found["folio"] or found["strap"]
        record["alternate_ids"] = {"strap": found["strap"]}
        for element in _OWNER(root):
            names, address = people.owner_and_address(lines_of(element))
            if names:
                record |= {"owner_name": names[0], "owner_names": names}
                record["owner_address"] = clean.text(" ".join(address))
        self._take_panels(record, root)
        rooms = _ROOMS.search(record["fields"].get("Total Bedrooms / Bathrooms", ""))
        if rooms:
            record |= {"bedrooms": int(rooms[1]), "bathrooms": float(rooms[2])}
        for row in _USE(root)[:1]:
            record["property_use"] = clean.joined([text_of(cell) for cell in cells_of(row)[:2]], " - ")

    def _take_panels(self, record: Record, root: Any) -> None:
        for title in _PANELS(root):
            kinds = ((e, e.get("class") or "") for e in title.itersiblings("*"))
            panel = next(((e, kind) for e, kind in kinds if "textPanel" in kind or "sectionSubTitle" in kind), None)
            if panel is None or "textPanel" not in panel[1]:
                continue
            if "Site Address" in text_of(title):
                record["property_address"] = clean.text(" ".join(lines_of(panel[0])))
            elif text_of(title).startswith("Property Description"):
                record["legal_description"] = clean.text(" ".join(lines_of(panel[0])))


PLATFORM = LeepaPlatform()
