"""The files of tax lien auctions: any delimiter, any head, and the bid meant as the state means it."""

from __future__ import annotations

import pytest

from lienworker.platforms import Page, Target, default_registry
from lienworker.platforms.vendors.realauction.files import column_of, looks_like_auction_file, read_auction_file

RESULTS = "AdvNum,Parcel,Face Amount,Certificate Number,WinningBid,Bidder ID,Primary Name On Account\n"
ROW = '0000001,R09999-001,404.95,0,010.00,8074253,"LANTERN, LLC"\n'


def test_results_of_florida_have_rates() -> None:
    (record,) = read_auction_file(RESULTS + ROW, "FL")
    assert record["parcel_id"] == "R09999-001"
    assert record["alternate_ids"] == {"advertising_number": "0000001"}
    assert record["liens"] == [{"face_amount": 404.95, "interest_rate": 10.0, "holder": "LANTERN, LLC"}]
    assert record["fields"]["Bidder ID"] == "8074253"


@pytest.mark.parametrize(("state", "name"), [("MD", "winning_bid"), ("az", "interest_rate"), ("CO", "winning_bid")])
def test_the_bid_is_dollars_or_a_rate_by_state(state: str, name: str) -> None:
    (record,) = read_auction_file(RESULTS + ROW, state)
    assert record["liens"][0][name] == 10.0


def test_where_the_state_is_unknown_the_bid_stays_as_shown() -> None:
    (record,) = read_auction_file(RESULTS + ROW)
    assert not record["liens"][0].keys() & {"winning_bid", "interest_rate"}
    assert record["fields"]["WinningBid"] == "010.00"


def test_a_tab_separated_list_with_accounts() -> None:
    text = "SEQUENCE\tACCOUNT\tAMOUNT DUE\tOWNER NAME\r\n1\tR0009987\t3324.7300\tDRUMLIN KIT\r\n\t\t\t\r\n"
    (record,) = read_auction_file(text, "AZ")
    assert (record["parcel_id"], record["owner_name"]) == ("R0009987", "DRUMLIN KIT")
    assert record["liens"] == [{"face_amount": 3324.73}]


def test_pipes_and_heads_that_come_twice() -> None:
    text = (
        "PARCEL ID|OWNER NAME|OWNER NAME|OWNER ADDRESS|OWNER CITY|PROPERTY ADDRESS|ASSESSED VALUE|FACE VALUE\n"
        "01-0-992554|FENWAKE ADA|FENWAKE BRAM|4615 ACORN RD|MILLBROOK|04615  ACORN  RD|181967|2614.12\n"
    )
    (record,) = read_auction_file(text, "MD")
    assert record["owner_names"] == ["FENWAKE ADA", "FENWAKE BRAM"]
    assert record["owner_address"] == "4615 ACORN RD MILLBROOK"
    assert record["property_address"] == "04615 ACORN RD"
    assert record["fields"]["OWNER NAME (2)"] == "FENWAKE BRAM"
    assert record["assessed_value"] == 181967.0


@pytest.mark.parametrize(
    ("head", "column"),
    [
        ("WinningBid", "bid"),
        ("Parcel_ID", "parcel_id"),
        ("PARCEL NUMBER", "parcel_id"),
        ("Face Amt.", "face"),
        ("Buyer's Name", "holder"),
        ("Moon Phase", None),
    ],
)
def test_heads_are_known_in_any_spelling(head: str, column: str | None) -> None:
    assert column_of(head) == column


def test_other_texts_are_no_auction_files() -> None:
    for body in (
        b"",
        b"hello, world, again\n1,2,3\n",
        b"<p>Parcel, Face Amount, Owner</p>",
        b'{"Parcel": 1}',
        b"Name|Phone",
    ):
        assert not looks_like_auction_file(Page("", body))


def test_a_file_is_recognised_and_becomes_a_list() -> None:
    parsed = default_registry().parse(Page("http://x.example/", (RESULTS + ROW).encode()), Target(state="FL"))
    assert parsed.platform == "realauction"
    assert [item["parcel_id"] for item in parsed.record["parcels"]] == ["R09999-001"]
