"""Cook's tax portal with its bills and tax sales, today's and the earlier one; MyPlace's list of hits. All invented."""

from __future__ import annotations

from lienworker.platforms import Page, Record, Target, default_registry

PIN = "01-01-999-006-0000"


def portal(start: str, **parts: str) -> Record:
    spans = "".join(f'<span id="{start}{name}">{text}</span>' for name, text in parts.items())
    page = Page("", f"<p>Cook County Property Tax Portal</p>{spans}".encode())
    parsed = default_registry().parse(page, Target())
    assert parsed.platform == "cook"
    return parsed.record


def test_the_portal_says_what_is_due_what_is_paid_and_what_was_sold() -> None:
    bill, sale = "TaxBillInfo_rptTaxBill_", "RedemptionInfo_rptRedemption_"
    record = portal(
        "ContentPlaceHolder1_",
        lblResultTitle=f"PIN: {PIN}",
        PropertyInfo_propertyMailingName="HERON IDA",
        PropertyInfo_propertyMailingCityStateZip="MILLBROOK XX 00902",
        **{f"{bill}taxBillYear_0": "2024:", f"{bill}taxBillAmount_0": "$6,512.33"},
        **{f"{bill}Panel1_0": "<a>Pay Online: $3,256.16 due 3/1</a>", f"{bill}taxBillYear_1": "2023:"},
        **{f"{bill}taxBillAmount_1": "$6,410.00", f"{bill}Panel3_1": "<a>Paid in Full</a>"},
        **{f"{sale}Label2_0": "2022:", f"{sale}Panel4_0": "<a>Taxes Sold 01/09/2024</a>"},
        **{f"{sale}Label2_1": "2021:", f"{sale}Panel8_1": "<a>No Tax Sale</a>"},
    )
    assert (record["parcel_id"], record["owner_name"]) == (PIN, "HERON IDA")
    assert record["taxes"] == [
        {"year": 2024, "amount": 6512.33, "due": 3256.16},
        {"year": 2023, "amount": 6410.0, "status": "Paid"},
    ]
    assert record["liens"] == [{"tax_year": 2022, "status": "Taxes Sold 01/09/2024"}]


def test_the_earlier_portal_had_other_ids() -> None:
    record = portal(
        "ctl00_PlaceHolderMain_ctl00_",
        propertyPIN=PIN,
        propertyAddress="12 ACORN LN",
        propertyMailingName="HERON IDA",
        propertyMailingAddress="PO BOX 9",
        propertyMailingCityStateZip="MILLBROOK XX 00902",
        rptTaxBill_ctl01_taxBillYear="2012",
        rptTaxBill_ctl01_taxBillAmount="$5.00",
    )
    assert (record["parcel_id"], record["property_address"]) == (PIN, "12 ACORN LN")
    assert (record["owner_name"], record["owner_address"]) == ("HERON IDA", "PO BOX 9 MILLBROOK XX 00902")
    assert record["taxes"] == [{"year": 2012, "amount": 5.0}]


def test_the_hits_of_a_search_are_a_list() -> None:
    items = "".join(
        f"<li><a onclick=\"selectParcel('0221304{n}')\">022-13-04{n}</a></li><li>{owner}</li><li>{n} ELM ST</li>"
        "<li>MILLBROOK, XX. 00902</li><li></li><li></li><li></li>"
        for n, owner in ((1, "HERON, IDA"), (2, "OTTER, JO"))
    )
    body = f'<a href="https://myplace.cuyahogacounty.gov/">MyPlace</a><ul id="AddressInfo">{items}</ul>'
    parsed = default_registry().parse(Page("", body.encode()), Target())
    assert parsed.platform == "cuyahoga"
    assert [(item["parcel_id"], item["owner_name"], item["property_address"]) for item in parsed.record["parcels"]] == [
        ("022-13-041", "HERON, IDA", "1 ELM ST MILLBROOK, XX. 00902"),
        ("022-13-042", "OTTER, JO", "2 ELM ST MILLBROOK, XX. 00902"),
    ]


def test_a_panel_of_the_portal_says_what_its_link_says() -> None:
    """What the link opens explains every case there is, `sold` among them, and brings its own script."""
    sale = "RedemptionInfo_rptRedemption_"
    panel = (
        "<script>$('#x').click(function () {{}});</script><a><span>{said}</span></a>"
        "<div style='display:none'>Taxes not sold or forfeited at the annual sale.</div>"
    )
    record = portal(
        "ContentPlaceHolder1_",
        lblResultTitle=f"PIN: {PIN}",
        PropertyInfo_propertyMailingCityStateZip="MILLBROOK XX 00902",
        **{f"{sale}Label2_0": "2024:", f"{sale}Panel9_0": panel.format(said="Tax Sale Has Not Occurred")},
        **{f"{sale}Label2_1": "2023:", f"{sale}Panel8_1": panel.format(said="No Tax Sale")},
        **{f"{sale}Label2_2": "2022:", f"{sale}Panel4_2": panel.format(said="Sold, Redeemed")},
    )
    assert record["liens"] == [{"tax_year": 2022, "status": "Sold, Redeemed"}]


BUILDING = """
<a href="https://myplace.cuyahogacounty.gov/">MyPlace</a><div class="propertylabel">PROPERTY DATA</div>
<div id="viewPropertyHeader"><ul><li>022-13-041</li><li>SELECT HOMES, LLC</li><li>12 ELM ST</li><li>MILLBROOK</li></ul>
</div><div class="row"><div class="generalInfoLabel col">Age</div><div class="generalInfoValue col">1900</div>
<div class="generalInfoLabelGreen col">Living Area 1</div><div class="generalInfoValueGreen col">1104</div></div>
<div class="row"><div class="generalInfoLabel col">Living Area Total</div><div class="generalInfoValue col">1948</div>
</div><div id="pageFooter">Routine maintenance is performed on Fridays.</div>
"""


def test_the_page_of_a_building_names_its_parcel_above_it() -> None:
    parsed = default_registry().parse(Page("", BUILDING.encode()), Target())
    record = parsed.record
    assert (parsed.platform, record["parcel_id"]) == ("cuyahoga", "022-13-041")
    assert (record["owner_name"], record["property_address"]) == ("SELECT HOMES, LLC", "12 ELM ST MILLBROOK")
    assert (record["year_built"], record["building_area_sqft"]) == (1900, 1948.0)


def test_the_bills_of_all_years_add_up_to_what_is_due() -> None:
    charges = [("Prior year tax - 2017", "50.00"), ("Prior year penalty - 2018", "7.00"), ("DELQ BALANCE", "57.00")]
    charges += [("1st half tax", "100.00"), ("1ST HALF BALANCE", "100.00"), ("2nd half tax", "100.00")]
    rows = "".join(f"<tr><td></td><td>{name}</td><td>${a}</td><td>$.00</td><td>${a}</td></tr>" for name, a in charges)
    head = "<tr><td>Taxset</td><td>Charge Type</td><td>Charges</td><td>Payments</td><td>Balance Due</td></tr>"
    body = (
        '<div class="TaxBillSummaryHeadingTable"><div class="Label">Parcel Number</div><div class="Data">022-13-041'
        '</div></div><div class="HeaderHighlight">2019 (pay in 2020) Charge and Payment Detail</div>'
        f'<table class="ChargeAndPaymentDetailTable">{head}<tr><td>Millbrook</td></tr>{rows}</table>'
        "<div><div>Balance Due</div><div class='Data row'>$257.00</div></div>"
    )
    record = default_registry().parse(Page("", body.encode()), Target(platform="cuyahoga")).record
    assert [(bill["year"], bill["due"]) for bill in record["taxes"]] == [(2019, 200.0), (2018, 7.0), (2017, 50.0)]
    assert sum(bill["due"] for bill in record["taxes"]) == record["total_due"] == 257.0
