"""Broward County, Florida, Property Appraiser (bcpa.net): the service behind its record page."""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.reading import people
from lienworker.platforms.services import Facts, JsonPlatform, inside, objects, positive, shown_fields

_SQUARE_FEET = re.compile(r"[\d,.]+ *sq\.? *ft\.?", re.I)
_LINES_OF_LAND = 4
_SALES = 5


class BrowardPlatform(JsonPlatform):
    """One parcel; the `recentSales` beside it are its neighbours'. No value says which roll it is of."""

    name = "broward"
    version = "1"
    delay = 3.0
    evidence = "a real page"
    url_pattern = re.compile(r"//(?:[\w-]+\.)?bcpa\.net/", re.I)
    marks = ("parcelInfok__BackingField",)

    def read(self, data: Any) -> Record:
        data = inside(data, "d") or data  # ASP.NET puts what its services answer into a `d`
        about = next(iter(objects(data, "parcelInfok__BackingField")), None)
        if about is None:
            raise PageError("parcel_not_found", "the service has no such folio")
        pictures = inside(data).get("picturesListk__BackingField")
        return (
            _parcel(about)
            | _values(about)
            | {
                "sales": [_sale(about, n) for n in range(1, _SALES + 1) if about.get(f"saleDate{n}")],
                "images": [text for item in pictures or () if (text := clean.text(item))],
                "fields": shown_fields(about),
            }
        )


def _parcel(about: Facts) -> Record:
    block = [about.get(name) for name in ("ownerName1", "ownerName2", "mailingAddress1", "mailingAddress2")]
    names, address = people.owner_and_address([line for item in block if (line := clean.text(item))])
    return {
        "parcel_id": clean.identifier(about.get("folioNumber")),
        "owner_name": names[0] if names else None,
        "owner_names": names,
        "owner_address": clean.joined(address, " "),
        "property_address": clean.joined((about.get("situsAddress1"), about.get("situsAddress2")), " "),
        "city": clean.text(about.get("situsCity")),
        "zip": clean.text(about.get("situsZipCode")),
        "legal_description": clean.text(about.get("legal")),
        "property_use": clean.text(about.get("useCode")),
        "homestead": clean.yes_no(str(about.get("homesteadFlag") or "").strip(" ,")),
    }


def _values(about: Facts) -> Record:
    return {
        "land_area_sqft": _land_area(about),
        "building_area_sqft": positive(about.get("bldgUnderAirFootage")) or positive(about.get("bldgSqFT")),
        "year_built": clean.year(about.get("actualAge")),
        "bedrooms": clean.integer(about.get("beds")),
        "bathrooms": clean.number(about.get("baths")),
        "land_value": clean.money(about.get("landValue")),
        "building_value": clean.money(about.get("bldgValue")),
        "market_value": clean.money(about.get("justValue")),
        "assessed_value": clean.money(about.get("sohValue")),
        "taxable_value": clean.money(about.get("taxableAmountCounty")),
    }


def _land_area(about: Facts) -> float | None:
    """Of a parcel whose land is one line; one of several is a part of it."""
    lines = [text for n in range(1, _LINES_OF_LAND + 1) if (text := clean.text(about.get(f"landCalcFact{n}")))]
    return clean.square_feet(lines[0]) if len(lines) == 1 and _SQUARE_FEET.fullmatch(lines[0]) else None


def _sale(about: Facts, n: int) -> Record:
    return {
        "date": clean.iso_date(about.get(f"saleDate{n}")),
        "price": clean.money(about.get(f"stampAmount{n}")),
        "deed_type": clean.text(about.get(f"deedType{n}")),
        "book_page": clean.text(about.get(f"bookAndPageOrCin{n}")),
    }


PLATFORM = BrowardPlatform()
