"""Lists of auctions and their calendar as counties and the site's own script get them. Everything is invented."""

from __future__ import annotations

import json

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Record, Target, default_registry
from lienworker.platforms.vendors.realauction.files import read_auction_file

SHORT = (
    '<div id="AITEM_77" @C@E_ITEM PREVIEW" aid="77">@A@E_STATS">@AASTAT_MSGA ASTAT_LBL">Auction Sold@B'
    '@AASTAT_MSGB Astat_DATA">06/05/2026 10:00 AM ET@B@AASTAT_MSGC ASTAT_LBL">Amount@B'
    '@AASTAT_MSGD Astat_DATA">$5,000.00@B@B@A@E_DETAILS"><@I @Cad_tab"><tbody>'
    '@H tabindex="0" @CAD_LBL" scope="row">Auction Type:@F tabindex="0"@CAD_DTA">TAXDEED@G'
    '@H @CAD_LBL">Certificate #:@F @CAD_DTA">2021-14@G@H @CAD_LBL">Parcel ID:@F @CAD_DTA"> <a href="x">12-7</a>@G'
    '@H @CAD_LBL">Property Address:@F @CAD_DTA">12 ACORN LN@G@H @CAD_LBL">@F @CAD_DTA">MILLBROOK, XX- 00902@G'
    "</tbody></@I>@B@B"
)
URL = "https://salt.realtaxdeed.com/index.cfm?zaction=AUCTION&Zmethod=UPDATE&FNC=LOAD&AREA=W"


def read(body: str, url: str = "") -> Record:
    parsed = default_registry().parse(Page(url, body.encode()), Target())
    assert parsed.platform == "realauction"
    return parsed.record


@pytest.mark.parametrize("url", [URL, ""])
def test_the_shorthand_of_the_script_is_written_out(url: str) -> None:
    (item,) = read(json.dumps({"retHTML": SHORT, "rlist": "77"}), url)["parcels"]
    assert (item["parcel_id"], item["property_address"]) == ("12-7", "12 ACORN LN MILLBROOK, XX- 00902")
    assert item["liens"] == [{"certificate_number": "2021-14"}]
    assert (item["auction"]["date"], item["auction"]["type"]) == ("2026-06-05", "TAXDEED")
    assert item["auction"]["status"] == "Auction Sold 06/05/2026 10:00 AM ET Amount $5,000.00"


@pytest.mark.parametrize(
    ("answer", "reason"), [({"retHTML": "", "rlist": ""}, "parcel_not_found"), ({"ADATA": {}}, "not_a_parcel")]
)
def test_an_answer_without_auctions_has_its_reason(answer: object, reason: str) -> None:
    with pytest.raises(PageError) as error:
        read(json.dumps(answer), URL)
    assert error.value.reason == reason


@pytest.mark.parametrize(("row", "name", "value"), [("div", "div", "div"), ("tr", "th", "td"), ("tr", "td", "td")])
def test_a_label_is_a_cell_or_a_block(row: str, name: str, value: str) -> None:
    said = {
        "Case #:": "2026-1",
        "Parcel ID:": "<a>12-7</a>",
        "Property Address:": "12 ACORN LN",
        "": "MILLBROOK, 00902",
    }
    rows = "".join(
        f'<{row}><{name} class="AD_LBL">{label}</{name}><{value} class="AD_DTA">{shown}</{value}></{row}>'
        for label, shown in said.items()
    )
    around = f"<table>{rows}</table>" if row == "tr" else rows
    (item,) = read(f'<div id="AITEM_7" class="AUCTION_ITEM PREVIEW" aid="7">{around}</div>')["parcels"]
    assert (item["parcel_id"], item["property_address"]) == ("12-7", "12 ACORN LN MILLBROOK, 00902")
    assert item["auction"] == {"case_number": "2026-1"}


def test_a_calendar_as_the_server_writes_it_lists_only_days_with_auctions() -> None:
    days = """<div class='CALBOX CALW5 CALSELT' dayid='03/02/2026' ><span class='CALNUM'>2</span>
    <span class='CALTEXT'>Tax Deed<br><span class='CALMSG'><span class='CALACT'>0</span> /
    <span class='CALSCH'>37</span> TD</span></span></div>
    <div class='CALBOX CALW5' dayid='03/03/2026'><span class='CALNUM'>3</span></div>"""
    (day,) = read(days)["parcels"]
    assert day == {
        "auction": {"date": "2026-03-02", "type": "Tax Deed"},
        "fields": {"active": "0", "scheduled": "37"},
    }


def test_a_name_in_a_file_of_bids_is_the_bidder_and_never_the_owner() -> None:
    (record,) = read_auction_file(
        "Adv #,Parcel #,Face Amount,Cert #,Rate,Bidder #,Name\n1,12-7,5,9,0.25%,77,LANTERN LLC\n", "FL"
    )
    assert "owner_name" not in record
    assert record["liens"] == [
        {"certificate_number": "9", "face_amount": 5.0, "interest_rate": 0.25, "holder": "LANTERN LLC"}
    ]
    (record,) = read_auction_file("Parcel,Name,Amount Due\n12-7,HERON IDA,5\n", "FL")
    assert record["owner_name"] == "HERON IDA"


def test_a_title_above_the_head_of_a_file() -> None:
    body = "Salt County 2024 Certificate Sale\n\nAdvNum,Parcel,Face Amount,WinningBid\n1,12-7,5.00,18.00\n"
    (item,) = read(body)["parcels"]
    assert item["parcel_id"] == "12-7"


def test_new_jersey_names_a_parcel_by_block_lot_and_qualifier() -> None:
    head = "Block,Lot,Qual,Owner,Location,Amount\n"
    items = read(head + '12,7.01,C0001,HERON IDA,12 ACORN LN,"$1,404.95"\n13,7,,OTTER JO,1 ELM,$5\n')["parcels"]
    assert [(item["parcel_id"], item["owner_name"]) for item in items] == [
        ("12/7.01/C0001", "HERON IDA"),
        ("13/7", "OTTER JO"),
    ]
