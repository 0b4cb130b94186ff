"""The demo county's own platform: Juniper County, state XX, which exists only in `lienworker.testing.county`."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from parsel import Selector

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Platform, Record, Target

# Where a field is in the page, and how it is cleaned.
_FIELDS = {
    "parcel_id": ("jc-parcel-id", clean.identifier),
    "owner_name": ("jc-owner", clean.text),
    "owner_address": ("jc-mailing", clean.text),
    "property_address": ("jc-situs", clean.text),
    "city": ("jc-city", clean.text),
    "zip": ("jc-zip", clean.text),
    "legal_description": ("jc-legal", clean.text),
    "property_use": ("jc-use", clean.text),
    "acres": ("jc-acres", clean.acres),
    "year_built": ("jc-built", clean.year),
    "homestead": ("jc-homestead", clean.yes_no),
    "total_due": ("jc-due", clean.money),
}
_GRIDS = {
    "values": (
        ("year", clean.year),
        ("land", clean.money),
        ("building", clean.money),
        ("market", clean.money),
        ("assessed", clean.money),
        ("taxable", clean.money),
    ),
    "taxes": (
        ("year", clean.year),
        ("bill", clean.identifier),
        ("amount", clean.money),
        ("paid", clean.money),
        ("due", clean.money),
        ("status", clean.text),
        ("paid_on", clean.iso_date),
    ),
    "liens": (
        ("certificate_number", clean.identifier),
        ("tax_year", clean.year),
        ("face_amount", clean.money),
        ("interest_rate", clean.number),
        ("holder", clean.text),
        ("sale_date", clean.iso_date),
        ("redeemed_on", clean.iso_date),
        ("status", clean.text),
    ),
    "sales": (
        ("date", clean.iso_date),
        ("price", clean.money),
        ("deed_type", clean.text),
        ("book_page", clean.text),
        ("grantor", clean.text),
        ("grantee", clean.text),
    ),
}
_LATEST = {
    "land_value": "land",
    "building_value": "building",
    "market_value": "market",
    "assessed_value": "assessed",
    "taxable_value": "taxable",
}


class DemoPlatform(Platform):
    """Reads the pages of `lienworker.testing.county.pages`. Fast on purpose: the demo site is ours to hurry."""

    name = "demo"
    version = "1"
    evidence = "our own demo county"
    delay = 0.0
    concurrency = 32

    def matches_url(self, url: str) -> bool:
        host = urlsplit(url).hostname or ""
        return host == "juniper.example" or host.endswith(".juniper.example")

    def recognises(self, page: Page) -> bool:
        return 'content="juniper-county-demo"' in page.text

    def build_url(self, target: Target) -> str | None:
        base = target.extra.get("base_url")
        if not base or not target.parcel_id:
            return None
        return f"{str(base).rstrip('/')}/parcel/{quote(target.parcel_id, safe='')}"

    def parse(self, page: Page, target: Target) -> Record:
        shown = {
            str(cell.root.get("id")): " ".join(cell.root.itertext())
            for cell in page.selector.xpath("//table[@class='jc-facts']//td[@id]")
        }
        if not shown.get("jc-parcel-id"):
            raise PageError("not_a_parcel", "the page has no Juniper County parcel number")
        record: Record = {name: wash(shown.get(place)) for name, (place, wash) in _FIELDS.items()}
        record |= {"state": "XX", "fields": self._pairs(page.selector)}
        for grid in _GRIDS:
            record[grid] = self._rows(page.selector, grid)
        return clean.compact(record | self._latest(record)) or {}

    def _rows(self, page: Selector, grid: str) -> list[Record]:
        rows = page.xpath("//table[@id=$name]/tbody/tr", name=f"jc-{grid}")
        return [
            {name: wash("".join(cell.itertext())) for (name, wash), cell in zip(_GRIDS[grid], row.root, strict=False)}
            for row in rows
        ]

    def _pairs(self, page: Selector) -> dict[str, str | None]:
        return {
            clean.text(row.root[0].text) or "": clean.text(" ".join(row.root[1].itertext()))
            for row in page.xpath("//table[@class='jc-facts']//tr[th and td]")
        }

    def _latest(self, record: Record) -> Record:
        """The head of the record: the newest year of each history."""
        found: Record = {}
        if record["values"]:
            found |= {name: record["values"][0].get(column) for name, column in _LATEST.items()}
        if record["taxes"]:
            newest = record["taxes"][0]
            found |= {
                "tax_year": newest["year"],
                "tax_amount": newest["amount"],
                "tax_status": newest["status"],
            }
        return found


PLATFORM = DemoPlatform()
