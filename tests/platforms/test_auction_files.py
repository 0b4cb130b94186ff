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


JERSEY = "ADV_NUM,BLOCK,LOT,QUAL,OWNER,ADV_AMT,WINNINGBID,WINNINGPREMIUM,BIDDER NAME\n"


@pytest.mark.parametrize(
    ("bid", "premium", "found"),
    [
        ("18.00%", "", {"interest_rate": 18.0}),
        ("0.00%", "$1,500.00", {"interest_rate": 0.0, "winning_bid": 1500.0}),
        ("$2,100.00", "", {"winning_bid": 2100.0}),
        ("2100", "", {"winning_bid": 2100.0}),
        ("18.00", "", {}),
    ],
)
def test_in_new_jersey_the_sign_of_a_cell_says_what_it_is(bid: str, premium: str, found: dict[str, float]) -> None:
    row = f'7,12.02,5,C001,HERON IDA,298.63,"{bid}","{premium}",LANTERN LLC\n'
    (record,) = read_auction_file(JERSEY + row, "NJ")
    assert record["parcel_id"] == "12.02/5/C001"
    assert record["liens"] == [{"face_amount": 298.63, "holder": "LANTERN LLC", **found}]


def test_a_percentage_is_a_rate_and_a_premium_dollars_in_any_state() -> None:
    text = (
        "Parcel,Total In Sale,Premium,Percentage,Holder Name\n12-7,90.25,700,4.5,LANTERN LLC\n12-8,88.00,0.00,0.00,\n"
    )
    sold, unsold = read_auction_file(text, "MD")
    assert sold["liens"] == [
        {"face_amount": 90.25, "interest_rate": 4.5, "winning_bid": 700.0, "holder": "LANTERN LLC"}
    ]
    assert unsold["liens"] == [{"face_amount": 88.0}]


def test_a_file_for_uploading_bids_is_a_list_of_liens() -> None:
    text = "RA_ITEMID\tADVNUM\tPARCEL\tFACEVALUE\tBID\r\n64\t000001\t01-03-10-00104\t90.25\t\r\n"
    page = Page("", text.encode())
    (record,) = default_registry().parse(page, Target(state="FL")).record["parcels"]
    assert record["alternate_ids"] == {"advertising_number": "000001", "item": "64"}
    assert (record["parcel_id"], record["liens"]) == ("01-03-10-00104", [{"face_amount": 90.25}])


def test_a_folio_may_come_in_two_parts() -> None:
    (record,) = read_auction_file("ADVNUM,FOLIO1,FOLIO2,FACEAMT\n1,0131,2201770,512.10\n", "FL")
    assert record["parcel_id"] == "0131 2201770"


def test_a_file_without_a_head_is_read_where_its_cells_leave_no_doubt() -> None:
    rows = [f"{n},R00{n}10-00{n},{100 + n}.25,00{n}.50,LANTERN LLC" for n in range(1, 8)]
    page = Page("", "\n".join(rows).encode())
    records = default_registry().parse(page, Target(state="FL")).record["parcels"]
    assert (len(records), records[0]["parcel_id"]) == (7, "R00110-001")
    assert records[0]["alternate_ids"] == {"advertising_number": "1"}
    assert records[0]["liens"] == [{"face_amount": 101.25}]
    assert "owner_name" not in records[0]


@pytest.mark.parametrize(
    "row",
    [
        "{n},R00{n}10-00{n},{n}01.25,{n}99.50",
        "{n},R00010-001,{n}01.25,x",
        "R00{n}10-00{n},{n}01.25,x",
        "{n},HERON,{n}01.25",
    ],
    ids=["two amounts", "the same id", "nothing counts the rows", "no id"],
)
def test_a_doubtful_file_without_a_head_is_refused(row: str) -> None:
    text = "\n".join(row.format(n=n) for n in range(1, 9))
    assert not looks_like_auction_file(Page("", text.encode()))
