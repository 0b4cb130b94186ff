"""Every platform on pages of its own shape, with invented people: recognised by content, and read in full.

What a reader sees in each page is in `expected.json` beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry

PAGES = Path(__file__).resolve().parents[1] / "fixtures" / "pages"


def parse(name: str, **target: Any) -> Any:
    page = Page("http://county.example/page", (PAGES / name).read_bytes())
    return default_registry().parse(page, Target(**target))


CASES = [case for case in json.loads((PAGES / "expected.json").read_text()) if "reason" not in case]
EXPECTED = {case["file"]: case for case in CASES if "parcels" not in case["expected"]}
LISTS = {case["file"]: case for case in CASES if "parcels" in case["expected"]}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_page_is_recognised_and_read_in_full(name: str) -> None:
    expected = EXPECTED[name]["expected"]
    parsed = parse(name)
    assert parsed.platform == EXPECTED[name]["platform"]
    assert {key: parsed.record.get(key) for key in expected} == expected
    assert parsed.record.get("fields")


@pytest.mark.parametrize("name", LISTS)
def test_a_list_gives_one_record_an_item_and_has_no_parcel_of_its_own(name: str) -> None:
    expected = LISTS[name]["expected"]["parcels"]
    parsed = parse(name)
    assert parsed.platform == LISTS[name]["platform"]
    assert "parcel_id" not in parsed.record
    found = [
        {key: item.get(key) for key in wanted} for item, wanted in zip(parsed.record["parcels"], expected, strict=True)
    ]
    assert found == expected


def test_the_list_says_when_there_is_more() -> None:
    assert parse("arcgis_list.json").record["fields"] == {"exceededTransferLimit": "true"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"geometryType": "esriGeometryPoint", "features": []}', "parcel_not_found"),
        (b'{"name": "Parcels", "geometryType": "esriGeometryPolygon", "fields": []}', "not_a_parcel"),
        (b'{"due": {"PPT": {"bills": []}}}', "parcel_not_found"),
    ],
)
def test_what_is_no_parcel_says_why(body: bytes, reason: str) -> None:
    with pytest.raises(PageError) as error:
        default_registry().parse(Page("http://county.example/", body), Target())
    assert error.value.reason == reason


def test_the_same_engine_is_beacon_where_the_target_says_so() -> None:
    assert parse("beacon.html", platform="beacon").platform == "beacon"


@pytest.mark.parametrize("name", [*EXPECTED, *LISTS])
def test_half_a_page_is_a_record_or_a_reason_but_never_a_crash(name: str) -> None:
    body = (PAGES / name).read_bytes()
    registry = default_registry()
    platform = registry.for_page(Page("http://county.example/", body)).name
    reasons = set()
    for part in range(1, 20):
        try:
            registry.parse(Page("http://county.example/", body[: len(body) * part // 20]), Target(platform=platform))
        except PageError as error:
            reasons.add(error.reason)
    assert "parser_error" not in reasons
