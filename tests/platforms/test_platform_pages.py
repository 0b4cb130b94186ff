"""Every platform on pages of its own shape, with invented people: recognised by content, and read in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry

PAGES = Path(__file__).resolve().parents[1] / "fixtures" / "pages"


def parse(name: str, **target: Any) -> Any:
    page = Page("http://county.example/page", (PAGES / name).read_bytes())
    return default_registry().parse(page, Target(**target))


def _paid_in_full(year: int, number: int, amount: float, day: str) -> dict[str, Any]:
    """An installment of Polk County that was paid to the last cent."""
    bill = {"year": year, "bill": f"Installment #0{number}", "amount": amount, "due": 0.0, "status": "Paid in Full"}
    return bill | {"paid": amount, "paid_on": day}


EXPECTED: dict[str, tuple[str, dict[str, Any]]] = {
    "qpublic.html": (
        "qpublic",
        {
            "parcel_id": "07-01-22-0000-0100",
            "alternate_ids": {"account": "00042"},
            "owner_name": "Fenwake Ada",
            "owner_names": ["Fenwake Ada", "Drumlin Kit"],
            "owner_address": "6132 Bittern Rd Millbrook, XX 00902",
            "property_address": "12 ACORN LN OLD FERRY",
            "legal_description": "LOT 3 & 4 BRAMBLE ADD",
            "acres": 2.5,
            "property_use": "VAC RES",
            "homestead": False,
            "values": [
                {
                    "year": 2023,
                    "land": 17400.0,
                    "building": 0.0,
                    "market": 17400.0,
                    "assessed": 17000.0,
                    "taxable": 12342.0,
                },
                {
                    "year": 2022,
                    "land": 16300.0,
                    "building": 0.0,
                    "market": 16300.0,
                    "assessed": 16000.0,
                    "taxable": 11220.0,
                },
            ],
            "sales": [
                {
                    "date": "1994-06-01",
                    "price": 7500.0,
                    "book_page": "180/687",
                    "grantor": "GALLOWAY INEZ",
                    "deed_type": "WARRANTY (WD)",
                },
                {"date": "1988-02-03", "price": 0.0, "book_page": "91/12", "deed_type": "QUIT CLAIM (QC)"},
            ],
            "taxable_value": 12342.0,
        },
    ),
    "beacon.html": (
        "qpublic",
        {
            "parcel_id": "0000.012.3400",
            "owner_name": "Hollowell Jude",
            "owner_address": "PO Box 7 Salt Creek, XX 00904",
            "property_address": "9 DAMSON ST",
            "legal_description": "E 40 FT LOT 9",
            "values": [
                {"year": 2024, "kind": "working", "land": 4000.0, "assessed": 9000.0},
                {"year": 2023, "kind": "certified", "land": 3900.0, "assessed": 8800.0},
            ],
            "taxes": [
                {"year": 2023, "bill": "000771", "amount": 120.1, "due": 0.0},
                {"year": 2022, "bill": "000770", "amount": 118.0, "due": 118.0},
            ],
        },
    ),
    "vgsi.html": (
        "vgsi",
        {
            "parcel_id": "975",
            "alternate_ids": {"account": "00774", "mblu": "409/ 28/ / /"},
            "owner_names": ["EVERMERE, ESME", "IVERSUND, FLINT"],
            "owner_address": "135 FERRY LANDING RD FARHAVEN, XX 00950",
            "property_address": "28 ELDERBERRY CT",
            "market_value": 202400.0,
            "assessed_value": 900.0,
            "year_built": 1920,
            "building_area_sqft": 3676.0,
            "bedrooms": 6,
            "acres": 19.9,
            "property_use": "1050 - 3 UNIT",
            "values": [{"year": 2020, "market": 202400.0, "land": 202400.0, "building": 0.0, "assessed": 900.0}],
            "sales": [
                {
                    "grantee": "EVERMERE, ESME",
                    "price": 0.0,
                    "book_page": "4299/0778",
                    "deed_type": "1A",
                    "date": "2017-07-25",
                },
                {
                    "grantee": "DRUMLIN, KIT",
                    "price": 150000.0,
                    "book_page": "2278/0025",
                    "deed_type": "1A",
                    "date": "1997-09-29",
                },
            ],
        },
    ),
    "tyler_profile.html": (
        "tyler",
        {
            "parcel_id": "J9NE4C 20 2       0310",
            "owner_name": "HOLLOWELL LORNA R",
            "owner_names": ["HOLLOWELL LORNA R", "HOLLOWELL JUDE"],
            "owner_address": "PO BOX 12 MILLBROOK, XX, 00902-3374",
            "property_address": "829 SPRING ST",
            "property_use": "110 - Single Family, Residential",
            "acres": 0.055,
            "homestead": True,
        },
    ),
    "tyler_sales.html": (
        "tyler",
        {
            "parcel_id": "00-12-3456",
            "owner_name": "BRAMBLE CLEO",
            "property_address": "1 DAMSON ST",
            "sales": [
                {
                    "date": "2019-05-08",
                    "price": 91000.0,
                    "grantor": "FENWAKE ADA",
                    "grantee": "BRAMBLE CLEO",
                    "book_page": "0512/0033",
                },
                {"date": "1999-01-02", "price": 1.0, "grantee": "FENWAKE ADA", "book_page": "0101/0007"},
            ],
            "taxes": [{"year": 2022, "amount": 512.0, "paid": 0.0, "due": 512.0}],
        },
    ),
    "floridapa.html": (
        "floridapa",
        {
            "parcel_id": "00-00-00-07777-000",
            "alternate_ids": {"internal": "4242"},
            "owner_name": "GALLOWAY INEZ J",
            "owner_address": "C/O BRAM 2344 SW BITTERN RD OLD FERRY, XX 00903",
            "property_address": "2344 SW BITTERN RD, OLD FERRY",
            "legal_description": "LOT 85 UNIT 20 THREE CREEKS ESTATES. TD 1273-1235",
            "acres": 0.918,
            "property_use": "VACANT (0000)",
            "year_built": 1982,
            "building_area_sqft": 1420.0,
            "values": [
                {
                    "year": 2023,
                    "kind": "certified",
                    "land": 14400.0,
                    "building": 0.0,
                    "market": 14400.0,
                    "assessed": 14000.0,
                    "taxable": 11713.0,
                },
                {
                    "year": 2024,
                    "kind": "working",
                    "land": 16000.0,
                    "building": 0.0,
                    "market": 16000.0,
                    "assessed": 15400.0,
                },
            ],
            "sales": [
                {"date": "2021-01-28", "price": 100.0, "book_page": "1429 / 153", "deed_type": "QC"},
                {"date": "2014-04-14", "price": 1900.0, "book_page": "1273 / 1235", "deed_type": "TD"},
            ],
        },
    ),
    "floridapa_no_certified.html": (
        "floridapa",
        {
            "parcel_id": "01-06-25-00-000-0999-0",
            "owner_name": "BLUE HERON LAND TRUST",
            "owner_address": "BOX 1 PLAZA 1 FARHAVEN, XX 00950",
            "legal_description": "COMM NE COR OF SEC RUN S 210 FT FOR POB",
            "acres": 0.146,
            "values": [
                {"year": 2024, "kind": "working", "land": 584.0, "market": 584.0, "assessed": 584.0, "taxable": 519.0}
            ],
        },
    ),
    "leepa.html": (
        "leepa",
        {
            "parcel_id": "10990011",
            "alternate_ids": {"strap": "18-43-24-C9-09999.0190"},
            "owner_name": "QUARRY HILL PARTNERS LP",
            "owner_address": "ATTN TAX DESK PO BOX 3234 FARHAVEN XX 00950",
            "property_address": "4015 NE 9TH AVE OLD FERRY XX 00903",
            "legal_description": "UNIT 87 BLK 5683 LOTS 19 + 20",
            "property_use": "131 - Single Family Residential, Canal",
            "bedrooms": 2,
            "bathrooms": 3.0,
            "values": [
                {
                    "year": 2024,
                    "kind": "certified",
                    "market": 33718.0,
                    "land": 33718.0,
                    "assessed": 24188.0,
                    "taxable": 24188.0,
                },
                {
                    "year": 1992,
                    "kind": "certified",
                    "market": 3530.0,
                    "land": 3530.0,
                    "assessed": 3530.0,
                    "taxable": 3530.0,
                },
            ],
            "sales": [{"price": 969000.0, "date": "2021-08-04", "book_page": "2021000258601", "deed_type": "05"}],
        },
    ),
    "collier.html": (
        "collier",
        {
            "parcel_id": "15999990002",
            "alternate_ids": {"map": "4A16", "strap": "112000   8   54A16"},
            "owner_name": "TALLGRASS HOLDINGS LLC",
            "owner_address": "4651 BITTERN RD OLD FERRY XX 00903",
            "property_address": "623 HERON DR, OLD FERRY 00903",
            "market_value": 2184000.0,
            "assessed_value": 2100000.0,
            "taxable_value": 2050000.0,
            "tax_year": 2025,
            "tax_amount": 19768.26,
            "values": [
                {"year": 2025, "kind": "working", "land": 2184000.0, "taxable": 2050000.0},
                {"year": 2024, "land": 2352000.0, "taxable": 0.0},
            ],
            "sales": [
                {"date": "2023-07-05", "price": 1800000.0, "book_page": "6266-2599"},
                {"date": "1972-05-01", "price": 0.0, "book_page": "452-254"},
            ],
        },
    ),
    "cook_assessor.html": (
        "cook",
        {
            "parcel_id": "01-01-999-006-0000",
            "property_address": "111 W RUSSET ST",
            "city": "MILLBROOK",
            "property_use": "202",
            "land_area_sqft": 5976.0,
            "market_value": 320000.0,
            "values": [
                {"year": 2025, "kind": "certified", "market": 320000.0, "assessed": 32000.0},
                {"year": 2024, "kind": "certified", "market": 310000.0, "assessed": 31000.0},
            ],
        },
    ),
    "cook_portal.html": (
        "cook",
        {
            "parcel_id": "01-01-999-006-0000",
            "owner_name": "ABERNOOK GRETA",
            "owner_address": "PO BOX 5 FARHAVEN, XX 00950",
            "property_address": "111 W RUSSET ST",
            "market_value": 320000.0,
            "assessed_value": 32000.0,
            "taxes": [{"year": 2024, "amount": 6512.33}, {"year": 2023, "amount": 6410.0}],
        },
    ),
    "cook_clerk.html": (
        "cook",
        {
            "parcel_id": "32-19-999-024-0000",
            "liens": [{"tax_year": 2021, "status": "2021 Annual Sale, Sold", "sale_date": "2024-01-09"}],
            "taxes": [
                {"year": 2021, "bill": "1st installment", "due": 83.69, "status": "Open"},
                {"year": 2021, "bill": "2nd installment", "due": 79.29, "status": "Open"},
                {"year": 2020, "bill": "2nd installment", "due": 72.95, "status": "Open"},
            ],
            "total_due": pytest.approx(235.93),
        },
    ),
    "cuyahoga.html": (
        "cuyahoga",
        {
            "parcel_id": "782-99-016",
            "owner_name": "CORRIGAN, HOLLIS",
            "owner_address": "PO BOX 603 FARHAVEN, XX 00950",
            "property_address": "21501 DAMSON AVE MILLBROOK,XX 00902",
            "market_value": 41200.0,
            "land_value": 8800.0,
            "assessed_value": 14420.0,
            "total_due": 4246.63,
            "tax_year": 2019,
            "tax_status": "Delinquent",
            "homestead": False,
            "liens": [{"status": "Cert. Sold"}],
            "taxes": [
                {"year": 2019, "amount": 2487.58, "paid": 0.0, "due": 2487.58},
                {"year": 2018, "amount": 1759.05, "paid": 0.0, "due": 1759.05},
            ],
        },
    ),
    "polk_card.html": (
        "polk_ia",
        {
            "parcel_id": "241/00999-067-914",
            "owner_names": ["BRAMBLE, BRAM", "BRAMBLE, CLEO"],
            "owner_address": "6324 ACORN CT MILLBROOK, XX 00902-2860",
            "property_address": "6324 ACORN CT",
            "assessed_value": 291600.0,
            "building_area_sqft": 2264.0,
            "year_built": 2004,
            "values": [
                {"year": 2011, "land": 51700.0, "building": 239900.0, "assessed": 291600.0},
                {"year": 2009, "land": 55300.0, "building": 248900.0, "assessed": 304200.0},
                {"year": 2007, "land": 55300.0, "building": 241700.0, "assessed": 297000.0},
                {"year": 2005, "land": 52100.0, "building": 208300.0, "assessed": 260400.0},
                {"year": 2004, "land": 34500.0, "building": 0.0, "assessed": 34500.0},
            ],
            "sales": [
                {
                    "grantor": "DRUMLIN, KIT",
                    "grantee": "BRAMBLE, BRAM",
                    "date": "2012-12-18",
                    "price": 272000.0,
                    "deed_type": "D/Deed",
                    "book_page": "14662/165",
                }
            ],
        },
    ),
    "polk_taxes.html": (
        "polk_ia",
        {
            "parcel_id": "241-00999-067-914",
            "owner_names": ["BRAMBLE BRAM", "BRAMBLE CLEO"],
            "owner_address": "PO BOX 77 MILLBROOK, XX 00902",
            "property_address": "6324 ACORN CT MILLBROOK, XX 00902-2860",
            "assessed_value": 291600.0,
            "taxable_value": 147990.0,
            "taxes": [
                {"year": 2012, "bill": "Installment #01", "amount": 2862.0, "due": 2862.0, "status": "Due"},
                _paid_in_full(2011, 2, 2841.0, "2012-03-19"),
                _paid_in_full(2011, 1, 2841.0, "2011-09-26"),
                _paid_in_full(2010, 2, 2816.0, "2011-03-28"),
                _paid_in_full(2010, 1, 2816.0, "2010-09-20"),
                _paid_in_full(2009, 2, 2790.0, "2010-03-22"),
                _paid_in_full(2009, 1, 2790.0, "2009-09-14"),
            ],
        },
    ),
    "mygovonline.json": (
        "mygovonline",
        {
            "parcel_id": "022699-000000-011040",
            "owner_name": "TALLGRASS HOLDINGS LLC",
            "owner_address": "4202 BITTERN CIR FARHAVEN XX",
            "property_address": "HWY 98 N OLD FERRY",
            "total_due": 1001.2,
            "tax_status": "Delinquent",
            "market_value": 71000.0,
            "taxes": [
                {"year": 2023, "bill": "1000059", "amount": 963.6, "due": 1001.2, "status": "Delinquent"},
                {
                    "year": 2022,
                    "bill": "1000058",
                    "amount": 855.02,
                    "paid": 1027.06,
                    "due": 0.0,
                    "status": "Paid",
                    "paid_on": "2024-03-31",
                },
            ],
            "liens": [
                {
                    "certificate_number": "0007",
                    "tax_year": 2022,
                    "face_amount": 968.36,
                    "interest_rate": 6.5,
                    "holder": "LANTERN TAX FUND 3 LLC",
                    "sale_date": "2023-06-01",
                    "status": "Redeemed",
                }
            ],
        },
    ),
    "taxsys.html": (
        "taxsys",
        {
            "parcel_id": "00999 011 000",
            "owner_name": "DRUMLIN KIT",
            "property_address": "21304 NW ACORN AVE OLD FERRY 00903",
            "total_due": 1402.1,
            "taxes": [
                {"year": 2023, "bill": "2023 Annual bill", "due": 1402.1, "status": "Unpaid"},
                {"year": 2022, "bill": "2022 Annual bill", "due": 0.0, "status": "Certificate #1187 redeemed"},
                {
                    "year": 2021,
                    "bill": "2021 Installment bill #1",
                    "due": 0.0,
                    "status": "Paid",
                    "paid": 1211.0,
                    "paid_on": "2021-06-27",
                },
            ],
            "liens": [{"certificate_number": "1187", "tax_year": 2022, "status": "Certificate #1187 redeemed"}],
        },
    ),
    "taxsys.txt": (
        "taxsys",
        {
            "parcel_id": "00999 011 000",
            "owner_name": "DRUMLIN KIT",
            "property_address": "21304 NW ACORN AVE OLD FERRY 00903",
            "total_due": 0.0,
            "taxes": [
                {"year": 2020, "bill": "2020 Installment bill #3", "status": "Upcoming"},
                {
                    "year": 2020,
                    "bill": "2020 Installment bill #2",
                    "due": 0.0,
                    "status": "Paid",
                    "paid": 1272.45,
                    "amount": 1272.45,
                    "paid_on": "2020-09-29",
                },
                {
                    "year": 2016,
                    "bill": "2016 Annual bill",
                    "due": 0.0,
                    "status": "Paid",
                    "paid": 5006.48,
                    "amount": 5006.48,
                    "paid_on": "2016-11-30",
                },
            ],
        },
    ),
    "arcgis_one.json": (
        "arcgis",
        {
            "parcel_id": "136999",
            "alternate_ids": {"pin": "136999001"},
            "owner_name": "FENWAKE ADA & BRAM",
            "owner_address": "308 ACORN ST OLD FERRY XX 00903",
            "property_address": "308 ACORN ST",
            "acres": 0.1377,
            "assessed_value": 24140.0,
            "market_value": 24140.0,
            "sales": [{"date": "2003-01-02"}],
        },
    ),
    "realauction_popup.html": (
        "realauction",
        {
            "parcel_id": "032899-050500-010031",
            "alternate_ids": {"alternate": "1028273", "advertising_number": "0001188", "certificate_id": "6263045"},
            "owner_name": "BRAMBLE CLEO",
            "owner_address": "625 W 17TH ST FARHAVEN , XX 00950",
            "property_address": "7TH ST W OLD FERRY, XX 00903",
            "land_value": 8780.0,
            "building_value": 0.0,
            "market_value": 8780.0,
            "assessed_value": 3054.0,
            "tax_year": 2020,
            "liens": [{"tax_year": 2020, "face_amount": 1557.43, "status": "Available"}],
        },
    ),
}
LISTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "polk_results.html": (
        "polk_ia",
        [
            {"parcel_id": "241/00999-950-006", "owner_name": "IVERSUND, KIT", "property_address": "9823 HERON DR"},
            {"parcel_id": "241/00999-950-006", "owner_name": "FENWAKE, JUDE"},
        ],
    ),
    "wv_handout.html": (
        "wvauditor",
        [
            {
                "parcel_id": "SALT CORP/0001/0012/0000/0000",
                "owner_name": "BRAMBLE CLEO ET UX",
                "liens": [{"certificate_number": "2022-C-000001"}],
                "auction": {"opening_bid": 440.57, "type": "Land Sale"},
            },
            {"owner_name": "DRUMLIN KIT", "auction": {"opening_bid": 0.0, "type": "Land Sale"}},
        ],
    ),
    "wv_certified.html": (
        "wvauditor",
        [
            {
                "owner_name": "TALLGRASS HOLDINGS",
                "liens": [
                    {
                        "certificate_number": "2022-C-000001",
                        "status": "REDEEMED 01/24/2023",
                        "redeemed_on": "2023-01-24",
                    }
                ],
            },
            {
                "owner_names": ["FENWAKE ADA &", "BRAM (SURV)"],
                "liens": [
                    {"certificate_number": "2022-C-000003", "holder": "HARROWGATE CAPITAL", "status": "CERTIFIED"}
                ],
                "auction": {"status": "Upcoming Land Sale 06/05/2023", "date": "2023-06-05"},
            },
        ],
    ),
    "arcgis_list.json": (
        "arcgis",
        [
            {"parcel_id": "0906399006000", "owner_name": "GALLOWAY, INEZ", "owner_address": "22500 N 27 ST MILLBROOK"},
            {"parcel_id": "0305399002000", "owner_name": "CORRIGAN, KIT", "assessed_value": 0.0},
        ],
    ),
    "realauction_list.html": (
        "realauction",
        [
            {
                "parcel_id": "21300999P000002000020U",
                "property_address": "2560 HERON RIVER RD OLD FERRY, XX- 00903",
                "assessed_value": 697636.0,
                "alternate_ids": {"auction_id": "1499999"},
                "auction": {
                    "date": "2026-06-05",
                    "status": "Auction Starts 06/05/2026 10:00 AM ET",
                    "type": "FORECLOSURE",
                    "case_number": "292023CA099999",
                },
            },
            {
                "parcel_id": "00-12",
                "auction": {"status": "Auction Status Redeemed", "type": "TAXDEED", "opening_bid": 5101.0},
            },
        ],
    ),
    "realauction_calendar.html": (
        "realauction",
        [
            {"auction": {"date": "2026-03-02", "type": "Foreclosure"}},
            {"auction": {"date": "2026-03-19", "type": "Tax Deed"}},
        ],
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_page_is_recognised_and_read_in_full(name: str) -> None:
    platform, expected = EXPECTED[name]
    parsed = parse(name)
    assert parsed.platform == platform
    assert {key: parsed.record.get(key) for key in expected} == expected
    assert parsed.record.get("fields")


@pytest.mark.parametrize("name", LISTS)
def test_a_list_gives_one_record_an_item_and_has_no_parcel_of_its_own(name: str) -> None:
    platform, expected = LISTS[name]
    parsed = parse(name)
    assert parsed.platform == platform
    assert "parcel_id" not in parsed.record
    found = [
        {key: item.get(key) for key in wanted} for item, wanted in zip(parsed.record["parcels"], expected, strict=True)
    ]
    assert found == expected


def test_the_list_says_when_there_is_more() -> None:
    assert parse("arcgis_list.json").record["fields"] == {"exceededTransferLimit": "true"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"geometryType": "esriGeometryPoint", "features": []}', "parcel_not_found"),
        (b'{"name": "Parcels", "geometryType": "esriGeometryPolygon", "fields": []}', "not_a_parcel"),
        (b'{"due": {"PPT": {"bills": []}}}', "parcel_not_found"),
        ((PAGES / "realauction_empty.html").read_bytes(), "parcel_not_found"),
        ((PAGES / "polk_unavailable.html").read_bytes(), "error_page"),
    ],
)
def test_what_is_no_parcel_says_why(body: bytes, reason: str) -> None:
    with pytest.raises(PageError) as error:
        default_registry().parse(Page("http://county.example/", body), Target())
    assert error.value.reason == reason


def test_the_same_engine_is_beacon_where_the_target_says_so() -> None:
    assert parse("beacon.html", platform="beacon").platform == "beacon"


@pytest.mark.parametrize("name", [*EXPECTED, *LISTS])
def test_half_a_page_is_a_record_or_a_reason_but_never_a_crash(name: str) -> None:
    body = (PAGES / name).read_bytes()
    registry = default_registry()
    platform = registry.for_page(Page("http://county.example/", body)).name
    reasons = set()
    for part in range(1, 20):
        try:
            registry.parse(Page("http://county.example/", body[: len(body) * part // 20]), Target(platform=platform))
        except PageError as error:
            reasons.add(error.reason)
    assert "parser_error" not in reasons
