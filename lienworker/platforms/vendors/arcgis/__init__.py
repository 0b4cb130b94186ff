"""ArcGIS REST query answers: one feature is a parcel, several are a list; names differ by county."""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Platform, Record, Target
from lienworker.platforms.reading import Pair, record_of
from lienworker.platforms.reading.labels import FIELD_OF, ID_RANK, normalise
from lienworker.platforms.vendors.arcgis.layer import query_url
from lienworker.platforms.vendors.arcgis.names import BARE, MAILING, MAILING_WORDS, NAMES, SALE, SITUS, spelled

_URL = re.compile(r"/(?:FeatureServer|MapServer)/\d+/query", re.I)
_OF_OWNER = frozenset({"owner_name", "co_owner", "owner_address"})
# An answer may leave out what its columns are; milliseconds have many digits.
_IS_DATE = re.compile(r"date|_dt$", re.I)
_SOME_DAYS = 10**10
_NO_ENTRY = frozenset({401, 403, 498, 499})


class ArcGisPlatform(Platform):
    """Reads the attributes of features like labels; dates are milliseconds since 1970."""

    name = "arcgis"
    version = "4"
    delay = 1.0
    evidence = "real pages"

    def matches_url(self, url: str) -> bool:
        return bool(_URL.search(url))

    def recognises(self, page: Page) -> bool:
        return page.is_json and ('"geometryType"' in page.text or '"attributes"' in page.text)

    def build_url(self, target: Target) -> str | None:
        return query_url(target)

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
        records = [_record(feature, dates) | _asked_id(feature, target) for feature in features]
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


def _asked_id(attributes: dict[str, Any], target: Target) -> Record:
    """The parcel id as the column has it that the parcel was asked for by, whatever that column is called."""
    column = target.extra.get("field")
    parcel_id = _shown(column, attributes.get(column), set()) if isinstance(column, str) else None
    return {"parcel_id": parcel_id} if parcel_id else {}


def _attributes(feature: Any) -> dict[str, Any]:
    """Esri calls them attributes, GeoJSON properties."""
    found = (feature.get("attributes") or feature.get("properties")) if isinstance(feature, dict) else None
    return found if isinstance(found, dict) else {}


def _record(attributes: dict[str, Any], dates: set[Any]) -> Record:
    shown = {name: _shown(name, value, dates) for name, value in attributes.items()}
    pairs = [Pair(spelled(name), (value,)) for name, value in shown.items() if value]
    record = record_of(pairs, names=NAMES)
    words: dict[str, str] = {}
    for pair in pairs:  # the first of two: a shapefile cuts `OWN_STATE_DOMICILE` down to `OWN_STATE_`
        words.setdefault(normalise(pair.label), pair.value)
    record["owner_address"] = _mailing(words)
    if not record.get("property_address"):
        record["property_address"] = _situs(words)
    if sale := _sale(words):
        record["sales"] = [sale]
    record["fields"] = {name: value for name, value in shown.items() if value}
    found: Record = clean.compact(record)
    return found


def _mailing(words: dict[str, str]) -> str | None:
    """The owner's address. Bare names of places are part of it where they follow the owner, not the property."""
    lines: list[str | None] = [None] * len(MAILING)
    bare: dict[int, str] = {}
    of_owner = False
    for word, value in words.items():
        name = NAMES.get(word, FIELD_OF.get(word, ""))
        if word in MAILING_WORDS and word not in BARE:
            of_owner, place = True, MAILING_WORDS[word]
            lines[place] = lines[place] or value
        elif name in _OF_OWNER:
            of_owner = True
        elif name == "property_address" or word in ID_RANK:
            of_owner = False
        elif of_owner and word in BARE:
            bare.setdefault(BARE[word], value)
    filled = [line or bare.get(place) for place, line in enumerate(lines)]
    return clean.joined(filled, " ") if any(filled[:3]) else None


def _situs(words: dict[str, str]) -> str | None:
    """An address that comes in parts: at least its number and its street."""
    parts = [next((words[word] for word in part if word in words), None) for part in SITUS]
    is_whole = parts[0] and parts[0].strip("0 ") and parts[2]
    return clean.joined(parts, " ") if is_whole else None


def _sale(words: dict[str, str]) -> Record | None:
    sale = {SALE[word]: value for word, value in words.items() if word in SALE}
    if (date := clean.iso_date(sale.get("date"))) is None:
        return None
    book = clean.joined((sale.get("book"), sale.get("page")), "/")
    return {"date": date, "price": clean.money(sale.get("price")), "book_page": book}


def _shown(name: str, value: Any, dates: set[Any]) -> str | None:
    if name in dates or (isinstance(value, int) and abs(value) > _SOME_DAYS and _IS_DATE.search(name)):
        return clean.epoch_date(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean.text(value)


PLATFORM = ArcGisPlatform()
