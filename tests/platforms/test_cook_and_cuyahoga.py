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
