"""Files that say where parcels are: OpenAddresses as it is, and our own TOML."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import InputError
from lienworker.intake.parcel_sources import read_sources
from lienworker.intake.rows import Reject
from lienworker.store.parcel_sources import ParcelSource
from tests.harness.layers import DATA, real_entries, write_clone

LAYER = "https://gis.example/arcgis/rest/services/Parcels/FeatureServer/0"


def source(**changes: Any) -> dict[str, Any]:
    layer = {"name": "county", "data": LAYER, "protocol": "ESRI", "conform": {"format": "geojson", "pid": "PIN"}}
    place = {"country": "us", "state": "fl", "county": "Dixie", "US Census": {"geoid": "12029"}}
    return {
        "coverage": place | changes.pop("coverage", {}),
        "schema": 2,
        "layers": {"parcels": [layer | changes]},
    }


def read(path: Path) -> tuple[list[ParcelSource], list[Reject]]:
    told = list(read_sources(path))
    good = [item for item in told if isinstance(item, ParcelSource)]
    return good, [item for item in told if isinstance(item, Reject)]


def read_one(tmp_path: Path, document: Any) -> tuple[list[ParcelSource], list[Reject]]:
    path = tmp_path / "dixie.json"
    path.write_text(json.dumps(document))
    return read(path)


def test_a_layer_has_its_place_its_address_and_its_column(tmp_path: Path) -> None:
    [found], rejects = read_one(tmp_path, source(website="https://dixie.example"))

    assert not rejects
    assert (found.state, found.county, found.fips, found.kind) == ("FL", "Dixie", "12029", "layer")
    assert found.settings == {"base_url": LAYER, "field": "PIN"}
    assert (found.platform, found.website) == ("arcgis", "https://dixie.example")
    assert (found.origin, found.reference) == ("openaddresses", "dixie.json")


@pytest.mark.parametrize("written", [f"{LAYER}/", f"{LAYER}?f=json", LAYER.replace("FeatureServer", "Mapserver")])
def test_an_address_of_a_layer_is_put_into_its_form(tmp_path: Path, written: str) -> None:
    [found], _ = read_one(tmp_path, source(data=written))

    assert found.url.endswith("/0")


@pytest.mark.parametrize(
    "pid", ["OBJECTID", "gis.parcels.FID", {"function": "join"}, "PIN; DROP", "PIN' OR '1'='1", None]
)
def test_what_is_no_column_of_parcel_ids_is_left_to_the_layer_to_tell(tmp_path: Path, pid: Any) -> None:
    [found], _ = read_one(tmp_path, source(conform={"format": "geojson", "pid": pid}))

    assert "field" not in found.settings


@pytest.mark.parametrize(
    "data", ["https://gis.example/map", "javascript:alert(1)", None, 7, "https://u:p@gis.example/x/FeatureServer/0"]
)
def test_what_is_no_layer_is_rejected_with_its_file(tmp_path: Path, data: Any) -> None:
    found, [reject] = read_one(tmp_path, source(data=data))

    assert not found
    assert (reject.reason, reject.raw) == ("bad_source", "dixie.json") or reject.reason == "bad_url"


def test_a_file_to_download_is_no_layer(tmp_path: Path) -> None:
    file = "https://roll.example/dixie.zip"
    [found], _ = read_one(
        tmp_path, source(data=file, protocol="http", compression="zip", conform={"format": "shapefile"})
    )

    assert (found.kind, found.url, found.platform) == ("file", file, None)
    assert found.settings == {"format": "shapefile", "compression": "zip"}


def test_other_countries_and_addresses_alone_are_passed_over(tmp_path: Path) -> None:
    assert read_one(tmp_path, source(coverage={"country": "ca"})) == ([], [])
    assert read_one(tmp_path, {"coverage": {"country": "us"}, "layers": {"addresses": [{}]}}) == ([], [])
    assert read_one(tmp_path, [1, 2]) == ([], [])


def test_a_code_of_another_state_is_not_believed(tmp_path: Path) -> None:
    [found], _ = read_one(tmp_path, source(coverage={"US Census": {"geoid": "46125"}}))

    assert found.fips is None


@pytest.mark.parametrize(
    ("place", "county", "city"),
    [
        (
            {"county": None, "city": "Chesapeake", "state": "va", "US Census": {"geoid": "51550"}},
            "Chesapeake City",
            None,
        ),
        ({"county": None, "city": "Arlington", "state": "va", "US Census": {"geoid": "51013"}}, "Arlington", None),
        ({"county": "Dixie", "city": "Cross City"}, "Dixie", "Cross City"),
        ({"county": None, "city": "Cross City", "US Census": {"geoid": "1215700"}}, None, "Cross City"),
        ({"county": None, "US Census": {"geoid": "12"}}, None, None),
    ],
)
def test_a_city_is_a_county_only_where_it_is_one(
    tmp_path: Path, place: Any, county: str | None, city: str | None
) -> None:
    [found], _ = read_one(tmp_path, source(coverage=place))

    assert (found.county, found.city) == (county, city)


def test_a_zip_is_read_in_place_and_a_broken_member_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "clone.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("oa-1/sources/us/fl/dixie.json", json.dumps(source()))
        archive.writestr("oa-1/sources/us/fl/../../../../etc/passwd.json", json.dumps(source()))
        archive.writestr("oa-1/sources/us/fl/broken.json", "{")
        archive.writestr("oa-1/sources/us/fl/deep.json", "[" * 100_000)

    found, rejects = read(path)

    assert found[0].reference == "oa-1/sources/us/fl/dixie.json"
    assert sorted(reject.raw.rpartition("/")[2] for reject in rejects) == ["broken.json", "deep.json"]
    assert not list(tmp_path.glob("**/passwd*"))


@pytest.mark.parametrize("name", ["nothing.zip", "table.csv", "empty"])
def test_what_is_no_collection_of_sources_is_said_in_one_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.mkdir() if name == "empty" else path.write_bytes(b"PK\x03\x04nothing")

    with pytest.raises(InputError, match=name):
        list(read_sources(path))


OWN = f"""
[[source]]
state = "FL"
county = "Dixie"
url = "{LAYER}"
field = "PARCELNO"
from = "the clerk, 2026-10-01"

[[source]]
state = "FL"
county = "Levy"
kind = "page"
platform = "floridapa"
[source.settings]
base_url = "https://levy.example"
"""


def test_our_own_file_names_layers_and_pages(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN)

    [layer, page], rejects = read(path)

    assert not rejects
    assert (layer.kind, layer.platform, layer.settings["field"]) == ("layer", "arcgis", "PARCELNO")
    assert (layer.origin, layer.reference) == ("mine", "mine.toml, source 1: the clerk, 2026-10-01")
    assert (page.kind, page.platform, page.settings) == ("page", "floridapa", {"base_url": "https://levy.example"})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('state = "Florida"', "postal code"),
        ('state = "FL"\nfips = "12"', "five digits"),
        ('state = "FL"\nkind = "map"', "one of layer, page"),
        ('state = "FL"\ncolor = "red"', "no 'color'"),
        ('state = "FL"\nkind = "page"', "platform"),
        ('state = "FL"\ncounty = 7', "write county as text"),
        (f'state = "FL"\nurl = "{LAYER}"\nfield = "A\'B"', "no column"),
        ('state = "FL"\nkind = "layer"\nurl = "https://gis.example/map"', "no layer"),
    ],
)
def test_what_is_wrong_in_our_own_file_is_said_with_its_place(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[[source]]\n{line}\n")

    found, [reject] = read(path)

    assert not found
    assert words in reject.detail
    assert reject.raw == "mine.toml, source 1"


def test_the_real_data_is_read_whole_as_a_clone_and_as_a_collection(tmp_path: Path) -> None:
    entries = real_entries()
    clone, rejects = read(write_clone(tmp_path / "clone", entries))

    assert len(clone) == len(entries) == 1133
    assert not rejects
    collection, _ = read(DATA)

    def place(each: ParcelSource) -> tuple[Any, ...]:
        return (
            each.reference,
            each.state,
            each.county or "",
            each.city or "",
            each.url,
            each.settings.get("field", ""),
        )

    assert sorted(map(place, collection)) == sorted(map(place, clone))
    assert len({(each.state, each.county) for each in clone if each.kind == "layer" and each.county}) > 880
