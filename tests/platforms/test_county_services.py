"""What the services and sites of single counties answer beside the usual, and what must not be made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry

PAGES = Path(__file__).resolve().parents[1] / "fixtures" / "pages"


def text(name: str) -> str:
    return (PAGES / name).read_text()


def parse(body: str, platform: str | None = None, url: str = "") -> dict[str, Any]:
    return default_registry().parse(Page(url, body.encode()), Target(platform=platform)).record


def reason(body: str, platform: str) -> str:
    with pytest.raises(PageError) as error:
        parse(body, platform)
    return error.value.reason


def test_a_roll_without_values_yet_is_none() -> None:
    record = parse(text("miamidade.json"))
    assert [roll["year"] for roll in record["values"]] == [2024, 2023]
    assert record["market_value"] == 261300.0


def test_an_area_or_a_room_that_the_service_does_not_know_is_absent() -> None:
    data = json.loads(text("miamidade.json"))
    data["PropertyInfo"] |= {"LotSize": 0, "BuildingHeatedArea": -1, "BedroomCount": -1, "YearBuilt": "Multiple"}
    record = parse(json.dumps(data))
    assert record["building_area_sqft"] == 1602.0
    assert not {"land_area_sqft", "bedrooms", "year_built"} & record.keys()


def test_sales_of_neighbours_are_no_parcels_of_the_page() -> None:
    record = parse(text("broward.json"))
    assert "parcels" not in record
    assert "504199010021" not in json.dumps(record)


def test_one_of_several_lines_of_land_is_not_the_land() -> None:
    data = json.loads(text("broward.json"))
    data["d"]["parcelInfok__BackingField"][0]["landCalcFact2"] = "4,050 SqFt"
    assert "land_area_sqft" not in parse(json.dumps(data))


def test_one_of_several_buildings_is_not_the_parcel() -> None:
    data = json.loads(text("hillsborough.json"))
    data["buildings"].append({"heatedArea": 400, "yearBuilt": 2001, "bedrooms": 1, "bathrooms": 1})
    assert not {"building_area_sqft", "year_built", "bedrooms"} & parse(json.dumps(data)).keys()
    page = text("pinellas.html").replace("</table></span>", "<tr><td>Year Built: <b>1990</b></td></tr></table></span>")
    assert "year_built" not in parse(page)


def test_values_are_the_countys_wherever_they_stand() -> None:
    data = json.loads(text("hillsborough.json"))
    data["valueSummary"].reverse()
    assert parse(json.dumps(data))["taxable_value"] == 120722.0


def test_several_accounts_are_a_list() -> None:
    data = json.loads(text("govhub.json"))
    data["results"][0]["hits"] *= 2
    assert [item["owner_name"] for item in parse(json.dumps(data))["parcels"]] == ["FENWAKE,JUDE & ADA"] * 2


def test_no_year_of_several_is_what_is_due_in_all() -> None:
    page = text("cooktreasurer.html")
    assert "total_due" not in parse(page)
    one = page.replace("lblCurrentTaxYear", "lblNobodysTaxYear")
    assert parse(one)["total_due"] == 821.21


def test_a_sheriffs_list_is_read_as_the_site_sends_it_too() -> None:
    url = "https://nowhere.sheriffsaleauction.ohio.gov/index.cfm?zaction=AUCTION&Zmethod=UPDATE"
    sent = json.dumps({"retHTML": text("sheriffsale.txt"), "rlist": "59999"})
    assert parse(sent, url=url)["parcels"] == parse(text("sheriffsale.txt"))["parcels"]


def test_the_day_of_an_auction_is_no_sale() -> None:
    assert "sales" not in parse(text("civilview_sale.html"))


@pytest.mark.parametrize(
    ("platform", "body", "expected"),
    [
        ("miamidade", '{"Completed": true, "Message": "", "PropertyInfo": null}', "parcel_not_found"),
        ("miamidade", "<html><p>Sorry</p></html>", "not_a_parcel"),
        ("broward", '{"d": {"parcelInfok__BackingField": []}}', "parcel_not_found"),
        ("hillsborough", '{"pin": null}', "parcel_not_found"),
        ("govhub", '{"results": [{"hits": []}]}', "parcel_not_found"),
        ("bisconsultants", '{"totalResults": 0, "resultsList": []}', "parcel_not_found"),
        ("civilview", "<html><table><tr><th>Sheriff #</th></tr></table></html>", "parcel_not_found"),
        ("patriot", "<html><p>Your session has timed out.</p></html>", "login_required"),
        ("propaccess", "<html><p>Property not found.</p></html>", "parcel_not_found"),
    ],
)
def test_nothing_found_is_told_apart(platform: str, body: str, expected: str) -> None:
    assert reason(body, platform) == expected


@pytest.mark.parametrize("platform", ["miamidade", "broward", "hillsborough", "govhub"])
@pytest.mark.parametrize("body", ["[]", "7", '"x"', '{"results": 1, "d": [], "PropertyInfo": []}', "null"])
def test_an_answer_of_another_shape_is_a_reason_and_no_crash(platform: str, body: str) -> None:
    page = Page("", body.encode(), "application/json")
    with pytest.raises(PageError) as error:
        default_registry().parse(page, Target(platform=platform))
    assert error.value.reason in ("parcel_not_found", "not_a_parcel")
