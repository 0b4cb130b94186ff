"""Our own form: what an operator knows of a county, as TOML.

[[source]]
state = "FL"
county = "Dixie"
kind = "page"                      # layer, page, auction or file
platform = "floridapa"
url = "https://dixie.example"      # of the layer, the site or the file
from = "the appraiser's office, 2026-10-01"

[source.settings]                  # placeholders of the platform's addresses and flow
base_url = "https://dixie.example"

A layer has its column of parcel ids in `field`; its platform is arcgis, and nothing else is needed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from lienworker.intake.fields import check_county, check_platform
from lienworker.intake.parcel_sources.layers import LAYER, id_column, layer_address, web_address
from lienworker.intake.rows import BadRowError, Reject
from lienworker.places import STATE_FIPS, is_fips
from lienworker.store.parcel_sources import KINDS, Kind, ParcelSource

_TEXTS = ("state", "county", "kind", "platform", "url", "field", "fips", "city", "from", "website", "license")
_KNOWN = frozenset({*_TEXTS, "settings"})


def read_own(content: bytes, name: str, reference: str) -> Iterator[ParcelSource | Reject]:
    """Yield the sources of a file; `name` is the origin that they are stored under."""
    try:
        told = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        yield Reject(0, "bad_source", f"it is not TOML ({problem})", reference)
        return
    entries = told.get("source")
    if not isinstance(entries, list):
        yield Reject(0, "bad_source", "it has no [[source]]", reference)
        return
    for place, entry in enumerate(entries, 1):
        where = f"{reference}, source {place}"
        try:
            if not isinstance(entry, dict):
                raise BadRowError("bad_source", "write it as [[source]]")
            yield _source(entry, name, where)
        except BadRowError as problem:
            yield problem.at(place, where)


def _source(entry: Mapping[str, Any], name: str, where: str) -> ParcelSource:
    _check(entry)
    url = entry.get("url", "")
    kind = entry.get("kind") or ("layer" if LAYER.search(url.partition("?")[0].rstrip("/")) else "page")
    settings = dict(entry.get("settings", {}))
    platform = check_platform(entry["platform"]) if entry.get("platform") else None
    if kind == "layer":
        url, platform = layer_address(url), platform or "arcgis"
        settings = {"base_url": url, **_column(entry), **settings}
    elif url:
        url = web_address(url)
    if kind == "page" and platform is None:
        raise BadRowError("bad_source", "a page needs its platform")
    return ParcelSource(
        state=entry["state"].upper(),
        county=check_county(entry["county"]) if entry.get("county") else None,
        kind=cast(Kind, kind),
        url=url,
        origin=name,
        reference=f"{where}: {entry['from']}" if entry.get("from") else where,
        fips=entry.get("fips"),
        city=entry.get("city"),
        platform=platform,
        settings=settings,
        website=entry.get("website"),
        license=entry.get("license"),
    )


def _check(entry: Mapping[str, Any]) -> None:
    if unknown := sorted(entry.keys() - _KNOWN):
        raise BadRowError(
            "bad_source", f"there is no {unknown[0]!r} in a source; there are {', '.join(sorted(_KNOWN))}"
        )
    if wrong := [key for key in _TEXTS if not isinstance(entry.get(key, ""), str)]:
        raise BadRowError("bad_source", f"write {wrong[0]} as text, in quotes")
    settings = entry.get("settings", {})
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise BadRowError("bad_source", "write each of the settings as text, in quotes")
    if entry.get("state", "").upper() not in STATE_FIPS:
        raise BadRowError("bad_source", "say its state by its postal code, such as FL")
    if entry.get("kind", KINDS[0]) not in KINDS:
        raise BadRowError("bad_source", f"its kind is one of {', '.join(KINDS)}")
    if entry.get("fips") and not is_fips(entry["fips"]):
        raise BadRowError("bad_source", "fips are the five digits of a county")


def _column(entry: Mapping[str, Any]) -> dict[str, str]:
    if not entry.get("field"):
        return {}
    column = id_column(entry["field"])
    if column is None:
        raise BadRowError("bad_source", f"{entry['field']!r} is no column that parcels go by")
    return {"field": column}
