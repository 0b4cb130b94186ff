"""qPublic and Beacon as counties of six states configure them. All people and parcels are invented."""

from __future__ import annotations

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Record, Target, default_registry


def module(number: int, title: str, body: str) -> str:
    return (
        f'<section id="ctlBodyPane_ctl{number:02}_mSection"><header class="module-header"><a><div '
        f'id="ctlBodyPane_ctl{number:02}_lblName" class="title">{title}</div></a></header>'
        f'<div class="module-content">{body}</div></section>'
    )


def read(*modules: str) -> Record:
    rows = (("Parcel Number", "12-7 C 002"), ("Location Address", "12 ACORN LN"))
    summary = "".join(
        f"<tr><th><strong>{name}</strong></th><td><div><span>{v}</span></div></td></tr>" for name, v in rows
    )
    first = module(0, "Summary", f'<table class="tabular-data-two-column"><tbody>{summary}</tbody></table>')
    page = Page("http://county.example/", (first + "".join(modules)).encode())
    record = default_registry().parse(page, Target(platform="beacon")).record
    assert (record["parcel_id"], record["property_address"]) == ("12-7 C 002", "12 ACORN LN")
    return record


def whose(record: Record) -> tuple[list[str], str | None]:
    assert record.get("owner_name") == next(iter(record.get("owner_names", ())), None)
    return record.get("owner_names", []), record.get("owner_address")


def person(number: int, kind: str, name: str, address: str) -> str:
    """One of a repeater, as in Ohio, Minnesota and Florida."""
    start = f"ctlBodyPane_ctl02_ctl01_rptOwner_ctl{number:02}"
    return (
        f'<div><span id="{start}_lblOwnerType"><strong>{kind}</strong><br></span>'
        f'<span id="{start}_sprOwnerName1_lnkUpmSearchLinkSuppressed_lblSearch">{name}</span><br>'
        f'<span id="{start}_lblOwnerAddress">{address}</span></div>'
    )


HERON = ("HERON IDA", "PO BOX 9<br>MILLBROOK XX 00902")
BANK = ("BIG BANK NA", "PO BOX 961<br>BIGTOWN XX 00999")


@pytest.mark.parametrize("others", ["Tax Payer", "Mailing Address", "Contract Buyer", "Lender"])
def test_who_pays_or_gets_the_mail_is_not_the_owner_in_either_order(others: str) -> None:
    for people in (((others, *BANK), ("Owner", *HERON)), (("Deed Holder", *HERON), (others, *BANK))):
        blocks = "".join(person(number, *somebody) for number, somebody in enumerate(people))
        assert whose(read(module(2, "Owners", blocks))) == (["HERON IDA"], "PO BOX 9 MILLBROOK XX 00902")


def test_a_taxpayer_is_taken_where_the_county_names_no_owner_but_a_mailbox_is_not() -> None:
    assert whose(read(module(2, "Owners", person(0, "Taxpayer", *HERON))))[0] == ["HERON IDA"]
    assert whose(read(module(2, "Owners", person(0, "Mailing Address", *BANK))))[0] == []


def test_several_owners_keep_their_names_and_the_first_address() -> None:
    blocks = person(0, "Owner", *HERON) + person(1, "Owner", "OTTER JO", "3 ELM ST<br>MILLBROOK XX 00902")
    assert whose(read(module(2, "Owners", blocks))) == (["HERON IDA", "OTTER JO"], "PO BOX 9 MILLBROOK XX 00902")


def test_georgia_has_a_second_name_apart_and_the_owner_of_january() -> None:
    start = "ctlBodyPane_ctl05_ctl01"
    block = f"""<div><span id="{start}_sprLblOwnerTitle_lblSuppressed"></span>
    <a id="{start}_sprLnkOwnerName1_lnkUpmSearchLinkSuppressed_lnkSearch">HERON IDA</a>
    <span id="{start}_sprLblOwnerName2_lblSuppressed"><br>OTTER JO</span>
    <span id="{start}_lblAddress1"><br>20 SLATE RD</span><span id="{start}_lblAddress2"></span>
    <span id="{start}_lblCityStZip"><br>MILLBROOK XX 00902</span></div>
    <div><span id="{start}_sprLblJanuaryOwner_lblSuppressed">January 1 Owner<br>CRANE BO</span></div>"""
    assert whose(read(module(5, "Owner", block))) == (["HERON IDA", "OTTER JO"], "20 SLATE RD MILLBROOK XX 00902")


def test_georgia_with_owner_and_address_in_a_heading_cell() -> None:
    start = "ctlBodyPane_ctl03_ctl01"
    table = f"""<table class="tabular-data-two-column"><tr><th>
    <span id="{start}_lnkOwnerName_lblSearch"> HERON IDA </span><span id="{start}_lblAddress"><br>20 SLATE RD</span>
    <span id="{start}_lblCityStateZip"><br>MILLBROOK, XX 00902</span>
    </th><td><span id="{start}_lblMultiowner">MULTIPLE OWNERS</span></td></tr></table>"""
    assert whose(read(module(3, "Owner", table))) == (["HERON IDA"], "20 SLATE RD MILLBROOK, XX 00902")


def holders(kind: str, title: str, *people: tuple[str, str, str]) -> str:
    """Iowa: a table each for deed holders, contract holders and mailing addresses."""
    start = f"ctlBodyPane_ctl01_ctl01_lst{kind}"
    rows = "".join(
        f'<tr><td><span id="{start}_ctl{n:02}_spr{kind}Name_lnkUpmSearchLinkSuppressed_lblSearch">{name}</span><br>'
        f'<span id="{start}_ctl{n:02}_lblAddress1">{street}</span><br>'
        f'<span id="{start}_ctl{n:02}_lblAddress3">{city}</span></td></tr>'
        for n, (name, street, city) in enumerate(people)
    )
    return f'<td><table id="{start}"><tr><td><strong>{title}</strong></td></tr>{rows}</table></td>'


def test_iowa_has_deed_holders_contract_holders_and_mailing_addresses_side_by_side() -> None:
    tables = (
        holders("Deed", "Deed Holder", ("HERON IDA", "12 ACORN LN", "MILLBROOK XX 00902"), ("OTTER JO", "", ""))
        + holders("Contract", "Contract Holder", ("FINCH LEE", "9 ELM ST", "BIGTOWN XX 00999"))
        + holders("Mailing", "Mailing Address", ("BIG BANK NA", "PO BOX 961", "BIGTOWN XX 00999"))
    )
    record = read(module(1, "Owners", f"<table><tr>{tables}</tr></table>"))
    assert whose(record) == (["HERON IDA", "OTTER JO"], "12 ACORN LN MILLBROOK XX 00902")


def test_a_module_of_owners_without_known_ids_is_read_below_its_headings() -> None:
    body = """<div>Mailing Address<br>BIG BANK NA<br>PO BOX 961</div><div>Deed Holder<br>HERON IDA<br>PO BOX 9</div>
    <div>Contract Holder<br>FINCH LEE<br>9 ELM ST</div>"""
    assert whose(read(module(1, "Owners", body))) == (["HERON IDA"], "PO BOX 9")


def grid(head: str, *rows: str) -> str:
    heads = "".join(f"<th>{name}</th>" for name in head.split("|"))
    body = "".join(
        "<tr><th>" + "</td><td>".join(row.split("|")).replace("</td>", "</th>", 1) + "</td></tr>" for row in rows
    )
    return f'<table class="tabular-data"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def test_georgia_shows_the_worth_and_the_assessed_part_under_the_same_heads() -> None:
    head = "Year|Property Class|LUC|Land|Building|Total"
    record = read(
        module(
            13, "Valuation (Appraised 100%)", grid(head, "2025|R3|101|$10,000|$90,000|$100,000", "2024|R3|101|$1|$8|$9")
        ),
        module(14, "Valuation (Assessed 40%)", grid(head, "2025|R3|101|$4,000|$36,000|$40,000")),
    )
    assert record["values"] == [
        {"year": 2025, "land": 10000.0, "building": 90000.0, "market": 100000.0, "assessed": 40000.0},
        {"year": 2024, "land": 1.0, "building": 8.0, "market": 9.0},
    ]
    assert (record["land_value"], record["market_value"], record["assessed_value"]) == (10000.0, 100000.0, 40000.0)


def test_an_assessed_part_told_by_columns_of_years_is_no_worth_either() -> None:
    rows = ("Land|$4|$3", "Building|$36|$33", "Total|$40|$36")
    record = read(module(14, "Assessed (40%)", grid("|2025|2024", *rows)))
    assert record["values"] == [{"year": 2025, "assessed": 40.0}, {"year": 2024, "assessed": 36.0}]
    assert not {"market_value", "land_value"} & record.keys()


def test_georgia_calls_the_sum_of_a_year_its_current_value() -> None:
    rows = ("|Previous Value|$89", "|Land Value|$10", "+|Improvement Value|$85", "=|Current Value|$95")
    record = read(module(4, "Valuation", grid("||2024", *rows)))
    assert record["values"] == [{"year": 2024, "land": 10.0, "building": 85.0, "market": 95.0}]


def test_ohio_has_both_percentages_in_one_table_below_a_named_column() -> None:
    rows = (
        "Land Value|$10,000|$9,000",
        "Improvements Value|$90,000|$80,000",
        "Total Value (Appraised 100%)|$100,000|$89,000",
        "Land Value|$3,500|$3,150",
        "Total Value (Assessed 35%)|$35,000|$31,150",
    )
    record = read(module(3, "Valuation", grid("Assessed Year|2024|2023", *rows)))
    assert record["values"] == [
        {"year": 2024, "land": 10000.0, "building": 90000.0, "market": 100000.0, "assessed": 35000.0},
        {"year": 2023, "land": 9000.0, "building": 80000.0, "market": 89000.0, "assessed": 31150.0},
    ]


def test_minnesota_values_by_assessed_year_and_bills_by_payable_year() -> None:
    values = ("EMV Improvement|$90|$80", "EMV Land|$10|$9", "EMV (Estimated Market Value) Total|$100|$89")
    bills = (
        "|Estimated Market Value|$100|$89|$80",
        "=|Taxable Market Value||$69|$61",
        "+|Net Taxes Due||$12.00|$11.00",
        "=|Total Taxes Due||$12.30|$11.30",
    )
    record = read(
        module(3, "Valuation - Assessment Year", grid("Assessed Year|2026|2025", *values)),
        module(4, "Taxation", grid("||2027 Payable|2026 Payable|2025 Payable", *bills)),
    )
    assert [entry["year"] for entry in record["values"]] == [2026, 2025]
    assert (record["market_value"], record["land_value"], record["building_value"]) == (100.0, 10.0, 90.0)
    assert record["taxes"] == [{"year": 2026, "amount": 12.3}, {"year": 2025, "amount": 11.3}]


def test_iowa_has_both_installments_in_one_row_and_a_blank_stays_with_its_half() -> None:
    rows = (
        "2024|March 2025<br>September 2024|$610<br>$611|No<br>Yes|<span></span><br>9/10/2024|0001<br>0002",
        "2023|March 2024<br>September 2023|$600<br>$601|Yes<br>Yes|3/11/2024<br>9/9/2023|0003<br>0004",
    )
    record = read(module(12, "Tax History", grid("Year|Due Date|Amount|Paid|Date Paid|Receipt", *rows)))
    assert record["taxes"][:2] == [
        {"year": 2024, "bill": "0001", "amount": 610.0, "status": "Unpaid"},
        {"year": 2024, "bill": "0002", "amount": 611.0, "status": "Paid", "paid_on": "2024-09-10"},
    ]
    assert len(record["taxes"]) == 4
    assert "tax_amount" not in record, "half of it is not what the year's taxes are"


def test_a_sale_with_two_lines_in_its_cells_is_one_sale() -> None:
    row = "6/1/2014|$7,500|WD<br>QC|FINCH LEE<br>FINCH MAE|HERON IDA<br>OTTER JO"
    (sale,) = read(module(11, "Sales", grid("Sale Date|Sale Price|Instrument|Grantor|Grantee", row)))["sales"]
    assert (sale["date"], sale["grantee"]) == ("2014-06-01", "HERON IDA OTTER JO")


def test_what_a_screen_reader_says_of_a_link_is_no_part_of_the_page() -> None:
    link = '<a href="#">180/687<span class="sr-only">opens in a new tab</span></a>'
    record = read(module(11, "Sales", grid("Sale Date|Sale Price|Book/Page", f"6/1/2014|$7,500|{link}")))
    assert record["sales"] == [{"date": "2014-06-01", "price": 7500.0, "book_page": "180/687"}]


def test_a_report_that_found_nothing_has_no_parcel_though_its_title_names_one() -> None:
    body = "<title>Beacon - Salt County, XX - Report: R0104</title><h2>No results match your search criteria.</h2>"
    page = Page("https://beacon.schneidercorp.com/Application.aspx?AppID=1&KeyValue=R0104", body.encode())
    with pytest.raises(PageError) as error:
        default_registry().parse(page, Target())
    assert error.value.reason == "parcel_not_found"


def test_a_page_of_qpublic_net_from_before_the_engine() -> None:
    body = """<table><tr><td class="owner_header">Owner Name</td><td class="owner_value">HERON IDA&nbsp;</td>
    <td class="owner_header">Today's Date</td><td class="owner_value">March 3, 2016&nbsp;</td></tr>
    <tr><td class="owner_header">Mailing Address</td><td class="owner_value">PO BOX 9&nbsp;</td>
    <td class="owner_header"><font>Parcel Number</font></td><td class="owner_value">0021 004&nbsp;</td></tr>
    <tr><td class="owner_header">&nbsp;</td><td class="owner_value">MILLBROOK, XX 00902</td>
    <td class="owner_header">Tax District</td><td class="owner_value">County</td></tr>
    <tr><td class="owner_header">Location Address</td><td class="owner_value">12 ACORN LN</td>
    <td class="owner_header">Acres</td><td class="owner_value">1.2</td></tr></table>"""
    page = Page("http://qpublic9.qpublic.net/ga_display_dw.php?county=ga_salt&KEY=0021", body.encode())
    parsed = default_registry().parse(page, Target())
    assert parsed.platform == "qpublic"
    record = parsed.record
    assert (record["parcel_id"], record["owner_name"]) == ("0021 004", "HERON IDA")
    assert (record["property_address"], record["acres"]) == ("12 ACORN LN", 1.2)


def test_a_list_of_results_gives_its_parcels_and_no_link_for_an_id() -> None:
    rows = "".join(
        f"<tr><td>{n}</td><td><a href='/x'>01-{n}</a></td><td>7{n}</td><td>HERON IDA</td><td>{n} ELM ST</td>"
        "<td>Map</td></tr>"
        for n in (1, 2)
    )
    head = (
        "<tr><th></th><th>Parcel ID</th><th>Alternate ID</th><th>Owner</th><th>Property Address</th><th>Map</th></tr>"
    )
    body = f'<section id="ctlBodyPane_ctl00_mSection"><table class="tabular-data">{head}{rows}</table></section>'
    record = default_registry().parse(Page("", body.encode()), Target(platform="beacon")).record
    assert [item["parcel_id"] for item in record["parcels"]] == ["01-1", "01-2"]
    assert record["parcels"][0]["alternate_ids"] == {"alternate": "71"}


def test_exemptions_by_year_are_no_bills_and_a_footnote_hides_no_value() -> None:
    exemptions = (
        "<table class='tabular-data'><thead><tr><th>Exemption</th><th>Year</th><th>Amount</th></tr></thead><tbody>"
        "<tr><th>Homestead</th><td>2013</td><td>$437.20</td></tr><tr><th>Homestead</th><td>2014</td><td>$501.80</td></tr>"
        "</tbody></table>"
    )
    rows = (("Land Value", "$10"), ("Total Value (Market)", "$30"), ("Total Taxable Value", "*$25"))
    values = "".join(f"<tr><td></td><th>{name}</th><td>{value}</td></tr>" for name, value in rows)
    valuation = f"<table class='tabular-data'><tr><td></td><td>Assessed Year</td><th>2025</th></tr>{values}</table>"
    record = read(module(1, "Homestead", exemptions), module(2, "Valuation", valuation))
    assert not {"taxes", "tax_amount", "tax_year"} & record.keys()
    assert record["values"] == [{"year": 2025, "land": 10.0, "market": 30.0, "taxable": 25.0}]
