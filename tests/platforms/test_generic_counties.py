"""`generic` on counties of very different make: what is this parcel's comes out right, what is another's stays out."""

from __future__ import annotations

import pytest

from lienworker.platforms import Page, Record, Target
from lienworker.platforms.vendors.generic import PLATFORM


def parse(body: str) -> Record:
    return PLATFORM.parse(Page("http://county.example/", f"<html><body>{body}</body></html>".encode()), Target())


def rows(*said: tuple[str, str]) -> str:
    return "<table>" + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in said) + "</table>"


SAID = (("{id}", "12-7-004"), ("{owner}", "HERON IDA"), ("{place}", "12 ACORN LN"), ("{value}", "$5,000"))
WORDS = [
    {"id": "Parcel Number", "owner": "Taxpayer Name", "place": "Situs Address", "value": "Just Value"},
    {"id": "Parcel #", "owner": "Owner(s)", "place": "Physical Address", "value": "Appraised Value"},
    {"id": "PIN", "owner": "Owner of Record", "place": "Site Address", "value": "Total Market Value"},
    {"id": "Geo ID", "owner": "Current Owner", "place": "Property Location", "value": "Fair Market Value"},
    {"id": "Tax Map #", "owner": "Owner 1", "place": "911 Address", "value": "Total Appraised Value"},
    {"id": "Folio", "owner": "Title Holder", "place": "Location", "value": "Full Cash Value"},
    {"id": "Tax Key Number", "owner": "Primary Owner", "place": "Street Address", "value": "Estimated Market Value"},
    {"id": "APN", "owner": "Assessed Owner", "place": "Property Situs", "value": "Real Market Value"},
]
MARKUPS = {
    "bootstrap rows": "<div class='row'><div class='col-3'><strong>{name}</strong></div>"
    "<div class='col-9'>{text}</div></div>",
    "a list of spans": '<li><span class="label">{name}</span><span class="value">{text}</span></li>',
    "a card each": "<div class='card'><h5>{name}</h5><p>{text}</p></div>",
    "a label above a line": '<p class="field"><span class="lbl">{name}</span><br>{text}</p>',
    "keys and values": '<div class="p"><span class="p-key">{name}</span> <span class="p-val">{text}</span></div>',
    "capitals, never closed": "<TABLE><TR><TD><B>{name}:</B><TD>{text}</TABLE>",
    "a definition each": "<dl><dt>{name}:</dt><dd>{text}</dd></dl>",
    "nested tables": "<table><tr><td><table><tr><td>{name}</td></tr></table></td><td><table><tr><td>{text}</td></tr>"
    "</table></td></tr></table>",
}


@pytest.mark.parametrize("markup", MARKUPS)
@pytest.mark.parametrize("words", WORDS, ids=lambda words: words["id"])
def test_any_words_in_any_markup(words: dict[str, str], markup: str) -> None:
    body = "".join(MARKUPS[markup].format(name=name.format(**words), text=text) for name, text in SAID)
    record = parse(body)
    found = [record.get(name) for name in ("parcel_id", "owner_name", "property_address", "market_value")]
    assert found == ["12-7-004", "HERON IDA", "12 ACORN LN", 5000.0]


PARCEL = rows(("PIN", "12-7"), ("Owner", "HERON IDA"), ("Situs", "12 ACORN LN"), ("Market Value", "$5"))
OTHERS = {
    "related parcels above": "<h2>Related Parcels</h2><p>Parcel: 99-1</p><h2>Summary</h2>" + PARCEL,
    "nearby sales": PARCEL + "<h3>Nearby sales</h3><table><tr><th>Parcel</th><th>Owner</th><th>Sale Date</th></tr>"
    "<tr><td>55-1</td><td>CRANE BO</td><td>1/1/2020</td></tr>"
    "<tr><td>55-2</td><td>FINCH LEE</td><td>1/2/2020</td></tr></table>",
    "a history of owners above": "<h3>Owner History</h3><table><tr><th>Owner</th><th>Date</th></tr>"
    "<tr><td>CRANE BO</td><td>1/1/1999</td></tr></table>" + PARCEL,
    "the assessor's own name": "<div><h4>Assessor</h4><b>Name:</b> JANE CLERK<br><b>Address:</b> 1 COURT SQ</div>"
    + PARCEL,
    "a previous owner": rows(("Previous Owner", "CRANE BO"), ("Prior Parcel ID", "99-1")) + PARCEL,
    "who owns the site": "<div>Site Owner: Salt County Assessor</div>" + PARCEL,
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_said_of_others_is_not_said_of_this_parcel(other: str) -> None:
    record = parse(OTHERS[other])
    assert (record["parcel_id"], record["owner_names"]) == ("12-7", ["HERON IDA"])
    assert record["property_address"] == "12 ACORN LN"
    assert "parcels" not in record


def test_of_several_ids_below_a_title_of_other_parcels_none_is_taken() -> None:
    assert "parcel_id" not in parse("<h2>Related Parcels</h2><p>Parcel: 99-1</p>" + PARCEL)
    assert parse("<h2>Related Parcels</h2>" + PARCEL)["parcel_id"] == "12-7"


def test_who_bought_in_the_only_sale_is_not_said_to_own_it() -> None:
    sale = "<tr><th>Sale Date</th><th>Sale Price</th><th>Seller</th><th>Owner</th></tr>"
    sale += "<tr><td>1/1/2020</td><td>$1</td><td>CRANE BO</td><td>FINCH LEE</td></tr>"
    record = parse(rows(("PIN", "12-7"), ("Situs", "12 ACORN LN"), ("Market Value", "$5")) + f"<table>{sale}</table>")
    assert "owner_name" not in record
    assert record["sales"] == [{"date": "2020-01-01", "price": 1.0, "grantor": "CRANE BO", "grantee": "FINCH LEE"}]


def test_a_name_beside_the_id_of_an_owner() -> None:
    said = (("Property ID", "12345"), ("Owner ID", "77"), ("Name", "HERON IDA"), ("Mailing Address", "PO BOX 9"))
    assert parse(rows(*said))["owner_name"] == "HERON IDA"
    assert "owner_name" not in parse(rows(("Property ID", "12345"), ("Name", "SALT COUNTY"), ("Market Value", "$5")))


def test_a_town_below_the_mailing_address_belongs_to_it_and_one_below_the_situs_does_not() -> None:
    said = (("Parcel ID", "12-7"), ("Owner", "HERON IDA"), ("Site Address", "12 ACORN LN"), ("City, State", "SALT XX"))
    record = parse(rows(*said, ("Mailing Address", "PO BOX 9"), ("City, State, Zip Code", "MILLBROOK, XX, 00902")))
    assert record["owner_address"] == "PO BOX 9 MILLBROOK, XX, 00902"
    assert record["property_address"] == "12 ACORN LN"


def test_rows_without_a_label_go_on_with_the_owner_and_the_address_above() -> None:
    said = (("Parcel ID", "12-7"), ("Owner", "HERON IDA"), ("", "OTTER JO"), ("Mailing Address", "PO BOX 9"))
    record = parse(rows(*said, ("&nbsp;", "MILLBROOK XX 00902"), ("Total Value", "$5"), ("", "as of today")))
    assert record["owner_names"] == ["HERON IDA", "OTTER JO"]
    assert record["owner_address"] == "PO BOX 9 MILLBROOK XX 00902"
    assert record["market_value"] == 5.0


@pytest.mark.parametrize(
    ("shown", "field", "value"),
    [
        ("0.25 acres", "acres", 0.25),
        (".25 AC", "acres", 0.25),
        ("10,890 sq ft", "land_area_sqft", 10890.0),
        ("10890 SF", "land_area_sqft", 10890.0),
        ("10,890", None, None),
        ("60 x 120", None, None),
    ],
)
def test_a_lot_size_is_taken_in_the_unit_that_it_names(shown: str, field: str | None, value: float | None) -> None:
    record = parse(rows(("PIN", "12-7"), ("Owner", "HERON IDA"), ("Lot Size", shown), ("Land", "$5")))
    found = {name: record[name] for name in ("acres", "land_area_sqft") if name in record}
    assert found == ({field: value} if field else {})


def test_a_city_and_a_zip_below_the_owner_are_not_the_parcels() -> None:
    owner = "<h3>Owner Information</h3>" + rows(("Owner Name", "HERON IDA"), ("City", "FARAWAY"), ("Zip", "00905"))
    record = parse(rows(("PIN", "12-7"), ("Situs", "12 ACORN LN"), ("Land", "$5")) + owner)
    assert not {"city", "zip"} & record.keys()


def owners(*lines: str) -> tuple[list[str], str | None]:
    said = (("PIN", "12-7"), ("Owner", "<br>".join(lines)), ("Land", "$5"), ("Situs", "12 ACORN LN"))
    record = parse(rows(*said))
    return record.get("owner_names", []), record.get("owner_address")


@pytest.mark.parametrize(
    "name",
    [
        "OCEAN VIEW CONDO ASSN", "CITY OF MOUNTAIN VIEW", "ROAD MAP PRESS", "5 STAR HOLDINGS", "1ST BAPTIST CHURCH",
        "HERON IDA L/E", "HERON, IDA & OTTER, JO", "O'HERON-OTTER IDA", "HERON FAMILY TRUST DTD 05-01-15",
    ],
)  # fmt: skip
def test_names_that_look_like_something_else(name: str) -> None:
    assert owners(name, "PO BOX 9") == ([name], "PO BOX 9")


@pytest.mark.parametrize("text", ["View Map", "GIS Map", "Search by owner", "Street View", "C/O FINCH LEE"])
def test_texts_that_are_no_names(text: str) -> None:
    assert owners(text)[0] == []


def test_a_dated_trust_below_the_owner_is_a_co_owner_and_no_street() -> None:
    found = owners("HERON IDA", "HERON FAMILY TRUST DTD 05-01-15", "C/O FINCH LEE", "12 TRUST ST", "MILLBROOK XX 00902")
    assert found == (["HERON IDA", "HERON FAMILY TRUST DTD 05-01-15"], "C/O FINCH LEE 12 TRUST ST MILLBROOK XX 00902")


def test_signs_of_a_sum_stand_between_a_label_and_its_amount() -> None:
    signs = (("(+) Land Value:", "+", "$10"), ("(=) Market Value:", "=", "$100"), ("(=) Assessed Value:", "=", "$80"))
    table = "".join(f"<tr><td>{name}</td><td>{sign}</td><td>{value}</td></tr>" for name, sign, value in signs)
    record = parse(rows(("Property ID", "12345"), ("Owner", "HERON IDA")) + f"<table>{table}</table>")
    assert (record["land_value"], record["market_value"], record["assessed_value"]) == (10.0, 100.0, 80.0)


def test_a_zip_right_below_the_owner_is_the_owners_and_below_the_situs_the_parcels() -> None:
    owner, place, code = ("Owner Name", "HERON IDA"), ("Situs Address", "12 ACORN LN"), ("Zip", "00902")
    assert "zip" not in parse(rows(("PIN", "12-7"), owner, ("Address1", "PO BOX 9"), code, place))
    assert parse(rows(("PIN", "12-7"), owner, place, code))["zip"] == "00902"
