"""qPublic and Beacon: the Schneider engine, many counties, one page of modules.

A module is found by its labels and heads, never by its number: counties order and omit them as they like.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms import clean
from lienworker.platforms.base import Page, Record, Target
from lienworker.platforms.elements import lines_of, text_of
from lienworker.platforms.reading import people
from lienworker.platforms.reading.labels import is_known
from lienworker.platforms.rules import Labels, Path, RulePlatform, fill

_MODULES = Path("//section[contains(@id, 'ctlBodyPane')]")
_TITLE = Path(".//header//div[contains(@class, 'title')]")
_CONTENT = Path("./div[contains(@class, 'module-content')]")
_OWNER_NAMES = Path(
    "//*[contains(@id, 'ctlBodyPane')][substring(@id, string-length(@id) - 9) = '_lblSearch'"
    " or substring(@id, string-length(@id) - 9) = '_lnkSearch'][contains(@id, 'wner')]"
)
_OWNER_ADDRESSES = Path(
    "//*[contains(@id, 'ctlBodyPane')][contains(@id, 'wnerAddress') or contains(@id, '_lblAddress')"
    " or contains(@id, '_lblCityStateZip') or contains(@id, '_lblCityStZip')]"
)
_LABEL_CELLS = Path(".//table[contains(@class, 'two-column')]//tr/*[1][self::th or self::td][normalize-space()]")
_TABLES = {
    "": Path(
        "//section[contains(@id, 'ctlBodyPane')]//table[not(contains(@class, 'two-column'))]"
        "[not(.//table)][contains(@class, 'tabular-data') or .//th]"
    )
}
_NAMES = {"total just or market value": "market_value", "land use": "property_use", "property class": "property_use"}
_NO_DATA = Path("//*[@id='ctlBodyPane_noDataList_pnlNoDataForModules']")
_REPORT = re.compile(r"Report:\s*(\S.*)")


class QPublicPlatform(RulePlatform):
    """Modules of two-column tables and of grids."""

    version = "1"
    delay = 3.0
    concurrency = 1
    marks = ("ctlBodyPane_ctl", "mSection")
    labels = (Labels(_LABEL_CELLS, sections=_MODULES, title=_TITLE),)
    tables = _TABLES
    names = _NAMES

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.url_pattern = re.compile(host, re.I)
        template = (
            "/Application.aspx?AppID={app_id}&LayerID={layer_id}&PageTypeID=4&PageID={page_id}&KeyValue={parcel_id}"
        )
        self.url_template = f"https://{name}.schneidercorp.com{template}"
        by_name = "/Application.aspx?App={app}&Layer={layer}&PageType=Report&KeyValue={parcel_id}"
        self._named_template = f"https://{name}.schneidercorp.com{by_name}"

    def build_url(self, target: Target) -> str | None:
        """By the numbers of the county's application, or by its names (`FultonCountyGA`, `Parcels`)."""
        return fill(self.url_template, target) or fill(self._named_template, target)

    def finish(self, record: Record, root: Any, page: Page) -> None:
        self._take_owner(record, root)
        if not record.get("parcel_id") and (
            found := _REPORT.search(page.selector.xpath("string(//title)").get() or "")
        ):
            record["parcel_id"] = clean.identifier(found[1])
        for element in _NO_DATA(root):
            record["fields"]["No data available"] = text_of(element).partition(":")[2].strip()

    def _take_owner(self, record: Record, root: Any) -> None:
        """The names are links or spans of their own; the address can begin with a co-owner."""
        names = [name for element in _OWNER_NAMES(root) if (name := clean.text(text_of(element)))]
        if not names:
            self._take_owner_module(record, root)
        lines = [line for element in _OWNER_ADDRESSES(root) for line in lines_of(element) if len(line) > 1]
        if not names:
            return
        start = next((n for n, line in enumerate(lines) if people.is_address_line(line)), len(lines))
        names += [line for line in lines[:start] if people.is_owner(line)]
        record["owner_name"] = names[0]
        record["owner_names"] = list(dict.fromkeys(names))
        record["owner_address"] = clean.text(" ".join(dict.fromkeys(lines[start:])))

    def _take_owner_module(self, record: Record, root: Any) -> None:
        """Counties with other ids still have a module of owners, names above address."""
        for module in _MODULES(root):
            title = " ".join(text_of(element) for element in _TITLE(module)).lower()
            if "owner" in title and "radius" not in title and not record.get("owner_name"):
                lines = [line for part in _CONTENT(module) for line in lines_of(part) if not is_known(line)]
                found, address = people.owner_and_address(lines)
                record |= {"owner_name": found[0] if found else None, "owner_names": found}
                record["owner_address"] = people.mailing_address(address)


PLATFORM = QPublicPlatform("qpublic", r"//(?:[\w.-]*\.)?qpublic\d*\.(?:schneidercorp\.com|net)/|//qpublic\.net")
BEACON = QPublicPlatform("beacon", r"//beacon\.schneidercorp\.com/")
