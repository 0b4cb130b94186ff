"""ArcGIS REST query answers: one feature is a parcel, several are a list; names differ by county."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Platform, Record, Target
from lienworker.platforms.reading import Pair, record_of
from lienworker.platforms.reading.labels import normalise
from lienworker.platforms.rules import fill
from lienworker.platforms.vendors.arcgis.names import MAILING, NAMES, SALE

_URL = re.compile(r"/(?:FeatureServer|MapServer)/\d+/query", re.I)
_TEMPLATE = "{base_url}/query?where={field}%3D%27{parcel_id}%27&outFields=*&returnGeometry=false&f=json"
_NO_ENTRY = frozenset({401, 403, 498, 499})


class ArcGisPlatform(Platform):
    """Reads the attributes of features like labels; dates are milliseconds since 1970."""

    name = "arcgis"
    version = "2"
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
        found = _features(data)
        if found is None:
            _refuse(data)
            raise PageError("not_a_parcel", "the answer has no features (the description of a layer, perhaps)")
        features = [attributes for feature in found if (attributes := _attributes(feature))]
        if not features:
            raise PageError("parcel_not_found", "the layer has no such parcel")
        dates = {field.get("name") for field in data.get("fields") or [] if field.get("type") == "esriFieldTypeDate"}
        records = [_record(feature, dates) for feature in features]
        record: Record = records[0] if len(records) == 1 else {"parcels": records}
        if data.get("exceededTransferLimit"):
            record.setdefault("fields", {})["exceededTransferLimit"] = "true"
        return record


def _features(data: Any) -> list[Any] | None:
    """What a query found, or (`results`) what stands at a place of the map."""
    found = (data.get("features", data.get("results"))) if isinstance(data, dict) else None
    return found if isinstance(found, list) else None


def _refuse(data: Any) -> None:
    """An answer that wants a token has its own reason; Esri sends it with status 200."""
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict) and error.get("code") in _NO_ENTRY:
        raise PageError("login_required", f"the service answered: {error.get('message') or error['code']}"[:200])


def _attributes(feature: Any) -> dict[str, Any]:
    """Esri calls them attributes, GeoJSON properties."""
    found = (feature.get("attributes") or feature.get("properties")) if isinstance(feature, dict) else None
    return found if isinstance(found, dict) else {}


def _record(attributes: dict[str, Any], dates: set[Any]) -> Record:
    shown = {name: _shown(name, value, dates) for name, value in attributes.items()}
    pairs = [Pair(_label(name), (value,)) for name, value in shown.items() if value]
    record = record_of(pairs, names=NAMES)
    words: dict[str, str] = {}
    for pair in pairs:  # the first of two: a shapefile cuts `OWN_STATE_DOMICILE` down to `OWN_STATE_`
        words.setdefault(normalise(pair.label), pair.value)
    mailing = [next((words[word] for word in line.split("|") if word in words), None) for line in MAILING]
    record["owner_address"] = clean.joined(mailing, " ") if any(mailing[:3]) else None
    sale = {SALE[word]: value for word, value in words.items() if word in SALE}
    if date := clean.iso_date(sale.get("date")):
        book = clean.joined((sale.get("book"), sale.get("page")), "/")
        record["sales"] = [{"date": date, "price": clean.money(sale.get("price")), "book_page": book}]
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
