"""Where on its page each value of a record stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry
from lienworker.platforms.catalog.provenance import MOST_ORIGINS, Origin, names_of, origins_guarded, origins_of

PAGES = Path(__file__).resolve().parents[1] / "fixtures" / "pages"
RECORDS = sorted(file for file in PAGES.iterdir() if file.name != "expected.json")
PAGE = """<html><body><script>var owner = "WREN ADA";</script>
<table><tr><td>Seller</td><td>WREN ADA</td></tr><tr><th>Owner</th><td>WREN ADA<br>12 JUNIPER LN<br>OLD FERRY</td></tr>
<tr><th>Just value</th><td><b>$123,400</b></td></tr><tr><td>Sold 07/25/2017</td><td>07/25/2017</td></tr>
<tr><th>Parcel: 00-12 (3585) HX</th></tr><tr><td>Pool</td><td>No</td></tr><tr><th>Homestead</th><td>No</td></tr>
</table></body></html>"""
RECORD: dict[str, Any] = {
    "parcel_id": "00-12",
    "owner_name": "WREN ADA",
    "owner_address": "12 JUNIPER LN OLD FERRY",
    "homestead": False,
    "market_value": 123400.0,
    "total_due": 7.0,
    "sales": [{"date": "2017-07-25"}],
    "fields": {"Owner": "WREN ADA"},
}


def found(record: dict[str, Any] = RECORD, page: str = PAGE) -> dict[str, Origin]:
    return {origin.field: origin for origin in origins_of(Page("", page.encode()), record)}


def test_a_value_has_its_path_and_its_text_as_it_stands() -> None:
    origin = found()["market_value"]
    assert (origin.part, origin.text, origin.places) == ("page", "$123,400", 1)
    tree = etree.fromstring(PAGE.encode(), etree.HTMLParser())
    assert tree.xpath(origin.path)[0].text == "$123,400"


def test_of_several_places_the_one_beside_its_label_is_taken() -> None:
    origin = found()["owner_name"]
    assert origin.path == "/html/body/table/tr[2]/td"
    assert origin.places == 2


def test_dates_lines_and_what_is_inside_of_more_are_found() -> None:
    origins = found()
    assert origins["sales[0].date"].text == "07/25/2017"
    assert origins["owner_address"].text == "12 JUNIPER LN"
    assert origins["owner_address"].places == 0
    assert origins["parcel_id"].text == "Parcel: 00-12 (3585) HX"


def test_an_answer_is_that_to_its_own_question() -> None:
    assert found()["homestead"].path == "/html/body/table/tr[7]/td"
    assert "homestead" not in found(page=PAGE.replace("Homestead", "Fireplace"))


def test_what_stands_nowhere_is_left_out_and_a_script_is_no_place() -> None:
    origins = found()
    assert "total_due" not in origins
    assert not any("script" in origin.path for origin in origins.values())
    assert "fields" not in origins


def test_places_in_json_and_in_text_have_their_names() -> None:
    data = {"results": [{"owner": "WREN ADA", "due": 7}]}
    origins = found({"owner_name": "WREN ADA", "total_due": 7.0}, json.dumps(data))
    assert [origin.path for origin in origins.values()] == ["$.results[0].owner", "$.results[0].due"]
    assert found({"owner_name": "WREN ADA"}, "Parcel,Owner\n1,WREN ADA\n")["owner_name"].path == "line 2"


def test_a_long_list_is_not_told_without_end() -> None:
    rows = "".join(f"<tr><td>{n}</td><td>OTTER NO {n}</td></tr>" for n in range(2000))
    record = {"parcels": [{"parcel_id": str(n), "owner_name": f"OTTER NO {n}"} for n in range(2000)]}
    assert len(found(record, f"<table>{rows}</table>")) == MOST_ORIGINS


def test_a_page_of_a_stranger_is_searched_under_limits() -> None:
    platform = default_registry().get("generic")
    page = Page("", PAGE.encode())
    assert origins_guarded(page, RECORD, platform) == origins_of(page, RECORD, names_of(platform))


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.name)
def test_id_owner_and_address_of_every_page_are_found_on_it(file: Path) -> None:
    page = Page("", file.read_bytes())
    try:
        parsed = default_registry().parse(page, Target())
    except PageError:
        return
    if parsed.platform in ("wvauditor", "realauction"):
        return  # their ids are put together from columns, and days have none
    labels = names_of(default_registry().get(parsed.platform))
    names = {origin.field for origin in origins_of(page, parsed.record, labels)}
    wanted = {name for name in ("parcel_id", "owner_name", "property_address") if name in parsed.record}
    assert wanted <= names
