"""Real public pages, where they are at hand beside the project; nothing of them is kept in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry
from lienworker.platforms.catalog.score import fold, has

PAGES = Path(__file__).resolve().parents[2] / ".." / "shared" / "pages"
pytestmark = pytest.mark.skipif(not (PAGES / "expected.json").exists(), reason="no real pages in ../shared/pages")

CASES: list[dict[str, Any]] = (
    json.loads((PAGES / "expected.json").read_text()) if (PAGES / "expected.json").exists() else []
)
NOT_PARCELS = {
    "floridapa_grizzly/fl_columbia_gis_map_pin112S1500010001.html": "map_shell",
    "floridapa_grizzly/fl_columbia_search_form.html": "search_form",
    "realauction/realtaxlien_cert_detail_empty.html": "parcel_not_found",
    "arcgis_rest/us-ne-lancaster-metadata.json": "not_a_parcel",
}
FOLDERS = {
    "schneider_qpublic": "qpublic",
    "floridapa_grizzly": "floridapa",
    "tyler_iasworld": "tyler",
    "fl_lee_leepa": "leepa",
    "fl_collier_pa": "collier",
    "il_cook": "cook",
    "wv_auditor_landsales": "wvauditor",
    "ia_polk": "polk_ia",
    "oh_cuyahoga_myplace": "cuyahoga",
    "arcgis_rest": "arcgis",
    "ny_scarsdale": "generic",
    "ma_newbedford": "generic",
}
ID_KEYS = ("parcel_id", "parid", "pin", "pid", "folio", "strap", "prop_id", "parcel", "geoparcel", "account")
READABLE = [case for case in CASES if case["file"] not in NOT_PARCELS]


def parse(case: dict[str, Any], platform: str | None = None) -> Any:
    page = Page("http://county.example/", (PAGES / case["file"]).read_bytes())
    return default_registry().parse(page, Target(platform=platform, state=case["place"][:2]))


def parts(record: dict[str, Any]) -> list[dict[str, Any]]:
    return record.get("parcels") or [record]


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case["file"])
def test_every_value_that_a_reader_sees_is_in_the_record(case: dict[str, Any]) -> None:
    parsed = parse(case)
    folder = case["file"].split("/")[0]
    assert parsed.platform == FOLDERS.get(folder, folder)
    assert [name for name, value in case["expected"].items() if not has(parsed.record, value)] == []


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case["file"])
def test_id_owner_and_address_have_their_canonical_names(case: dict[str, Any]) -> None:
    record, expected = parse(case).record, case["expected"]
    ids = [value for name, value in expected.items() if name in ID_KEYS]
    if ids:
        found = [[item.get("parcel_id"), *item.get("alternate_ids", {}).values()] for item in parts(record)]
        assert all(any(fold(value) in map(fold, names) for names in found) for value in ids)
        assert any(fold(item.get("parcel_id")) in map(fold, ids) for item in parts(record)) or "geoparcel" in expected
    for name, canonical in (("owner", "owner_name"), ("situs", "property_address"), ("mailing", "owner_address")):
        if name in expected:
            assert any(fold(expected[name]) in fold(item.get(canonical)) for item in parts(record)), name


@pytest.mark.parametrize("file", NOT_PARCELS)
def test_a_page_that_is_no_parcel_is_known_as_what_it_is(file: str) -> None:
    with pytest.raises(PageError) as error:
        default_registry().parse(Page("http://county.example/", (PAGES / file).read_bytes()), Target())
    assert error.value.reason == NOT_PARCELS[file]


def parcel_pages() -> list[dict[str, Any]]:
    lists = re.compile(r"list|calendar|download|address points", re.I)
    return [case for case in READABLE if not lists.search(case["what"] + case["platform"])]


def test_generic_alone_finds_most_of_it_and_nothing_wrong() -> None:
    found = total = 0
    for case in parcel_pages():
        expected = case["expected"]
        total += len(expected)
        try:
            record = parse(case, "generic").record
        except PageError:
            continue
        found += sum(has(record, value) for value in expected.values())
        ids = {fold(value) for name, value in expected.items() if name in ID_KEYS}
        for item in parts(record)[:1]:
            if ids and item.get("parcel_id"):
                assert fold(item["parcel_id"]) in ids, case["file"]
            if item.get("owner_name"):
                assert fold(expected["owner"]) in fold(item["owner_name"]), case["file"]
    assert found / total >= 0.85


MORE = PAGES.parent / "pages-more"
KNOWN_FOLDERS = {**FOLDERS, "realauction": "realauction", "vgsi": "vgsi"}
NOT_OURS = ("il_cook/il_cook_treasurer.html", "realauction/sheriffsale_oh_montgomery_areaC_2026-07-10.rethtml.txt")


def more_cases() -> list[dict[str, Any]]:
    """Pages of counties that have a platform, kept apart from those that the platforms were written by."""
    listed = MORE / "expected.json"
    cases: list[dict[str, Any]] = json.loads(listed.read_text()) if listed.exists() else []
    return [case for case in cases if case["file"].split("/")[0] in KNOWN_FOLDERS and case["file"] not in NOT_OURS]


@pytest.mark.parametrize("case", more_cases(), ids=lambda case: case["file"])
def test_pages_that_nobody_tuned_for_are_read_as_well(case: dict[str, Any]) -> None:
    page = Page("http://county.example/", (MORE / case["file"]).read_bytes())
    parsed = default_registry().parse(page, Target(state=case["place"][:2]))
    assert parsed.platform == KNOWN_FOLDERS[case["file"].split("/")[0]]
    assert [name for name, value in case["expected"].items() if not has(parsed.record, value)] == []
