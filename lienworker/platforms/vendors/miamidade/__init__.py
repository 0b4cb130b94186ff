"""Miami-Dade County, Florida, Property Appraiser: the service behind its property search."""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.reading.histories import take_newest
from lienworker.platforms.services import Facts, JsonPlatform, inside, objects, owners, positive, shown_fields


class MiamiDadePlatform(JsonPlatform):
    """A folio is a parcel; a search by address or owner is a list."""

    name = "miamidade"
    version = "1"
    delay = 3.0
    evidence = "a real page"
    url_pattern = re.compile(r"miamidade(?:pa)?\.gov/.*PaServicesProxy", re.I)
    url_template = (
        "https://www.miamidade.gov/Apps/PA/PApublicServiceProxy/PaServicesProxy.ashx"
        "?Operation=GetPropertySearchByFolio&clientAppName=PropertySearch&folioNumber={parcel_digits}"
    )

    def recognises(self, page: Any) -> bool:
        marks = ('"MinimumPropertyInfos"', '"FolioNumber"')
        return page.is_json and '"Completed"' in page.text and any(mark in page.text for mark in marks)

    def read(self, data: Any) -> Record:
        if found := objects(data, "MinimumPropertyInfos"):
            return {"parcels": [_found(item) for item in found]}
        about = inside(data, "PropertyInfo")
        if not about.get("FolioNumber"):
            raise PageError("parcel_not_found", clean.text(inside(data).get("Message")) or "there is no such folio")
        record = _parcel(data, about) | _building(about)
        record["values"] = _values(data)
        take_newest(record)
        record["sales"] = [_sale(sale) for sale in objects(data, "SalesInfos")]
        record["fields"] = shown_fields(about, inside(data, "LegalDescription"), inside(data, "MailingAddress"))
        return record


def _found(item: Facts) -> Record:
    return {
        "parcel_id": clean.identifier(item.get("Strap")),
        **owners(item.get(f"Owner{n}") for n in (1, 2, 3)),
        "property_address": clean.joined((item.get("SiteAddress"), item.get("SiteUnit")), " "),
        "fields": shown_fields(item),
    }


def _parcel(data: Any, about: Facts) -> Record:
    mail, site = inside(data, "MailingAddress"), next(iter(objects(data, "SiteAddress")), {})
    lines = [mail.get(name) for name in ("Address1", "Address2", "Address3", "City", "State", "ZipCode")]
    return {
        "parcel_id": clean.identifier(about["FolioNumber"]),
        **owners(owner.get("Name") for owner in objects(data, "OwnerInfos")),
        "owner_address": clean.joined(lines, " "),
        "property_address": clean.text(site.get("Address")),
        "city": clean.text(site.get("City")),
        "zip": clean.text(site.get("Zip")),
        "legal_description": clean.joined(
            str(inside(data, "LegalDescription").get("Description") or "").split("|"), " "
        ),
        "property_use": clean.joined((about.get("DORCode"), about.get("DORDescription")), " "),
        "homestead": _has_homestead(data),
    }


def _building(about: Facts) -> Record:
    return {
        "land_area_sqft": positive(about.get("LotSize")),
        "building_area_sqft": positive(about.get("BuildingHeatedArea")) or positive(about.get("BuildingActualArea")),
        "year_built": clean.year(about.get("YearBuilt")),
        "bedrooms": clean.integer(positive(about.get("BedroomCount"))),
        "bathrooms": positive(about.get("BathroomCount")),
    }


def _has_homestead(data: Any) -> bool | None:
    """By the exemptions of the newest roll; a parcel without one is not said to have none."""
    exemptions = {(item.get("TaxYear"), item.get("Description")) for item in objects(data, "Benefit", "BenefitInfos")}
    return (inside(data).get("RollYear1"), "Homestead") in exemptions or None


def _values(data: Any) -> list[Record]:
    """A roll that is still being made has zeros and a message instead of values."""
    taxable = {item.get("Year"): item for item in objects(data, "Taxable", "TaxableInfos")}
    return [
        {
            "year": clean.year(roll.get("Year")),
            "land": clean.money(roll.get("LandValue")),
            "building": clean.money(roll.get("BuildingOnlyValue")),
            "market": clean.money(roll.get("TotalValue")),
            "assessed": clean.money(roll.get("AssessedValue")),
            "taxable": clean.money(taxable.get(roll.get("Year"), {}).get("CountyTaxableValue")),
        }
        for roll in objects(data, "Assessment", "AssessmentInfos")
        if not roll.get("Message")
    ]


def _sale(sale: Facts) -> Record:
    return {
        "date": clean.iso_date(sale.get("DateOfSale")),
        "price": clean.money(sale.get("SalePrice")),
        "deed_type": clean.text(sale.get("SaleInstrument")),
        "book_page": clean.joined((sale.get("OfficialRecordBook"), sale.get("OfficialRecordPage")), "/"),
        "grantor": clean.joined((sale.get("GrantorName1"), sale.get("GrantorName2"))),
        "grantee": clean.joined((sale.get("GranteeName1"), sale.get("GranteeName2"))),
    }


PLATFORM = MiamiDadePlatform()
