"""Hillsborough County, Florida, Property Appraiser (hcpafl.org): the service behind its property search."""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.services import Facts, JsonPlatform, inside, objects, owners, positive, shown_fields


class HillsboroughPlatform(JsonPlatform):
    """Values come once for each kind of tax district; the county's count."""

    name = "hillsborough"
    version = "1"
    delay = 3.0
    evidence = "a real page"
    url_pattern = re.compile(r"//[\w-]+\.hcpafl\.org/", re.I)
    url_template = "https://gis.hcpafl.org/CommonServices/property/search/ParcelData?pin={parcel_id}"
    marks = ('"valueSummary"', '"displayFolio"')

    def read(self, data: Any) -> Record:
        facts = inside(data)
        if not facts.get("pin"):
            raise PageError("parcel_not_found", "the service has no such PIN")
        card = inside(facts, "propertyCard")
        record = _parcel(facts, card) | _building(objects(facts, "buildings")) | _values(facts, card)
        record["sales"] = [_sale(sale) for sale in objects(facts, "salesHistory")]
        record["fields"] = shown_fields({name: value for name, value in facts.items() if name != "streetLevelURL"})
        return record


def _parcel(facts: Facts, card: Facts) -> Record:
    mail, use = inside(facts, "mailingAddress"), inside(facts, "landUse")
    legal = facts.get("fullLegal")
    lines = [mail.get(name) for name in ("addr1", "addr2", "city", "state", "zip", "country")]
    return {
        "parcel_id": clean.identifier(facts["pin"]),
        "alternate_ids": {
            "folio": clean.identifier(card.get("displayFolio")),
            "strap": clean.identifier(card.get("displayStrap")),
        },
        **owners(str(facts.get("owner") or "").split(";")),
        "owner_address": clean.joined(lines, " "),
        "property_address": clean.text(facts.get("siteAddress")),
        "legal_description": clean.joined(legal, " ") if isinstance(legal, list) else clean.text(legal),
        "property_use": clean.joined((use.get("code"), use.get("description")), " "),
        "acres": clean.acres(facts.get("acreage")),
        "homestead": bool(positive(card.get("homestead"))) or None,
    }


def _building(buildings: list[Facts]) -> Record:
    """Of a parcel with one building; of several none is the parcel's."""
    if len(buildings) != 1:
        return {}
    return {
        "building_area_sqft": positive(buildings[0].get("heatedArea")),
        "year_built": clean.year(buildings[0].get("yearBuilt")),
        "bedrooms": clean.integer(buildings[0].get("bedrooms")),
        "bathrooms": clean.number(buildings[0].get("bathrooms")),
    }


def _values(facts: Facts, card: Facts) -> Record:
    of_county = (item for item in objects(facts, "valueSummary") if clean.text(item.get("taxDist")) == "County")
    values, current = next(of_county, {}), inside(card, "current")
    return {
        "land_value": clean.money(current.get("land")),
        "building_value": clean.money(current.get("buildings")),
        "market_value": clean.money(values.get("marketVal")),
        "assessed_value": clean.money(values.get("assessedVal")),
        "taxable_value": clean.money(values.get("taxableVal")),
    }


def _sale(sale: Facts) -> Record:
    book = clean.joined((sale.get("book"), sale.get("page")), "/")
    return {
        "date": clean.iso_date(sale.get("saleDate")),
        "price": clean.money(sale.get("salePrice")),
        "deed_type": clean.text(sale.get("deedType")),
        "book_page": book or clean.text(sale.get("docnum")),
    }


PLATFORM = HillsboroughPlatform()
