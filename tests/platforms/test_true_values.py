"""Values that are never wrong: labels that come again, words of others in a value, names that look like menus.

Each test is a page with the trouble of a real one in another shape. All people and parcels are invented.
"""

from __future__ import annotations

from typing import Any

import pytest
from lxml import etree  # type: ignore[import-untyped]

from lienworker.platforms import Page, Target
from lienworker.platforms.core import clean
from lienworker.platforms.reading import people
from lienworker.platforms.reading.choosing import Said, chosen
from lienworker.platforms.reading.elements import text_of
from lienworker.platforms.reading.labels import meaning
from lienworker.platforms.vendors.generic import PLATFORM

HEAD = "<dl><dt>Parcel ID</dt><dd>12-7</dd><dt>Owner</dt><dd>HERON IDA</dd></dl>"


def parse(html: str) -> dict[str, Any]:
    return PLATFORM.parse(Page("http://county.example/", (HEAD + html).encode()), Target())


def rows(*pairs: tuple[str, str]) -> str:
    return "<table>" + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in pairs) + "</table>"


def test_scripts_styles_and_comments_are_no_text() -> None:
    cell = etree.HTML("<td>Sold<script>var sold = {};</script> <!-- not --><b>2019<style>b {}</style></b> by bid</td>")
    assert text_of(cell.find(".//td")) == "Sold 2019 by bid"


@pytest.mark.parametrize("said", ["No Tax Sale", "None", "N/A", "NONE ON RECORD", "Nothing due"])
def test_what_says_there_is_nothing_is_no_item(said: str) -> None:
    assert clean.stated(said) is None
    table = "<tr><th>Tax Year</th><th>Certificate</th><th>Status</th></tr>"
    lines = f"<tr><td>2021</td><td></td><td>{said}</td></tr><tr><td>2020</td><td>77</td><td>Redeemed</td></tr>"
    liens = parse(f"<table>{table}{lines}</table>")["liens"]
    assert liens == [{"tax_year": 2020, "certificate_number": "77", "status": "Redeemed"}]


def test_of_repeated_dues_the_first_does_not_win() -> None:
    halves = rows(("Amount Due", "$0.00"), ("Tax", "$0.00")) + rows(("Amount Due", "$410.50"), ("Tax", "$400.00"))
    record = parse(halves)
    assert not {"total_due", "tax_amount"} & record.keys()
    assert parse(halves + rows(("Total Amount Due", "$820.75")))["total_due"] == 820.75


def test_of_two_years_the_newest_counts_and_both_are_kept() -> None:
    older = "<p><u>2022 Certified Values</u></p>" + rows(("Just", "$90,000"), ("Assessed", "$80,000"))
    newer = "<p><u>2023 Working Values</u></p>" + rows(("Just", "$99,000"), ("Assessed", "$81,000"))
    for page in (older + newer, newer + older):
        record = parse(page)
        assert (record["market_value"], record["assessed_value"]) == (99000.0, 81000.0)
        assert sorted(entry["year"] for entry in record["values"]) == [2022, 2023]


def test_a_head_of_an_older_year_gives_way_to_the_newest_of_the_history() -> None:
    years = "<tr><th></th><th>2024</th><th>2023</th></tr><tr><td>Market Value</td><td>$120</td><td>$100</td></tr>"
    assert parse(rows(("Market Value", "$100")) + f"<table>{years}</table>")["market_value"] == 120.0


def test_a_head_that_is_newer_than_the_history_stays() -> None:
    years = "<tr><th></th><th>2024</th><th>2023</th></tr><tr><td>Market Value</td><td>$120</td><td>$100</td></tr>"
    assert parse(rows(("Market Value", "$150")) + f"<table>{years}</table>")["market_value"] == 150.0


def test_the_value_of_one_building_gives_way_to_that_of_the_year() -> None:
    years = "<tr><th></th><th>2024</th><th>2023</th></tr><tr><td>Building Value</td><td>$70</td><td>$65</td></tr>"
    years += "<tr><td>Market Value</td><td>$120</td><td>$100</td></tr>"
    record = parse(rows(("Building Value", "$40"), ("Market Value", "$120")) + f"<table>{years}</table>")
    assert record["building_value"] == 70.0


@pytest.mark.parametrize(
    ("said", "amount"),
    [
        ([], None),
        ([(5, "taxable value", None), (5, "taxable value", None)], 5),
        ([(5, "taxable value", None), (6, "taxable value", None)], None),
        ([(5, "taxable value", 2022), (6, "taxable value", 2023), (7, "taxable value", None)], 7),
        ([(5, "just value", None), (6, "appraised value", None)], 5),
        ([(5, "market value", None), (6, "market value", None), (11, "total market value", None)], 11),
        ([(9, "market value", None), (2, "total market value", None), (8, "market value", None)], None),
        ([(3, "assessed land value", None), (30, "land value", None)], 30),
    ],
)
def test_which_of_several_amounts_counts(said: list[tuple[float, str, int | None]], amount: float | None) -> None:
    assert chosen([Said(*one) for one in said]) == amount


def test_two_words_for_what_is_due_with_two_amounts_are_two_sums() -> None:
    assert chosen([Said(5, "amount due", None), Said(9, "balance", None)], any_word=False) is None


def test_a_number_of_buildings_is_no_value() -> None:
    assert "building_value" not in parse(rows(("Buildings", "2"), ("Market Value", "$120,000")))
    assert parse(rows(("Building", "$95"), ("Land", "1,200")))["building_value"] == 95.0


def test_one_line_of_land_is_not_the_parcel() -> None:
    line = "<tr><th>Line</th><th>Land Use</th><th>Unit Price</th><th>Just Value</th><th>Taxable Value</th></tr>"
    line += "<tr><td>1</td><td>0100 - GROVE</td><td>300</td><td>18,000</td><td>18,000</td></tr>"
    record = parse(rows(("Market Value", "$162,000")) + f"<table>{line}</table>")
    assert record["market_value"] == 162000.0
    assert "taxable_value" not in record


def test_a_fee_is_no_tax_but_a_bill_is() -> None:
    fee = "<tr><th>Drainage Unit</th><th>Roll Type</th><th>Tax Amount</th></tr>"
    assert "tax_amount" not in parse(f"<table>{fee}<tr><td>006</td><td>R</td><td>321.55</td></tr></table>")
    bill = "<tr><th>Tax Year</th><th>Bill Number</th><th>Tax Amount</th></tr>"
    found = parse(f"<table>{bill}<tr><td>2023</td><td>77</td><td>321.55</td></tr></table>")
    assert (found["tax_amount"], found["tax_year"]) == (321.55, 2023)


def test_exemptions_and_permits_by_year_are_no_taxes() -> None:
    for kind in ("Exemption", "Permit Number"):
        head = f"<tr><th>{kind}</th><th>Year</th><th>Amount</th></tr>"
        row = "<tr><td>Homestead 1</td><td>2014</td><td>$501.80</td></tr>"
        assert not {"taxes", "tax_amount"} & parse(f"<table>{head}{row}{row.replace('2014', '2015')}</table>").keys()


def test_an_area_of_zero_beside_another_was_not_measured() -> None:
    record = parse(rows(("Acres", "0"), ("Lot Size", "54,450 Sq. Ft")))
    assert (record.get("acres"), record["land_area_sqft"]) == (None, 54450.0)
    assert "acres" not in parse(rows(("Acreage", "0.00"), ("Lot Size", "7028")))


def test_a_list_of_neighbors_is_not_the_page() -> None:
    nearby = "<tr><th>Parcel Number</th><th>Property Address</th><th>Sale Date</th></tr>"
    nearby += "".join(f"<tr><td>12-{n}</td><td>{n} ELM ST</td><td>10/25/2022</td></tr>" for n in (81, 82))
    own = rows(("Parcel ID", "12-7"), ("Land Value", "$900"), ("Building Value", "$800"), ("Just Value", "$1,700"))
    page = Page("", f"{own}<table>{nearby}</table>".encode())
    record = PLATFORM.parse(page, Target())
    assert record["parcel_id"] == "12-7"
    assert "parcels" not in record


@pytest.mark.parametrize(
    "warning",
    ["Do not use for deeds!", "For the complete legal description see the deed", "Not to be used for conveyance"],
)
def test_a_warning_is_no_legal_description(warning: str) -> None:
    assert "legal_description" not in parse(rows(("Legal Description", warning)))
    assert parse(rows(("Legal Description", f"LOT 7 PB 3 (Note: {warning})")))["legal_description"] == "LOT 7 PB 3"


def test_the_text_of_a_link_is_not_part_of_a_value() -> None:
    situs = "12 ACORN LN, MILLBROOK<br><a>Go to Situs Address details on www.maps.example in a new tab</a>"
    assert parse(rows(("Situs Address", situs)))["property_address"] == "12 ACORN LN, MILLBROOK"
    assert parse(rows(("Site Address", "12 ACORN LN (View Map)")))["property_address"] == "12 ACORN LN"


def test_a_note_behind_the_id_does_not_hide_it() -> None:
    page = Page("", b"<div>Parcel ID <b>12-7-0050</b> (Card: 1 of 2)</div><div>Owner: <b>HERON IDA</b></div>")
    assert PLATFORM.parse(page, Target())["parcel_id"] == "12-7-0050"
    assert people.parcel_id("18-05-21-0580-0 (3585) HX HB") == "18-05-21-0580-0"
    assert people.internal_number("18-05-21-0580-0 (3585) WX") == "3585"
    assert people.parcel_id("18-05-21 (SEE PARENT PARCEL)") is None


def test_an_amount_with_words_behind_it_is_read_up_to_them() -> None:
    record = parse("<div>Just Value <span>$299,201</span> Ag Land $0 Land $113,792</div>")
    assert record["market_value"] == 299201.0
    assert "market_value" not in parse("<div>Just Value <span>2024</span> see the roll</div>")


@pytest.mark.parametrize(
    "name",
    [
        "MARTEN FAMILY TRUST DATED JUNE 30, 2021",
        "THE OTTER LIVING TRUST DTD 5/1/2015",
        "SELECT SERVICES GROUP CORP",
        "PRINT WORKS INC",
        "OCEAN VIEW HOLDINGS LLC",
    ],
)
def test_names_with_dates_or_words_of_menus_are_names(name: str) -> None:
    assert people.is_owner(name)
    record = PLATFORM.parse(Page("", rows(("Parcel ID", "12-7"), ("Owner", f"{name}<br>PO BOX 9")).encode()), Target())
    assert (record["owner_name"], record["owner_address"]) == (name, "PO BOX 9")


@pytest.mark.parametrize(
    "text",
    [
        "June 30, 2021", "07/25/2017", "As of January 1, 2021", "Click here for Trust", "Please select a trust",
        "Select", "View Map", "Print", "2021-06-30 TRUST",
    ],
)  # fmt: skip
def test_dates_and_menus_are_still_no_names(text: str) -> None:
    assert not people.is_owner(text)


def test_what_joins_a_name_to_the_next_is_no_part_of_it() -> None:
    assert people.owner_and_address(["HERON IDA &", "OTTER JO;", "PO BOX 9"]) == (
        ["HERON IDA", "OTTER JO"],
        ["PO BOX 9"],
    )
    assert people.name_of("ACORN TERRACE Fee Owner") == "ACORN TERRACE"
    assert people.name_of("HERON IDA (Owner)") == "HERON IDA"


@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("OTTERS, JO PO BOX 603 MILLBROOK, XX 00902", "PO BOX 603 MILLBROOK, XX 00902"),
        (". (ETAL) 3392 E 110 ST", "3392 E 110 ST"),
        ("12 ACORN LN", "12 ACORN LN"),
        ("MILLBROOK HOUSE", "MILLBROOK HOUSE"),
    ],
)
def test_the_name_before_an_address_is_cut_off(address: str, left: str) -> None:
    assert people.without_name(address) == left


def test_among_strangers_only_the_owners_name_is_cut_off() -> None:
    assert people.without_name("HERON IDA 12 ACORN LN", ["HERON IDA"]) == "12 ACORN LN"
    assert people.without_name("ACORN TOWERS 12 ELM ST", ["HERON IDA"]) == "ACORN TOWERS 12 ELM ST"


@pytest.mark.parametrize(
    ("label", "word"),
    [
        ("Total Value (Market)", "total market value"),
        ("Value (Assessed)", "total assessed value"),
        ("Legal Description (First 200 characters)", "legal description"),
        ("Owner (Previous)", "owner previous"),
        ("Tax Amount (2019)", "tax amount 2019"),
        ("Land Value (Assessed)", "land value assessed"),
    ],
)
def test_brackets_in_a_label_add_to_it_or_make_it_another(label: str, word: str) -> None:
    assert meaning(label) == word


def test_an_amount_may_have_a_footnote() -> None:
    assert (clean.money("*$244,530"), clean.money("$1,200 **"), clean.money("*")) == (244530.0, 1200.0, None)


def test_square_feet_beside_acres_are_the_lands() -> None:
    land = rows(("Square Feet", "13,740"), ("Acres", "0.315"))
    record = parse(land + rows(("Living Area", "1,948")))
    assert (record["land_area_sqft"], record["building_area_sqft"]) == (13740.0, 1948.0)
    assert parse(f"<h3>Land</h3>{rows(('Square Feet', '9,000'))}")["land_area_sqft"] == 9000.0
    assert parse(rows(("Square Feet", "1,948"), ("Year Built", "1999")))["building_area_sqft"] == 1948.0


def test_what_a_link_says_to_the_blind_is_not_the_book() -> None:
    head = "<tr><th>Sale Date</th><th>Book/Page</th></tr>"
    row = "<tr><td>07/25/2017</td><td>View the official records for Book 10347 / and Page 1784</td></tr>"
    assert parse(f"<table>{head}{row}{row.replace('2017', '2016')}</table>")["sales"][0]["book_page"] == "10347/1784"


def test_below_field_and_value_are_labels_and_values() -> None:
    table = "<tr><th>Attribute</th><th>Detail</th></tr><tr><td>Parcel Control Number</td><td>00-41-22</td></tr>"
    table += "<tr><td>Location Address</td><td>12 ACORN LN</td></tr><tr><td>Waterfront</td><td>No</td></tr>"
    record = PLATFORM.parse(Page("", f"<table>{table}</table>".encode()), Target())
    assert (record["parcel_id"], record["property_address"]) == ("00-41-22", "12 ACORN LN")
    assert record["fields"]["Waterfront"] == "No"


def test_a_table_of_owners_goes_on_with_names_and_address() -> None:
    table = "<tr><th>Owner(s)</th><th>Mailing Address</th><th>Actions</th></tr>"
    table += "<tr><td>OTTER JO</td><td>PO BOX 9</td><td>Change of Address</td></tr>"
    table += "<tr><td>OTTER MAX &amp;</td><td>MILLBROOK XX 00902</td><td></td></tr>"
    page = Page("", f"{rows(('Parcel ID', '12-7'))}<table>{table}</table>".encode())
    record = PLATFORM.parse(page, Target())
    assert (record["owner_names"], record["owner_address"]) == (
        ["OTTER JO", "OTTER MAX"],
        "PO BOX 9 MILLBROOK XX 00902",
    )


def test_an_owner_above_the_address_in_one_cell_and_a_link_in_the_head() -> None:
    table = "<tr><th>Ownership/Mailing Address <a>Change Address</a></th><th>Site Address</th></tr>"
    table += "<tr><td>OTTER, JO<br>OTTER, MAX<br>PO BOX 9<br>MILLBROOK XX</td><td>12 ACORN LN</td></tr>"
    page = Page("", f"{rows(('Parcel ID', '12-7'))}<table>{table}</table>".encode())
    record = PLATFORM.parse(page, Target())
    assert (record["owner_names"], record["owner_address"]) == (["OTTER, JO", "OTTER, MAX"], "PO BOX 9 MILLBROOK XX")
    assert record["property_address"] == "12 ACORN LN"


def test_the_id_of_an_element_names_what_no_label_does() -> None:
    names = "".join(f"<h2><span id='ctl00_rptOwners_ctl0{n}_lblOwnerName'>OTTER {n}</span></h2>" for n in "JM")
    old = "<span id='rptSales_ctl00_lblOwnerName'>FINCH OLD</span>"
    page = Page("", f"{rows(('Parcel ID', '12-7'), ('Just Value', '$5,000'))}{old}{names}".encode())
    assert PLATFORM.parse(page, Target())["owner_names"] == ["OTTER J", "OTTER M"]


@pytest.mark.parametrize(("said", "owner"), [("OTTER, JO; FINCH, MAX", "OTTER, JO; FINCH, MAX"), ("Fee Simple", None)])
def test_ownership_is_whose_or_how(said: str, owner: str | None) -> None:
    typed = f"<pre>Parcel ID:\n12-7\nOwnership:\n{said}\nOwner Type:\nMARRIED\nJust Value:\n$5,000</pre>"
    record = PLATFORM.parse(Page("", typed.encode()), Target())
    assert (record.get("owner_name"), record["market_value"]) == (owner, 5000.0)


def test_an_answer_of_a_service_is_read_by_what_is_around_its_values() -> None:
    answer = """{"folioNumber": "12-7", "landLines": [{"landUse": {"description": "GROVE"}, "acres": 9}],
        "owners": [{"Name": "OTTER JO", "share": 1}, {"Name": "OTTER MAX", "share": 1}],
        "previousOwners": [{"Name": "FINCH OLD", "x": 1}, {"Name": "FINCH B", "x": 2}],
        "siteAddress": [{"address": "12 ACORN LN", "city": "MILLBROOK"}], "landUse": {"description": "HOME"},
        "mailingAddress": {"addr1": "PO BOX 9", "city": "SALT", "zip": "00950"}, "building": 2}"""
    record = PLATFORM.parse(Page("", answer.encode()), Target())
    assert record["owner_names"] == ["OTTER JO", "OTTER MAX"]
    assert (record["property_address"], record["owner_address"]) == ("12 ACORN LN", "PO BOX 9 SALT 00950")
    assert (record["property_use"], record.get("acres"), record.get("building_value")) == ("HOME", None, None)
    assert record["city"] == "MILLBROOK"


def test_numbered_names_of_an_answer_go_on_with_each_other() -> None:
    answer = (
        '{"folioNumber": "12-7", "ownerName1": "OTTER JO", "ownerName2": "% FINCH LP", "situsAddress1": "12 ACORN LN",'
        '"mailingAddress1": "PO BOX 9", "mailingAddress2": "SALT XX 00950"}'
    )
    record = PLATFORM.parse(Page("", answer.encode()), Target())
    assert (record["owner_names"], record["owner_address"]) == (["OTTER JO"], "PO BOX 9 SALT XX 00950")
    assert record["property_address"] == "12 ACORN LN"


def test_a_millage_is_no_value_and_half_a_year_no_tax() -> None:
    assert parse(rows(("Taxable", "9.0514"), ("Taxable", "$2,184,000")))["taxable_value"] == 2184000.0
    halves = f"<h3>Half Year Charges</h3>{rows(('Gross Tax', '$59.99'))}<h3>Year</h3>"
    assert "tax_amount" not in parse(halves)
    assert parse(halves + rows(("Net Tax", "$119.98")))["tax_amount"] == 119.98


def test_a_transfer_told_in_pairs_is_a_sale_and_a_legal_text_goes_on_below() -> None:
    pairs = (("Legal Description", "LOT 193"), ("&nbsp;", "OF GLADE HEIGHTS"), ("Transfer Date", "APR-09-2021"))
    record = parse(rows(*pairs, ("Transfer Price", "$750,000")))
    assert record["legal_description"] == "LOT 193 OF GLADE HEIGHTS"
    assert record["sales"] == [{"date": "2021-04-09", "price": 750000.0}]
