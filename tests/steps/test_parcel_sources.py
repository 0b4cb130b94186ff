"""Which known way is taken for a parcel of which only the county and the id are given."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import open_store
from lienworker.errors import StoreError
from lienworker.intake.rows import Reject
from lienworker.platforms import default_registry
from lienworker.steps.import_file import How, Importer
from lienworker.steps.parcel_sources import Choice, KnownSources
from lienworker.store.parcel_sources import (
    ParcelSource,
    Tried,
    add_sources,
    record_tried,
    stored_sources,
    tried_sources,
)
from lienworker.store.tasks import NewTask

LAYER = "https://gis.example/arcgis/rest/services/{}/FeatureServer/0"


def layer(name: str = "Dixie", **changes: Any) -> ParcelSource:
    url = LAYER.format(name)
    about: dict[str, Any] = {
        "state": "FL", "county": "Dixie", "kind": "layer", "url": url, "origin": "openaddresses",
        "reference": "sources/us/fl/dixie.json", "fips": "12029", "platform": "arcgis",
        "settings": {"base_url": url, "field": "PIN"},
    }  # fmt: skip
    return ParcelSource(**about | changes)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return open_store(tmp_path / "data")


def choose(folder: DataFolder, *sources: ParcelSource, county: str = "Dixie") -> Choice:
    add_sources(folder, sources, whole=True)
    return KnownSources(folder, default_registry()).choose("FL", county)


def tried(worked: bool, **learned: str) -> Tried:
    return Tried("2026-11-18T09:00:00.000Z", worked, "so it went", learned)


@pytest.mark.parametrize("county", ["Dixie", "DIXIE COUNTY", "12029"])
def test_a_county_goes_by_its_name_or_its_code(folder: DataFolder, county: str) -> None:
    found = choose(folder, layer(), county=county)

    assert found.source is not None
    assert found.source.url == LAYER.format("Dixie")
    assert "openaddresses: sources/us/fl/dixie.json" in found.words
    assert "never tried here" in found.words


def test_the_operators_own_word_comes_first(folder: DataFolder) -> None:
    found = choose(folder, layer("Old"), layer("New", origin="mine", reference="mine.toml, source 1"))

    assert found.source is not None
    assert found.source.url == LAYER.format("New")


def test_what_failed_here_comes_after_what_did_not(folder: DataFolder) -> None:
    first, second = layer("A", reference="a.json"), layer("B", reference="b.json")
    assert choose(folder, first, second).source == first

    record_tried(folder, {first.key: tried(False)})

    assert choose(folder, first, second).source == second


def test_a_file_named_after_another_county_comes_after_the_countys_own(folder: DataFolder) -> None:
    found = choose(folder, layer("Copied", reference="sources/us/fl/alachua.json"), layer("Own"))

    assert found.source is not None
    assert found.source.url == LAYER.format("Own")


def test_a_service_for_programs_comes_before_a_page_for_people(folder: DataFolder) -> None:
    add_sources(folder, [layer(county="Lee", fips="12071")], whole=True)
    known = KnownSources(folder, default_registry()).at("FL", "Lee")

    assert [each.source.kind for each in known] == ["layer", "page"]
    assert known[1].source.platform == "leepa"


@pytest.mark.parametrize(
    ("source", "reason", "words"),
    [
        (layer(county=None), "no_source", "the whole state"),
        (layer(city="Cross City"), "no_source", "Cross City"),
        (layer(settings={"base_url": LAYER}), "no_source", 'lienworker sources check "FL Dixie"'),
        (layer(kind="auction"), "no_source", "auction"),
        (layer(kind="file", settings={"format": "shapefile"}), "file_download", "lienworker harvest FILE --state FL"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for_one_parcel_is_said(
    folder: DataFolder, source: ParcelSource, reason: str, words: str
) -> None:
    found = choose(folder, source)

    assert found.source is None
    assert found.reason == reason
    assert words in found.words


def test_a_column_that_the_layer_told_is_used(folder: DataFolder) -> None:
    without = layer(settings={"base_url": LAYER.format("Dixie")})
    record_tried(folder, {without.key: tried(True, field="PARCELNO", field_type="number")})

    found = choose(folder, without)

    assert found.source is not None
    assert found.source.settings["field"] == "PARCELNO"


def test_a_code_that_two_counties_claim_is_not_guessed(folder: DataFolder) -> None:
    found = choose(folder, layer(), layer("Levy", county="Levy"), county="12029")

    assert found.source is None
    assert "several counties" in found.words


def test_a_county_that_nobody_knows_is_said_with_what_to_do(folder: DataFolder) -> None:
    assert "lienworker sources add" in choose(folder, county="Levy").words


def rows_of(folder: DataFolder, table: str) -> list[NewTask | Reject]:
    registry = default_registry()
    importer = Importer(registry, io.BytesIO(table.encode()), "list.csv", How(), KnownSources(folder, registry))
    seen: list[NewTask | Reject] = []
    importer.try_out(seen.append, lambda ids: set())
    return seen


def test_state_county_and_parcel_id_are_enough(folder: DataFolder) -> None:
    add_sources(folder, [layer()], whole=True)

    [good, quoted, coded, unknown] = rows_of(
        folder, "state,county,parcel_id\nFL,Dixie,00-1\nFL,Dixie,O'Brien\nFL,12029,7\nFL,Levy,1\n"
    )

    assert isinstance(good, NewTask)
    assert good.url.startswith(f"{LAYER.format('Dixie')}/query?where=PIN%3D%2700-1%27&")
    assert (good.platform, good.state, good.county, good.parcel_id) == ("arcgis", "FL", "Dixie", "00-1")
    assert isinstance(quoted, NewTask)
    assert "where=PIN%3D%27O%27%27Brien%27&" in quoted.url
    assert isinstance(coded, NewTask)
    assert coded.county == "Dixie"
    assert isinstance(unknown, Reject)
    assert (unknown.line, unknown.reason) == (5, "no_source")


def test_a_column_of_numbers_is_asked_for_a_number(folder: DataFolder) -> None:
    known = layer()
    add_sources(folder, [known], whole=True)
    record_tried(folder, {known.key: tried(True, field="PIN", field_type="number")})

    [number, text] = rows_of(folder, "state,county,parcel_id\nFL,Dixie,0012\nFL,Dixie,12-7\n")

    assert isinstance(number, NewTask)
    assert "where=PIN%3D0012&" in number.url
    assert isinstance(text, NewTask)
    assert "where=PIN%3D%2712-7%27&" in text.url


def test_a_page_is_asked_with_the_settings_of_its_county(folder: DataFolder) -> None:
    page = layer(kind="page", platform="bisconsultants", url="https://levy.example",
                 settings={"base_url": "https://levy.example", "tax_year": "2026"})  # fmt: skip
    add_sources(folder, [page], whole=True)

    [row] = rows_of(folder, "state,county,parcel_id\nFL,Dixie,12\n")

    assert isinstance(row, NewTask)
    assert row.url == "https://levy.example/Property/View/12?year=2026"
    assert row.target["tax_year"] == "2026"


# What is kept in the data folder.


def test_a_clone_replaces_what_it_told_before_and_a_single_file_only_its_own(folder: DataFolder) -> None:
    a, b = layer("A", reference="a.json"), layer("B", reference="b.json")
    add_sources(folder, [a, b], whole=True)
    newer = layer("A2", reference="a.json")
    add_sources(folder, [newer], whole=False)
    assert {source.url for source in stored_sources(folder)} == {newer.url, b.url}

    add_sources(folder, [a], whole=True)

    assert stored_sources(folder) == [a]


def test_what_was_tried_is_kept_beside_what_was_tried_before(folder: DataFolder) -> None:
    record_tried(folder, {"one": tried(True)})
    record_tried(folder, {"two": tried(False)})

    assert {key: about.worked for key, about in tried_sources(folder).items()} == {"one": True, "two": False}


def test_a_damaged_file_is_named_with_the_remedy(folder: DataFolder) -> None:
    add_sources(folder, [layer()], whole=True)
    [file] = folder.sources.glob("from-*.json")
    file.write_text('{"sources": [{"state": ')

    with pytest.raises(StoreError, match=r"from-openaddresses\.json cannot be read .*sources add"):
        stored_sources(folder)
