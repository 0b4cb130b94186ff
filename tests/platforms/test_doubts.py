"""The guard against wrong data: what a person would doubt at a glance, and nothing that is right."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from lienworker.platforms import default_registry
from lienworker.platforms.catalog.score import read_cases, score
from lienworker.platforms.core.doubts import MOST_DOUBTS, doubts_of

TODAY = date(2026, 11, 18)
OURS = Path(__file__).resolve().parents[1] / "fixtures" / "pages"
SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"
FINE: dict[str, Any] = {
    "parcel_id": "00-12-003",
    "owner_name": "WREN ADA",
    "owner_address": "12 JUNIPER LN OLD FERRY XX 00903",
    "property_address": "40 DAMSON ST",
    "legal_description": "LOT 3 & 4 BRAMBLE ADD",
    "acres": 0.25,
    "land_area_sqft": 10890.0,
    "year_built": 1957,
    "land_value": 40000.0,
    "building_value": 160000.0,
    "market_value": 200000.0,
    "assessed_value": 210000.0,
    "taxable_value": 0.0,
    "values": [{"year": 2025, "land": 39000.0, "market": 39000.0}, {"year": 2024, "building": 1.0}],
    "tax_year": 2027,
    "total_due": 300.3,
    "taxes": [
        {"year": 2025, "due": 100.1, "amount": 100.1},
        {"year": 2024, "due": 200.2},
        {"year": 2023, "due": 0.0, "paid_on": "2026-11-18"},
        {"year": 2022, "due": -5.0},
    ],
    "liens": [
        {"certificate_number": "7"},
        {"tax_year": 2021, "sale_date": "2027-06-01"},
        {"status": "Cert. Sold"},
        {"interest_rate": 18.0, "redeemed_on": "2024-01-01"},
    ],
    "sales": [{"date": "2026-11-18", "price": 0.0}],
    "fields": {"script": "{ function () {} }"},
}


def test_a_record_that_is_right_is_not_doubted() -> None:
    assert doubts_of(FINE, TODAY) == []


@pytest.mark.parametrize(
    ("change", "check", "field"),
    [
        ({"market_value": 150000.0}, "total_below_part", "market_value"),
        ({"values": [{"year": 2025, "land": 39000.0, "market": 100.0}]}, "total_below_part", "values[0].market"),
        ({"total_due": 200.2}, "due_above_total", "total_due"),
        ({"total_due": 0.0}, "due_above_total", "total_due"),
        ({"owner_name": "40 Damson St."}, "owner_is_address", "owner_name"),
        ({"owner_address": "WREN, ADA"}, "owner_is_address", "owner_name"),
        ({"owner_name": "$(function () { go(); })"}, "code_in_text", "owner_name"),
        ({"legal_description": "LOT 3 <br/> BLK 4"}, "code_in_text", "legal_description"),
        ({"liens": [{"tax_year": 2020, "status": "var x = 1"}]}, "code_in_text", "liens[0].status"),
        ({"liens": [{"tax_year": 2020, "status": "None on file"}]}, "lien_of_nothing", "liens[0]"),
        (
            {"liens": [{"certificate_number": "7", "interest_rate": 1800.0}]},
            "impossible_number",
            "liens[0].interest_rate",
        ),
        ({"sales": [{"date": "2026-11-19"}]}, "in_the_future", "sales[0].date"),
        ({"taxes": [{"year": 2026, "paid_on": "2062-01-31"}]}, "in_the_future", "taxes[0].paid_on"),
        ({"year_built": 2091}, "in_the_future", "year_built"),
        ({"market_value": -1.0, "land_value": None, "building_value": None}, "impossible_number", "market_value"),
        ({"acres": 0.0, "land_area_sqft": 54450.0}, "areas_apart", "acres"),
        ({"acres": 10890.0}, "areas_apart", "acres"),
    ],
)
def test_what_a_person_would_doubt_is_doubted(change: dict[str, Any], check: str, field: str) -> None:
    record = FINE | change
    before = repr(record)
    found = doubts_of(record, TODAY)
    assert (check, field) in [(doubt.check, doubt.field) for doubt in found]
    assert repr(record) == before


def test_items_of_a_list_are_doubted_one_by_one_and_not_without_end() -> None:
    wrong = {"owner_name": "{x}"}
    found = doubts_of({"parcels": [FINE, wrong]}, TODAY)
    assert [doubt.field for doubt in found] == ["parcels[1].owner_name"]
    assert len(doubts_of({"parcels": [wrong] * 10_000}, TODAY)) == MOST_DOUBTS


@pytest.mark.parametrize("value", [None, "text", 7, [], {}, [1, None, "x"], True])
def test_a_record_of_any_shape_is_no_crash(value: Any) -> None:
    doubts_of(dict.fromkeys((*FINE, "parcels"), value), TODAY)


def test_less_than_one_correct_page_in_a_hundred_is_doubted() -> None:
    pages = doubted = 0
    for folder in (OURS, SHARED / "pages", SHARED / "pages-more"):
        if (folder / "expected.json").exists():
            found = score(default_registry(), read_cases(folder), TODAY)
            pages += len({finding.file for finding in found.findings} - found.refused.keys())
            doubted += len(found.doubts)
    assert pages >= 40
    assert doubted < 0.01 * pages
