"""OpenAddresses: a JSON file for each place, whose `layers.parcels` name the services and files with its parcels.

Its coverage says which place it is. A collection of many entries in one document (`parcels`) is read the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lienworker.intake.parcel_sources.layers import id_column, layer_address, web_address
from lienworker.intake.rows import BadRowError, Reject, tidy
from lienworker.places import STATE_FIPS, is_city_of_its_own, is_fips
from lienworker.store.parcel_sources import ParcelSource

ORIGIN = "openaddresses"
_LONGEST = 200


class _Place(NamedTuple):
    state: str
    county: str | None
    city: str | None
    fips: str | None


def read_document(document: Any, reference: str) -> Iterator[ParcelSource | Reject]:
    """Yield the parcel layers of a source; nothing for a source without them or of another country."""
    if not isinstance(document, dict):
        return
    if isinstance(entries := document.get("parcels"), list):
        for entry in entries:
            if isinstance(entry, dict):
                yield from read_document(_as_source(entry), _text(entry.get("path")) or reference)
        return
    layers = _dict(document.get("layers")).get("parcels")
    coverage = _dict(document.get("coverage"))
    if not isinstance(layers, list) or coverage.get("country") != "us":
        return
    for layer in layers:
        for place in _places(coverage):
            try:
                yield _source(place, _dict(layer), reference)
            except BadRowError as problem:
                yield problem.at(0, reference)


def _as_source(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a collection in the form of a source."""
    coverage = {
        "country": "us",
        "state": entry.get("state"),
        "county": entry.get("county"),
        "city": entry.get("city"),
        "US Census": {"geoid": entry.get("geoid")},
    }
    layer = {**entry, "data": entry.get("url"), "license": entry.get("data_license")}
    return {"coverage": coverage, "layers": {"parcels": [layer]}}


def _places(coverage: Mapping[str, Any]) -> Iterator[_Place]:
    """Yield the counties that a source covers, mostly one. A code of another state is a mistake, and left out."""
    state = _text(coverage.get("state")).upper()
    code = _text(_dict(coverage.get("US Census")).get("geoid"))
    if state not in STATE_FIPS:
        return
    fips = code if is_fips(code) and code.startswith(STATE_FIPS[state]) else None
    city = _text(coverage.get("city")) or _text(coverage.get("town")) or None
    counties = coverage.get("county")
    for county in counties if isinstance(counties, list) else [counties]:
        name = _text(county) or None
        if name is None and city and (fips or code == STATE_FIPS[state]):
            own = bool(fips) and is_city_of_its_own(state, str(fips))
            yield _Place(state, f"{city} City" if own and not city.lower().endswith("city") else city, None, fips)
        else:
            yield _Place(state, name, city, fips)


def _source(place: _Place, layer: Mapping[str, Any], reference: str) -> ParcelSource:
    conform = _dict(layer.get("conform"))
    column = id_column(conform.get("pid"))
    is_layer = layer.get("protocol") == "ESRI"
    if is_layer:
        url = layer_address(layer.get("data"))
        settings = {"base_url": url} | ({"field": column} if column else {})
    else:
        url = _file_address(layer.get("data"))
        told = {"format": conform.get("format"), "compression": layer.get("compression"), "id_column": column}
        settings = {name: text for name, value in told.items() if (text := _text(value))}
    return ParcelSource(
        state=place.state,
        county=place.county,
        kind="layer" if is_layer else "file",
        url=url,
        origin=ORIGIN,
        reference=tidy(reference)[:_LONGEST],
        fips=place.fips,
        city=place.city,
        platform="arcgis" if is_layer else None,
        settings=settings,
        website=_text(layer.get("website")) or None,
        license=_license(layer),
        doubt=_doubt(layer),
    )


def _file_address(url: Any) -> str:
    text = _text(url, 2_000)
    return text if text.startswith("ftp://") and " " not in text else web_address(url)


def _license(layer: Mapping[str, Any]) -> str | None:
    said = layer.get("license")
    terms = _dict(said)
    parts = (said if isinstance(said, str) else "", terms.get("text"), terms.get("url"), layer.get("attribution"))
    return "; ".join(filter(None, map(_text, parts))) or None


def _doubt(layer: Mapping[str, Any]) -> str:
    if layer.get("skip"):
        return "OpenAddresses passes it over"
    if _dict(_dict(layer.get("request")).get("headers")):
        return "OpenAddresses sends it headers of another site's page, which we do not"
    return ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any, longest: int = _LONGEST) -> str:
    """Return a text on one line and of a reasonable length; empty where the value is none."""
    return " ".join(tidy(value).split())[:longest] if isinstance(value, str) else ""
