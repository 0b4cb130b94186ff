"""ArcGIS REST query answers: one feature is a parcel, several are a list; names differ by county."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms import clean
from lienworker.platforms.base import Page, Platform, Record, Target
from lienworker.platforms.reading import Pair, record_of
from lienworker.platforms.reading.labels import normalise
from lienworker.platforms.rules import fill

_URL = re.compile(r"/(?:FeatureServer|MapServer)/\d+/query", re.I)
_TEMPLATE = "{base_url}/query?where={field}%3D%27{parcel_id}%27&outFields=*&returnGeometry=false&f=json"
# Names of columns that no label on a page would use; under an empty name those that mislead.
_WORDS = {
    "owner_name": (
        "file as name|owner nme1|ownername1|own name|owner1|own1|own name1|owner fullname"
        "|owner full name|deed holder|taxpayer nme"
    ),
    "co_owner": "co owner|own2|owner nme2",
    "property_address": (
        "situs display|site addr|phy addr1|situs addr|primary address|siteaddress|loc addr|prop addr"
        "|full address|address"
    ),
    "": "situs street|av sd|city|tax dist|class|area|block|parcel|section|location|status",
    "market_value": "emv total|market|appraised val|jv|tot val|total val",
    "land_value": "emv land|lnd val|land val",
    "building_value": "emv bldg|emv building|impr val",
    "assessed_value": "assessed val|av nsd",
    "taxable_value": "tv nsd",
    "acres": "poly ac|legal acreage|acres poly|acres deed|gisacres",
    "property_use": "dor uc|use1 desc|useclass1",
    "tax_year": "prop val yr",
    "tax_amount": "total tax",
    "city": "situs city",
    "zip": "situs zip|zip",
    "map": "map",
}
_NAMES = {word: name for name, words in _WORDS.items() for word in words.split("|")}
_MAILING = (
    "owner addr|own addr|own addr1|owner add l1|addr line1|mail addr1|mailing address|own add l1",
    "own addr2|owner add l2|addr line2|mail addr2|own add l2",
    "addr line3|owner add l3|own add l3",
    "own city|addr city|mail city|owner city|mailing city|own citystate",
    "own state|addr state|mail state|owner state|mailing state",
    "own zip|addr zip|mail zip|owner zip|mailing zip|own zipcd",
)
_SALE = {"sl dt": "date", "sale date": "date", "sl price": "price", "sale price": "price", "sale value": "price"}


class ArcGisPlatform(Platform):
    """Reads the attributes of features like labels; dates are milliseconds since 1970."""

    name = "arcgis"
    version = "1"
    delay = 1.0

    def matches_url(self, url: str) -> bool:
        return bool(_URL.search(url))

    def recognises(self, page: Page) -> bool:
        return page.is_json and ('"geometryType"' in page.text or '"attributes"' in page.text)

    def build_url(self, target: Target) -> str | None:
        # An apostrophe ends the text of a query; doubled, it is part of it.
        quoted = replace(target, parcel_id=target.parcel_id.replace("'", "''")) if target.parcel_id else target
        return fill(_TEMPLATE, quoted)

    def parse(self, page: Page, target: Target) -> Record:
        data = page.json()
        if not isinstance(data, dict) or not isinstance(data.get("features"), list):
            raise PageError("not_a_parcel", "the answer has no features (the description of a layer, perhaps)")
        features = [
            f["attributes"] for f in data["features"] if isinstance(f, dict) and isinstance(f.get("attributes"), dict)
        ]
        if not features:
            raise PageError("parcel_not_found", "the layer has no such parcel")
        dates = {field.get("name") for field in data.get("fields") or [] if field.get("type") == "esriFieldTypeDate"}
        records = [_record(feature, dates) for feature in features]
        found: Record = records[0] if len(records) == 1 else {"parcels": records}
        if data.get("exceededTransferLimit"):
            found.setdefault("fields", {})["exceededTransferLimit"] = "true"
        return found


def _attributes(feature: Any) -> dict[str, Any]:
    """Esri calls them attributes, GeoJSON properties."""
    found = (feature.get("attributes") or feature.get("properties")) if isinstance(feature, dict) else None
    return found if isinstance(found, dict) else {}


def _record(attributes: dict[str, Any], dates: set[Any]) -> Record:
    shown = {name: _shown(name, value, dates) for name, value in attributes.items()}
    pairs = [Pair(_label(name), (value,)) for name, value in shown.items() if value]
    record = record_of(pairs, names=_NAMES)
    words = {normalise(_label(name)): value for name, value in shown.items() if value}
    mailing = [next((words[word] for word in line.split("|") if word in words), None) for line in _MAILING]
    record["owner_address"] = clean.joined(mailing, " ") if any(mailing[:3]) else None
    sale = {_SALE[word]: value for word, value in words.items() if word in _SALE}
    if sale.get("date"):
        record["sales"] = [{"date": clean.iso_date(sale["date"]), "price": clean.money(sale.get("price"))}]
    record["fields"] = {name: value for name, value in shown.items() if value}
    found: Record = clean.compact(record)
    return found


def _label(name: str) -> str:
    """`GIS.CPO.PARCEL_POLY.AREA` is an AREA."""
    return name.rpartition(".")[2]


def _shown(name: str, value: Any, dates: set[Any]) -> str | None:
    if name in dates:
        return clean.epoch_date(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean.text(value)


PLATFORM = ArcGisPlatform()
