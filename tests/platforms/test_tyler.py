"""iasWorld as counties of Ohio and the Carolinas configure it. All people and parcels are invented."""

from __future__ import annotations

import pytest

from lienworker.platforms import Page, Record, Target, default_registry


def datalet(number: int, title: str, rows: str) -> str:
    return (
        f'<div id="datalet_div_{number}"><table><tr><td class="DataletTitleColor">{title}</td></tr></table>'
        f'<table id="{title}">{rows}</table></div>'
    )


def sides(*rows: tuple[str, str]) -> str:
    return "".join(
        f'<tr><td class="DataletSideHeading">{name}</td><td class="DataletData">{value or "&nbsp;"}</td></tr>'
        for name, value in rows
    )


def tops(*rows: str) -> str:
    head, *body = (row.split("|") for row in rows)
    cells = [("DataletTopHeading", head), *(("DataletData", row) for row in body)]
    return "".join(
        "<tr>" + "".join(f'<td class="{kind}">{cell or "&nbsp;"}</td>' for cell in row) + "</tr>" for kind, row in cells
    )


def read(top: str, bottom: tuple[str, ...], *datalets: tuple[str, str]) -> Record:
    cells = "".join(f'<td class="DataletHeaderBottom">{text}</td>' for text in bottom)
    body = "".join(datalet(number, *said) for number, said in enumerate(datalets))
    page = f"""<table><tr id="datalet_header_row"><td><table><tr class="DataletHeaderTop"><td class="DataletHeaderTop">
    {top}</td></tr><tr class="DataletHeaderBottom">{cells}</tr></table></td></tr></table>{body}"""
    return default_registry().parse(Page("", page.encode()), Target(platform="tyler")).record


@pytest.mark.parametrize(
    "top",
    [
        "PARID: 12-7  004",
        "PARID: 12-7  004<br>JUR: 95",
        "PARID: 12-7  004<br>\n TAX YEAR: 2024",
        "ParcelID: 12-7  004<br>Map-Rt: 010-N001",
        "PARCEL ID:  12-7  004<br>MARKET AREA: 101R<br>HERON IDA",
        "Parcel Number: 12-7  004    ROLL: RP_OH",
        "<b>PARID: 12-7  004</b><br><span>NBHD: 1</span>",
    ],
)
def test_the_id_ends_where_the_next_line_of_the_banner_begins(top: str) -> None:
    record = read(top, ("HERON IDA", "12 ACORN LN"), ("Parcel", sides(("Class", "R"))))
    assert record["parcel_id"] == "12-7  004"


@pytest.mark.parametrize(
    "bottom",
    [
        ("PARCEL LOCATION: 12 ACORN LN", "NBHD CODE: 101"),
        ("ASSESSOR#: 09123", "ROLL: RP_OH", "12 ACORN LN", "STATUS: ACTIVE"),
        ("ROUTING NO: 12", "LOCATION: 12 ACORN LN", "TAX DISTRICT: SALT CREEK TWP"),
    ],
)
def test_other_labels_of_the_banner_are_nobody(bottom: tuple[str, ...]) -> None:
    owner = sides(("Name", "HERON IDA &amp;"), ("Name", "OTTER JO"), ("Name", ""), ("Mailing Address", "PO BOX 9"))
    record = read("PARID: 12-7", bottom, ("Owner", owner + sides(("City, State, Zip", "MILLBROOK XX 00902"))))
    assert record["owner_names"] == ["HERON IDA", "OTTER JO"]
    assert record["owner_address"] == "PO BOX 9 MILLBROOK XX 00902"
    assert record["property_address"] == "12 ACORN LN"
    assert "owner_name" not in read("PARID: 12-7", bottom, ("Parcel", sides(("Class", "R"))))


def test_ohio_with_two_mailing_addresses_and_its_values_below_a_title_with_the_year() -> None:
    owner = sides(
        ("Owner", "HERON IDA"), ("&nbsp;", "OTTER JO"), ("&nbsp;", ""), ("Owner Mailing /", "PO BOX 9"),
        ("Contact Address", "MILLBROOK XX 00902"), ("Site (Property) Address", "12 ACORN LN"),
        ("Legal Description", "LOT 7"), ("&nbsp;", "ACORN ADD"), ("Tax Bill Mailing", "BIG BANK NA"),
        ("&nbsp;", "PO BOX 961"),
    )  # fmt: skip
    worth = tops("|Land|Improvements|Total", "Base|$9|$80|$89", "TIF|$1|$10|$11", "Total|$10|$90|$100")
    taxes = tops("|Net Annual Tax|Total Paid", "|$2,000.00|$1,000.00")
    record = read(
        "ParcelID: 010-1", ("", ""), ("Owner", owner), ("2023 Auditor's Appraised Value", worth), ("Tax", taxes)
    )
    assert record["owner_names"] == ["HERON IDA", "OTTER JO"]
    assert record["owner_address"] == "PO BOX 9 MILLBROOK XX 00902"
    assert (record["property_address"], record["legal_description"]) == ("12 ACORN LN", "LOT 7 ACORN ADD")
    assert record["values"] == [{"year": 2023, "land": 10.0, "building": 90.0, "market": 100.0}]
    assert record["tax_amount"] == 2000.0


def test_values_named_by_their_percentage() -> None:
    rows = sides(("35% Land", "3,500"), ("35% Total", "35,000"), ("100% Land", "10,000"), ("100% Total", "100,000"))
    record = read("PARID: 1-2", ("HERON IDA", "12 ACORN LN"), ("Values", rows))
    assert (record["land_value"], record["market_value"], record["assessed_value"]) == (10000.0, 100000.0, 35000.0)


def test_an_owner_in_a_table_of_one_row_and_where_the_owner_lives() -> None:
    row = tops("Name 1|Name 2|Mailing Address|City|State|Zip", "HERON IDA|OTTER JO|PO BOX 9|FARAWAY|XX|00905")
    record = read("PARID: 1-2", ("", "12 ACORN LN"), ("Owner Details", row))
    assert record["owner_names"] == ["HERON IDA", "OTTER JO"]
    assert not {"city", "zip"} & record.keys(), "those are the owner's, not the parcel's"
    old = tops("Sale Date|Sale Price|Owner", "5/1/2020|$5|CRANE BO")
    assert "owner_name" not in read("PARID: 1-2", ("", "12 ACORN LN"), ("Sales History", old))


def test_a_ledger_of_taxes_with_its_sum_below() -> None:
    rows = tops(
        "Tax Year|Project|Original Charge|Payments|Amount Due",
        "2023|Real|$2,000.00|-$2,000.00|$0.00",
        "2022|Real|$1,900.00|$0.00|$1,900.00",
        "Total:||$3,900.00||$1,900.00",
    )
    assert read("PARID: 1-2", ("HERON IDA", "12 ACORN LN"), ("Tax History", rows))["taxes"] == [
        {"year": 2023, "amount": 2000.0, "paid": 2000.0, "due": 0.0},
        {"year": 2022, "amount": 1900.0, "paid": 0.0, "due": 1900.0},
    ]
