"""SRI (Zeus, sriservices.com): tax sales, certificates and foreclosures in Indiana and other states, a JSON service.

A search is a list of cards; the card of one property, or its details, is a parcel.
"""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.services import Facts, JsonPlatform, inside, objects, owners, shown_fields
from lienworker.platforms.vendors.sri.flow import FLOW

_SALE_TYPES = {"A": "tax sale", "C": "certificate", "D": "deed", "J": "adjudicated", "F": "foreclosure"}


class SriPlatform(JsonPlatform):
    """Cards by the property's id, which is the parcel's number."""

    name = "sri"
    version = "1"
    delay = 2.0
    evidence = "from documentation"
    reach = "from documentation"
    url_pattern = re.compile(r"//sriservicesusermgmtprod\.azurewebsites\.net/api/property/", re.I)
    flow = FLOW

    def recognises(self, page: Page) -> bool:
        return page.is_json and '"propertyId"' in page.text and '"saleId"' in page.text

    def parse(self, page: Page, target: Target) -> Record:
        """Read a search with one property, or one that names the parcel asked for, as that parcel."""
        found = super().parse(page, target)
        if target.parcel_id is None or "parcels" not in found:
            return found
        same = [card for card in found["parcels"] if card["parcel_id"] == target.parcel_id]
        if not same:
            raise PageError("parcel_not_found", "none of the properties found has this number")
        return self.checked(same[0])

    def read(self, data: Any) -> Record:
        if not isinstance(inside(data).get("properties"), list):
            return _card(inside(data))
        cards = {(card.get("id"), card.get("saleId")): card for card in objects(data, "properties")}
        if not cards:
            raise PageError("parcel_not_found", "the search found no property")
        return {"parcels": [_card(card) for card in cards.values()]}


def _card(card: Facts) -> Record:
    kind = clean.text(card.get("saleType"))
    return {
        "parcel_id": clean.identifier(card.get("propertyId")),
        "alternate_ids": {
            "alternate": clean.identifier(card.get("altPropertyId")),
            "sale": clean.identifier(card.get("saleId")),
        },
        **owners([card.get("ownerName")]),
        "property_address": clean.joined((card.get("address1"), card.get("address2")), " "),
        "city": clean.text(card.get("city")),
        "state": clean.text(card.get("state")),
        "zip": clean.text(card.get("zip")),
        "auction": {
            "date": clean.iso_date(card.get("auctionDate")),
            "status": clean.text(card.get("saleStatusDescription")),
            "opening_bid": clean.money(card.get("minimumBid")),
            "type": clean.text(card.get("saleTypeDescription")) or _SALE_TYPES.get(kind or "", kind),
        },
        "fields": shown_fields(card),
    }


PLATFORM = SriPlatform()
