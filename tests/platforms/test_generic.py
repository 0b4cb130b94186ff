"""`generic` on counties it has never seen: any nesting, no ids, and never a wrong owner or parcel id."""

from __future__ import annotations

from typing import Any

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target
from lienworker.platforms.vendors.generic import PLATFORM

LAYOUTS = {
    "td pairs": "<table><tr><td>Parcel ID:</td><td>007-0012</td></tr><tr><td>Owner Name</td>"
    "<td>FENWAKE ADA</td></tr>"
    "<tr><td>Situs</td><td>12 ACORN LN</td></tr><tr><td>Just Value</td><td>$10,500</td></tr></table>",
    "four columns": "<table><tr><td>Parcel ID</td><td>007-0012</td><td>Owner</td><td>FENWAKE ADA</td></tr>"
    "<tr><td>Location</td><td>12 ACORN LN</td><td>Total Market Value</td><td>10,500</td></tr></table>",
    "th and td": "<table><tr><th>Parcel Number</th><td>007-0012</td></tr>"
    "<tr><th>Owner</th><td>FENWAKE ADA</td></tr><tr><th>Property Address</th>"
    "<td>12 ACORN LN</td></tr><tr><th>Market Value</th><td>$10,500.00</td></tr></table>",
    "definition list": "<dl><dt>PIN</dt><dd>007-0012</dd><dt>Owner(s)</dt><dd>FENWAKE ADA</dd>"
    "<dt>Site Address</dt><dd>12 ACORN LN</dd><dt>Appraised Value</dt><dd>$10,500</dd></dl>",
    "label and span": "<div><label>Parcel #</label><span>007-0012</span></div>"
    "<div><label>Owner Name:</label> "
    "<span>FENWAKE ADA</span></div><div><label>Property Location</label><span>12 ACORN LN</span></div>"
    "<div><label>Just Value</label><span>$10,500</span></div>",
    "div pairs, nested": "<div class=r><div><div><p>Parcel ID</p></div></div><div>"
    "<div><p>007-0012</p></div></div>"
    "</div><div class=r><div><b>Owner</b></div><div>FENWAKE ADA</div></div><div class=r>"
    "<div>Situs Address</div>"
    "<div><i>12 ACORN LN</i></div></div><div class=r><div>Market Value</div><div>$10,500</div></div>",
    "bold, then text": "<p><b>Parcel ID:</b> 007-0012<br><b>Owner:</b> FENWAKE ADA"
    "<br><b>Situs:</b> 12 ACORN LN<br>"
    "<b>Just Value:</b> $10,500</p>",
    "text with colons": "<p>Parcel ID: 007-0012</p><p>Owner: FENWAKE ADA</p><p>Property Address: 12 ACORN LN</p>"
    ""
    "<p>Just Value: $10,500</p>",
    "head above values": "<table><tr><th>Parcel ID</th><th>Owner</th></tr><tr><td>007-0012</td>"
    "<td>FENWAKE ADA</td></tr><tr><th>Location</th><th>Market Value</th></tr><tr>"
    "<td>12 ACORN LN</td><td>$10,500</td></tr></table>",
    "tables in tables": "<table><tr><td><table><tr><td>Parcel ID</td><td><table><tr>"
    "<td>007-0012</td></tr></table></td>"
    "</tr></table></td><td><table><tr><td>Owner</td><td><b>FENWAKE ADA</b><br>PO BOX 3"
    "<br>OLD FERRY, XX 00903</td></tr>"
    "<tr><td>Site</td><td>12 ACORN LN</td></tr><tr><td>Just Value</td>"
    "<td>$10,500</td></tr></table></td></tr></table>",
    "read-only inputs": "<form>Parcel ID: <input readonly value='007-0012'><br>"
    "Owner: <input disabled value='FENWAKE ADA'><br>Situs: <input readonly value='12 ACORN LN'>"
    "<br>Just Value: <input readonly value='$10,500'></form>",
    "plain text": "Parcel ID: 007-0012\nOwner:\nFENWAKE ADA\nSitus\n12 ACORN LN\nJust Value: $10,500\n",
    "json": '{"data": [{"PARCEL_ID": "007-0012", "ownerName": "FENWAKE ADA", "SITUS_ADDRESS": "12 ACORN LN",'
    ' "values": {"MARKET_VALUE": 10500.0}}]}',
}


def parse(html: str) -> dict[str, Any]:
    return PLATFORM.parse(Page("http://county.example/", html.encode()), Target())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_parcel_in_every_layout(layout: str) -> None:
    record = parse(LAYOUTS[layout])
    found = [record.get(name) for name in ("parcel_id", "owner_name", "property_address", "market_value")]
    assert found == ["007-0012", "FENWAKE ADA", "12 ACORN LN", 10500.0]


def with_parcel(more: str) -> dict[str, Any]:
    return parse(f"<html><body>{LAYOUTS['th and td']}{more}</body></html>")


def test_owner_co_owner_and_mailing_address_in_one_cell() -> None:
    cell = "FENWAKE ADA<br>FENWAKE BRAM &amp; CLEO<br>C/O LORNA<br>PO BOX 9<br>OLD FERRY, XX 00903"
    record = parse(f"<dl><dt>Parcel</dt><dd>12-3</dd><dt>Owner</dt><dd>{cell}</dd></dl>")
    assert record["owner_names"] == ["FENWAKE ADA", "FENWAKE BRAM & CLEO"]
    assert record["owner_address"] == "C/O LORNA PO BOX 9 OLD FERRY, XX 00903"


def test_an_empty_cell_is_not_filled_from_its_neighbour() -> None:
    record = parse(
        "<table><tr><td>Parcel ID</td><td>12-3</td></tr><tr><td>Owner</td><td>&nbsp;</td><td>SMITH 12</td>"
        "</tr><tr><td>Situs</td><td></td></tr><tr><td>Acres</td><td>0</td></tr><tr>"
        "<td>Land Value</td><td>$0</td></tr></table>"
    )
    assert "owner_name" not in record
    assert "property_address" not in record
    assert (record["acres"], record["land_value"]) == (0.0, 0.0)


def test_a_search_box_in_the_frame_gives_no_owner_and_no_parcel_id() -> None:
    frame = (
        "<form><label>Owner Name</label><input name=o> e.g. SMITH JOHN <label>Parcel ID</label><input name=p>"
        "<p>12-34-56 (without dashes)</p><button>Search</button></form>"
    )
    record = parse(f"<body>{frame}{LAYOUTS['th and td']}</body>")
    assert (record["parcel_id"], record["owner_name"]) == ("007-0012", "FENWAKE ADA")


@pytest.mark.parametrize("value", ["Click here to view", "$1,200.00", "01/02/2020", "Mailing Address", "123"])
def test_what_cannot_be_an_owner_is_left_out(value: str) -> None:
    record = parse(
        f"<dl><dt>Parcel ID</dt><dd>12-3</dd><dt>Situs</dt><dd>1 A ST</dd><dt>Owner</dt><dd>{value}</dd></dl>"
    )
    assert "owner_name" not in record


@pytest.mark.parametrize("value", ["not assigned", "$1,200.00", "1/2/2020", "see the map for parcel 12"])
def test_what_cannot_be_a_parcel_id_is_left_out(value: str) -> None:
    record = parse(
        f"<dl><dt>Parcel ID</dt><dd>{value}</dd><dt>Situs</dt><dd>1 A ST</dd><dt>Owner</dt><dd>FENWAKE ADA</dd>"
        "<dt>Acres</dt><dd>2</dd></dl>"
    )
    assert "parcel_id" not in record


@pytest.mark.parametrize("value", ["7/12/33", "0012-A 4", "L9NE4C 20 2 0310", "R0001", "0"])
def test_ids_of_all_shapes(value: str) -> None:
    record = parse(f"<dl><dt>Parcel ID</dt><dd>{value}</dd><dt>Situs</dt><dd>1 A ST</dd><dt>Acres</dt><dd>2</dd></dl>")
    assert record["parcel_id"] == value


def test_an_account_number_is_an_alternate_id() -> None:
    record = with_parcel("<p><b>Account Number:</b> 00042</p>")
    assert record["alternate_ids"]["account"] == "00042"
    assert record["parcel_id"] == "007-0012"


def test_values_by_year_down_and_across() -> None:
    down = (
        "<table><tr><td>Year</td><td>Land Value</td><td>Assessed Value</td></tr><tr><td>2024</td><td>$1</td><td>$2</td>"
    )
    across = "<table><tr><th></th><th>2023 Certified</th><th>2024 Working</th></tr><tr><td>+ Land Value</td><td>$3</td>"
    assert with_parcel(down + "</tr><tr><td>2023</td><td>$3</td><td>$0</td></tr></table>")["values"] == [
        {"year": 2024, "land": 1.0, "assessed": 2.0},
        {"year": 2023, "land": 3.0, "assessed": 0.0},
    ]
    assert with_parcel(across + "<td>$4</td></tr></table>")["values"] == [
        {"year": 2023, "kind": "certified", "land": 3.0},
        {"year": 2024, "kind": "working", "land": 4.0},
    ]


def test_taxes_liens_and_sales_are_told_apart_by_their_heads() -> None:
    record = with_parcel(
        "<table><tr><th>Tax Year</th><th>Amount</th><th>Date Paid</th></tr>"
        "<tr><td>2023</td><td>$12.50</td><td>11/30/2023</td></tr></table>"
        "<table><tr><th>Certificate #</th><th>Year</th><th>Face Amount</th><th>Redeemed</th></tr>"
        "<tr><td>0042</td><td>2019</td><td>$99.00</td><td></td></tr></table>"
        "<table><tr><th>Sale Date</th><th>Sale Price</th><th>Book/Page</th></tr>"
        "<tr><td>1/2/2003</td><td>$0</td><td>12/0345</td></tr></table>"
    )
    assert record["taxes"] == [{"year": 2023, "amount": 12.5, "paid_on": "2023-11-30"}]
    assert record["liens"] == [{"certificate_number": "0042", "tax_year": 2019, "face_amount": 99.0}]
    assert record["sales"] == [{"date": "2003-01-02", "price": 0.0, "book_page": "12/0345"}]


def test_a_list_of_parcels_gives_one_record_an_item() -> None:
    record = parse(
        "<table><tr><th>Parcel ID</th><th>Owner</th><th>Address</th></tr><tr><td>01</td><td>FENWAKE ADA</td>"
        "<td>1 A</td></tr><tr><td>02</td><td>DRUMLIN KIT</td><td>2 B</td></tr></table>"
    )
    assert [(item["parcel_id"], item["owner_name"]) for item in record["parcels"]] == [
        ("01", "FENWAKE ADA"),
        ("02", "DRUMLIN KIT"),
    ]
    assert "parcel_id" not in record


def test_every_pair_is_kept_as_shown() -> None:
    record = with_parcel(
        "<table><tr><td>Flood Zone:</td><td>X-5</td></tr><tr><td>Owner:</td><td>CORRIGAN</td></tr></table>"
    )
    assert record["fields"]["Flood Zone"] == "X-5"
    assert record["fields"]["Owner"] == "FENWAKE ADA"
    assert record["fields"]["Owner (2)"] == "CORRIGAN"


@pytest.mark.parametrize("html", ["<p>hello</p>", "<p>Owner: FENWAKE ADA</p>", "[]", "<p>Phone: 12</p><p>Fax: 13</p>"])
def test_a_page_without_useful_pairs_is_no_parcel(html: str) -> None:
    with pytest.raises(PageError) as error:
        parse(html)
    assert error.value.reason == "not_a_parcel"


def test_a_page_nested_beyond_reason_is_survived() -> None:
    assert parse("<div>" * 200 + LAYOUTS["th and td"])["parcel_id"] == "007-0012"
    with pytest.raises(PageError):  # the HTML parser itself gives up first
        parse("<div>" * 20_000 + LAYOUTS["th and td"])
