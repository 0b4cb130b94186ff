"""qPublic and Beacon: the Schneider engine, many counties, one page of modules.

A module is found by its labels and heads, never by its number: counties order and omit them as they like.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading import Grid, Pair
from lienworker.platforms.reading.elements import text_of
from lienworker.platforms.rules import Labels, Path, RulePlatform, fill
from lienworker.platforms.vendors.generic import PLATFORM as GENERIC
from lienworker.platforms.vendors.qpublic.grids import shaped, shown
from lienworker.platforms.vendors.qpublic.owners import take_owner

_MODULES = Path("//section[contains(@id, 'ctlBodyPane')]")
_TITLE = Path(".//header//div[contains(@class, 'title')]")
_LABEL_CELLS = Path(".//table[contains(@class, 'two-column')]//tr/*[1][self::th or self::td][normalize-space()]")
_TABLES = Path(
    ".//table[not(contains(@class, 'two-column'))][not(.//table)][contains(@class, 'tabular-data') or .//th]"
)
_NAMES = {"total just or market value": "market_value", "land use": "property_use", "property class": "property_use"}
_NO_DATA = Path("//*[@id='ctlBodyPane_noDataList_pnlNoDataForModules']")
_REPORT = re.compile(r"Report:\s*(\S.*)")


class QPublicPlatform(RulePlatform):
    """Modules of two-column tables and of grids."""

    version = "3"
    delay = 3.0
    evidence = "real pages"
    reach = "parse only"
    concurrency = 1
    marks = ("ctlBodyPane_ctl", "mSection")
    labels = (Labels(_LABEL_CELLS, sections=_MODULES, title=_TITLE),)
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

    def parse(self, page: Page, target: Target) -> Record:
        # The pages of qpublic.net before the engine was Schneider's have other tables in each county.
        return super().parse(page, target) if _MODULES(page.selector.root) else GENERIC.parse(page, target)

    def pairs(self, root: Any) -> list[Pair]:
        return [pair._replace(lines=tuple(map(shown, pair.lines))) for pair in super().pairs(root)]

    def grids(self, root: Any) -> list[Grid]:
        titled = ((module, _title(module)) for module in _MODULES(root))
        return [grid for module, title in titled for table in _TABLES(module) for grid in shaped(table, title)]

    def finish(self, record: Record, root: Any, page: Page) -> None:
        take_owner(record, root)
        title = page.selector.xpath("string(//title)").get() or ""
        # A page that says nothing but its title has looked for the parcel and not found it.
        if not record.get("parcel_id") and len(record) > 1 and (found := _REPORT.search(title)):
            record["parcel_id"] = clean.identifier(found[1])
        for element in _NO_DATA(root):
            record["fields"]["No data available"] = text_of(element).partition(":")[2].strip()


def _title(module: Any) -> str:
    return " ".join(text_of(element) for element in _TITLE(module))


PLATFORM = QPublicPlatform("qpublic", r"//(?:[\w.-]*\.)?qpublic\d*\.(?:schneidercorp\.com|net)/|//qpublic\.net")
BEACON = QPublicPlatform("beacon", r"//beacon\.schneidercorp\.com/")
