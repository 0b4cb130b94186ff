"""Known platforms as other counties show them: another order, other ids, other words. People are invented."""

from __future__ import annotations

import pytest

from lienworker.platforms import Page, Record, Target, default_registry


def read(platform: str, body: str) -> Record:
    return default_registry().parse(Page("", body.encode()), Target(platform=platform)).record


def tyler(banner: str, rows: str = "") -> Record:
    return read(
        "tyler",
        f"""<table><tr id="datalet_header_row"><td><table><tr class="DataletHeaderTop">
        <td class="DataletHeaderTop">PARID: 12-7 004</td></tr>{banner}</table></td></tr></table>
        <div id="datalet_div_0"><table><tr><td class="DataletTitleColor">Parcel</td></tr></table>
        <table id="Parcel">{rows}
        <tr><td class="DataletSideHeading">Class</td><td class="DataletData">R</td></tr></table>
        </div>""",
    )


def bottom(*texts: str, attribute: str = ' class="DataletHeaderBottom"') -> str:
    cells = "".join(f"<td{attribute}>{text}</td>" for text in texts)
    return f'<tr class="DataletHeaderBottom">{cells}</tr>'


@pytest.mark.parametrize(
    "banner",
    [
        bottom("BITTERN ADA,", "12 ACORN LN"),
        bottom("12 ACORN LN", "BITTERN ADA"),
        bottom("12 ACORN LN,", "BITTERN ADA,", attribute=""),
        bottom("&nbsp;", "BITTERN ADA", "12 ACORN LN"),
        bottom("OWNER: BITTERN ADA", "PARCEL LOCATION: 12 ACORN LN"),
        bottom("BITTERN ADA", "12 ACORN LN", attribute=' class="DataletHeaderBottom wide"'),
    ],
)
def test_tyler_tells_owner_and_place_apart_in_either_order(banner: str) -> None:
    record = tyler(banner)
    assert record["parcel_id"] == "12-7 004"
    assert record["owner_name"] == "BITTERN ADA"
    assert record["property_address"] == "12 ACORN LN"


@pytest.mark.parametrize("street", ["ACORN LN", "OLD FERRY RD", "E FERRY ST", "COUNTY HIGHWAY", "ACORN RD NW"])
def test_tyler_takes_no_street_without_a_number_for_an_owner(street: str) -> None:
    record = tyler(bottom(street, "BITTERN ADA"))
    assert (record["owner_name"], record["property_address"]) == ("BITTERN ADA", street)
    assert "owner_name" not in tyler(bottom(street))


def test_tyler_believes_the_datalet_where_the_banner_does_not_say_which_is_which() -> None:
    rows = (
        '<tr><td class="DataletSideHeading">Owner</td><td class="DataletData">HERON IDA</td></tr>'
        '<tr><td class="DataletSideHeading">Location</td><td class="DataletData">THE OLD MILL</td></tr>'
    )
    record = tyler(bottom("THE OLD MILL"), rows)
    assert (record["owner_name"], record["property_address"]) == ("HERON IDA", "THE OLD MILL")


BEACON = """<section id="ctlBodyPane_ctl00_mSection"><header><div class="title">Summary</div></header>
<div class="module-content"><div id="ctlBodyPane_ctl00_ctl01_dynamicSummary_divSummary">
<table class="tabular-data-two-column"><tr><th><strong>Parcel ID</strong></th><td><span>00-7-A</span></td></tr>
<tr><th><strong>Property Address</strong></th><td><span>12 ACORN LN<br>MILLBROOK, XX 00902</span></td></tr>
<tr><th><strong>Brief Tax Description</strong></th><td>LOT 7</td></tr></table></div></div></section>
<section id="ctlBodyPane_ctl02_mSection"><header><div class="title">Owners</div></header><div class="module-content">
<a id="ctlBodyPane_ctl02_ctl01_rptOwner_ctl00_sprOwnerName1_lnkUpmSearchLinkSuppressed_lnkSearch">HERON IDA</a>
<span id="ctlBodyPane_ctl02_ctl01_rptOwner_ctl00_lblOwnerAddress">OTTER JO<br>PO BOX 9<br>MILLBROOK, XX 00902</span>
</div></section>
<section id="ctlBodyPane_ctl05_mSection"><header><div class="title">Valuation</div></header><div class="module-content">
<table class="tabular-data" id="ctlBodyPane_ctl05_ctl01_grdValuation_grdYearData"><thead><tr><th></th><th>2024</th>
<th>2023</th></tr></thead><tbody><tr><th>+ Land Value</th><td>$1,000</td><td>$900</td></tr>
<tr><th>= Total Market Value</th><td>$5,000</td><td>$4,500</td></tr></tbody></table></div></section>
<section id="ctlBodyPane_ctl14_mSection"><header><div class="title">Tax History</div></header>
<div class="module-content"><table class="tabular-data" id="ctlBodyPane_ctl14_ctl01_gvwTaxHistory">
<tr><th>Tax Year</th><th>Tax Amount</th>
<th>Amount Paid</th><th>Balance Due</th></tr><tr><td>2023</td><td>$81.00</td><td>$0.00</td><td>$81.00</td></tr>
<tr><td>2022</td><td>$79.00</td><td>$79.00</td><td>$0.00</td></tr></table></div></section>"""


def test_beacon_with_a_summary_of_another_make_and_its_taxes() -> None:
    record = read("beacon", BEACON)
    assert (record["parcel_id"], record["owner_name"]) == ("00-7-A", "HERON IDA")
    assert record["owner_names"] == ["HERON IDA", "OTTER JO"]
    assert record["owner_address"] == "PO BOX 9 MILLBROOK, XX 00902"
    assert record["property_address"] == "12 ACORN LN MILLBROOK, XX 00902"
    assert record["values"] == [
        {"year": 2024, "land": 1000.0, "market": 5000.0},
        {"year": 2023, "land": 900.0, "market": 4500.0},
    ]
    assert record["taxes"] == [
        {"year": 2023, "amount": 81.0, "paid": 0.0, "due": 81.0},
        {"year": 2022, "amount": 79.0, "paid": 79.0, "due": 0.0},
    ]


def test_vgsi_of_a_town_with_book_and_page_apart_and_no_history() -> None:
    record = read(
        "vgsi",
        """<span id="MainContent_lblLocation">12 ACORN LN</span><span id="MainContent_lblPid">975</span>
        <span id="MainContent_lblGenOwner">HERON IDA</span><span id="MainContent_lblAddr1">OTTER HALL<br>PO BOX 9</span>
        <span id="MainContent_lblGenAssessment">$264,200</span><span id="MainContent_lblLndSize">0.22</span>
        <span id="MainContent_lblPrice">$0</span><span id="MainContent_lblSaleDate">08/29/2022</span>
        <span id="MainContent_lblBook">166</span><span id="MainContent_lblPage">15</span>
        <span id="MainContent_ctl02_lblYearBuilt">1890</span>""",
    )
    assert (record["owner_name"], record["acres"], record["year_built"]) == ("HERON IDA", 0.22, 1890)
    assert record["assessed_value"] == 264200.0
    assert record["sales"] == [{"date": "2022-08-29", "price": 0.0, "book_page": "166/15", "grantee": "HERON IDA"}]


def town(more: str = "", **spans: str) -> Record:
    shown = {"lblPid": "2202", "lblLocation": "12 ACORN LN", "lblGenOwner": "HERON IDA"} | spans
    return read("vgsi", "".join(f'<span id="MainContent_{name}">{text}</span>' for name, text in shown.items()) + more)


def test_vgsi_keeps_the_inner_spaces_of_a_map_and_takes_no_care_of_for_an_owner() -> None:
    record = town(lblMblu="020/&nbsp; 003/ 082/ /", lblAcctNum="00865", lblCoOwner="C/O FINCH LEE")
    assert record["alternate_ids"] == {"account": "00865", "mblu": "020/  003/ 082/ /"}
    assert record["owner_names"] == ["HERON IDA"]
    assert town(lblCoOwner="OTTER JO")["owner_names"] == ["HERON IDA", "OTTER JO"]


def test_vgsi_says_in_what_a_size_is_measured_and_has_the_first_of_several_buildings() -> None:
    size = '<dl><dt>Size (Sqr Feet)</dt><dd><span id="MainContent_lblLndSize">10,890</span></dd></dl>'
    buildings = "".join(
        f'<span id="MainContent_ctl{n:02}_lblYearBuilt">{year}</span>'
        f'<span id="MainContent_ctl{n:02}_lblBldArea">{area}</span>'
        for n, year, area in ((1, 1920, 3676), (2, 1980, 800))
    )
    record = town(size + buildings)
    assert record["land_area_sqft"] == 10890.0
    assert "acres" not in record
    assert (record["year_built"], record["building_area_sqft"]) == (1920, 3676.0)


def test_vgsi_of_a_town_that_tells_buildings_and_extra_features_apart() -> None:
    head = "".join(f"<th>{name}</th>" for name in ("Valuation Year", "Building", "Extra Features", "Land", "Total"))
    table = f"""<table id="MainContent_grdHistoryValuesAppr"><caption>Appraisal</caption><tr>{head}</tr>
    <tr><td>2022</td><td>$90</td><td>$5</td><td>$10</td><td>$105</td></tr></table>"""
    assert town(table)["values"] == [{"year": 2022, "land": 10.0, "building": 90.0, "market": 105.0}]


def test_a_tax_deed_item_whose_parcel_is_a_link_to_somewhere() -> None:
    rows = {
        "Auction Type:": "TAXDEED",
        "Case #:": "2024-77",
        "Certificate #:": "2021-14",
        "Opening Bid:": "$1,131.91",
        "Parcel ID:": '<a href="/x">16-74 2090</a>',
        "Property Address:": "12 ACORN LN",
        "": "MILLBROOK, XX- 00902",
        "Assessed Value:": "$9,000.00",
    }
    table = "".join(
        f'<tr><td class="AD_LBL">{name}</td><td class="AD_DTA">{value}</td></tr>' for name, value in rows.items()
    )
    item = f'<div id="AITEM_5" class="AUCTION_ITEM PREVIEW" aid="5"><table class="ad_tab">{table}</table></div>'
    (first, second) = read("realauction", item + item.replace("16-74 2090", "Property Appraiser"))["parcels"]
    assert first["parcel_id"] == "16-74 2090"
    assert first["property_address"] == "12 ACORN LN MILLBROOK, XX- 00902"
    assert first["assessed_value"] == 9000.0
    assert first["auction"] == {"type": "TAXDEED", "case_number": "2024-77", "opening_bid": 1131.91}
    assert "parcel_id" not in second, "the words of a link are no id"


def grizzly(facts: str, values: str) -> Record:
    return read(
        "floridapa",
        f"""<table class="parcelIDtable"><tr><td><b>03-5S-16-03411-000 (12345)</b></td></tr></table>
        <table class="parcelDetailsTable"><tr><td><table class="parcelDetails_insideTable">{facts}</table></td>
        <td><table class="parcelDetails_insideTable">{values}</table></td></tr></table>""",
    )


def test_an_older_floridapa_page_without_bodies_of_tables_and_with_counts_beside_its_values() -> None:
    facts = "<tr><td>Owner</td><td><b>HERON IDA</b><br>OTTER JO<br>PO BOX 9</td></tr>"
    facts += "<tr><td>Site</td><td>12 ELM ST</td></tr>"
    rows = {
        "Mkt Land Value": "$10", "Ag Land Value": "$0", "Building Value": "$90", "Just Value": "$100",
        "Assessed Value": "$95", "Total Taxable Value": "Cnty: $70 Other: $71 | Schl: $72",
    }  # fmt: skip
    values = "<tr><td colspan=3>2019 Certified Values</td></tr>" + "".join(
        f"<tr><td>{name}</td><td>cnt: (1)</td><td>{value}</td></tr>" for name, value in rows.items()
    )
    record = grizzly(facts, values)
    assert (record["parcel_id"], record["owner_names"]) == ("03-5S-16-03411-000", ["HERON IDA", "OTTER JO"])
    assert (record["owner_address"], record["property_address"]) == ("PO BOX 9", "12 ELM ST")
    assert record["values"] == [
        {
            "year": 2019,
            "kind": "certified",
            "land": 10.0,
            "building": 90.0,
            "market": 100.0,
            "assessed": 95.0,
            "taxable": 70.0,
        }
    ]
