"""The demo county's platform, against the pages of the demo county."""

from __future__ import annotations

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target
from lienworker.platforms.vendors.demo import PLATFORM
from lienworker.platforms.vendors.generic import PLATFORM as GENERIC
from lienworker.testing.county.pages import parcel_id, parcel_number, render_parcel


def parsed(n: int) -> dict[str, object]:
    return PLATFORM.parse(Page("", render_parcel(n).encode()), Target())


def test_the_whole_parcel_is_read() -> None:
    record = parsed(7)
    assert record["parcel_id"] == parcel_id(7)
    assert {"owner_name", "owner_address", "property_address", "city", "zip", "acres", "total_due"} <= record.keys()
    assert [entry["year"] for entry in record["values"]] == list(range(2024, 2016, -1))
    assert record["values"][0]["land"] == record["land_value"]
    assert all({"year", "bill", "amount", "status"} <= bill.keys() for bill in record["taxes"])
    assert all(sale["date"] < "2025" for sale in record["sales"])
    assert record["fields"]["Parcel ID"] == parcel_id(7)


def test_an_open_bill_has_its_certificate() -> None:
    records = [parsed(n) for n in range(1, 40)]
    for record in records:
        open_bills = {bill["year"] for bill in record["taxes"] if bill["due"]}
        assert {lien["tax_year"] for lien in record.get("liens", [])} == open_bills
        assert record["total_due"] == pytest.approx(sum(bill["due"] for bill in record["taxes"]))
    assert any(record.get("liens") for record in records)


def test_generic_agrees_with_it_on_every_single_value() -> None:
    for n in range(1, 30):
        page = Page("", render_parcel(n).encode())
        generic, own = GENERIC.parse(page, Target()), PLATFORM.parse(page, Target())
        names = own.keys() - {"state", "fields", "tax_status"}
        assert {name: generic.get(name) for name in names} == {name: own[name] for name in names}


def test_urls_are_built_from_the_base_that_the_target_brings() -> None:
    target = Target(parcel_id="04-123-0000007", extra={"base_url": "http://127.0.0.1:8900/"})
    assert PLATFORM.build_url(target) == "http://127.0.0.1:8900/parcel/04-123-0000007"
    assert PLATFORM.build_url(Target(parcel_id="04-123-0000007")) is None


def test_rendering_is_deterministic_and_as_large_as_asked() -> None:
    assert render_parcel(42) == render_parcel(42) != render_parcel(43)
    for size in (10_000, 25_000, 50_000):
        assert size * 0.8 < len(render_parcel(9, size)) < size * 1.2


def test_ids_and_numbers_go_both_ways() -> None:
    assert [parcel_number(parcel_id(n)) for n in (1, 999, 1_000_000)] == [1, 999, 1_000_000]
    assert parcel_number("99-404-0000000") is None
    assert parcel_number("nonsense") is None


def test_another_countys_page_is_refused() -> None:
    with pytest.raises(PageError):
        PLATFORM.parse(Page("", b"<p>Parcel 12</p>"), Target())
