"""Heron County's page, as a reader sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from heron_county import PLATFORM

from lienworker.errors import PageError
from lienworker.platforms import Page, Target

PAGE = Path(__file__).with_name("heron.html").read_bytes()
EXPECTED = {
    "parcel_id": "07-114-0032",
    "owner_name": "BITTERN ELSA",
    "property_address": "114 REED ST",
    "market_value": 212900.0,
    "total_due": 1804.22,
    "sales": [{"date": "2015-03-02", "price": 141000.0, "grantor": "CRANE VIOLA"}],
}


def test_the_page_says_what_a_reader_sees() -> None:
    record = PLATFORM.parse(Page("https://tax.heron.example/parcel?id=1", PAGE), Target())
    assert {name: record.get(name) for name in EXPECTED} == EXPECTED
    assert record["liens"][0]["certificate_number"] == "2023-0417"
    assert record["liens"][0]["face_amount"] == 1611.8


def test_a_retired_account_gives_no_record() -> None:
    retired = PAGE.replace(b"<dl>", b'<p class="retired">This account is retired</p><dl>')
    with pytest.raises(PageError, match="retired"):
        PLATFORM.parse(Page("https://tax.heron.example/parcel?id=1", retired), Target())


def test_its_address_can_be_built() -> None:
    assert PLATFORM.build_url(Target(parcel_id="07-114-0032")) == "https://tax.heron.example/parcel?id=07-114-0032"
