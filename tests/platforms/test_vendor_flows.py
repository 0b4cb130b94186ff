"""The vendors' flows, walked against sites of their kind: all parts arrive, and make one record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lienworker.platforms import Page, Record, Target, default_registry
from lienworker.platforms.catalog.definitions import load_definition
from lienworker.platforms.catalog.lists import listed_parcels
from lienworker.platforms.flows import Done, Ended, Flow, can_walk
from lienworker.testing.county.pages import parcel_id
from lienworker.testing.serving import serving
from lienworker.testing.sites import AuctionSite, GuestSite, WebFormsSite
from tests.harness.replay import Exchange, ReplaySite
from tests.harness.walking import record_of, target_of, walk_all, walk_one

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "iasworld-county.toml"


def flow_of(target: Target) -> Flow:
    flow = default_registry().get(target.platform or "").flow_for(target)
    assert flow is not None
    return flow


def parts_of(target: Target) -> dict[str, Page]:
    done = walk_one(flow_of(target), target)
    assert isinstance(done, Done), done
    return dict(done.parts)


@pytest.mark.parametrize("opens_at_once", [True, False])
def test_a_parcel_of_iasworld_is_four_pages_and_one_record(opens_at_once: bool) -> None:
    site = WebFormsSite(base="/public.access", opens_at_once=opens_at_once)
    with serving(site):
        target = target_of(site.rows(1)[0])
        parts = parts_of(target)
    record = record_of(parts, target)
    assert list(parts) == ["profile", "values", "sales", "taxes"]
    assert (record["parcel_id"], len(record["values"]), len(record["taxes"])) == (parcel_id(1), 8, 8)
    assert record["owner_name"]
    assert record["sales"]


def test_iasworld_says_so_where_there_is_no_such_parcel() -> None:
    site = WebFormsSite()
    with serving(site):
        row = site.rows(1)[0] | {"parcel_id": "00-000-1"}
        end = walk_one(flow_of(target_of(row)), target_of(row))
    assert isinstance(end, Ended)
    assert (end.reason, end.retryable) == ("parcel_not_found", False)


def test_iasworld_uses_one_session_for_all_parcels_and_a_new_one_when_it_ends() -> None:
    lasting, ending = WebFormsSite(), WebFormsSite(end_every=3)
    # Each of the two ends is noticed at the disclaimer, which gives a stranger a session too.
    for site, opened in ((lasting, 1), (ending, 3 + 2)):
        with serving(site):
            targets = [target_of(row) for row in site.rows(8)]
            moves = walk_all(flow_of(targets[0]), targets)
        assert all(isinstance(move, Done) and len(move.parts) == 4 for move in moves)
        assert site.sessions_opened == opened


def test_a_county_on_iasworld_whose_addresses_differ_is_a_definition_of_a_few_lines(tmp_path: Path) -> None:
    written = EXAMPLE.read_text()
    assert len(written.splitlines()) < 25
    site = WebFormsSite(base="/public.access")
    with serving(site):
        (tmp_path / "county.toml").write_text(written.replace("https://records.juniper.example", site.url))
        county = load_definition(tmp_path / "county.toml", default_registry().get)
        target = Target(platform=county.name, parcel_id=parcel_id(1))
        flow = county.flow_for(target)
        assert flow is not None
        done = walk_one(flow, target)
    assert isinstance(done, Done), done
    record = county.parse_parts(done.parts, target)
    assert (record["parcel_id"], len(record["taxes"]), county.delay) == (parcel_id(1), 8, 4.0)


@pytest.mark.parametrize("by", ["account", "parcel_id"])
def test_an_account_of_eagleweb_has_its_documents(by: str) -> None:
    site = GuestSite(wants_token=False)
    with serving(site):
        row = site.rows(1)[0]
        if by == "parcel_id":
            del row["account"]
        target = target_of(row)
        parts = parts_of(target)
    record = record_of(parts, target)
    assert list(parts) == ["account", "document-1", "document-2"]
    assert (record["parcel_id"], len(record["values"])) == (parcel_id(1), 8)
    assert record["sales"]
    assert site.sessions_opened == 1


@pytest.mark.parametrize("items", [1, 10, 15, 20, 37])
def test_a_day_of_auctions_is_read_to_its_last_page_and_no_further(items: int) -> None:
    site = AuctionSite(items_a_day=items)
    with serving(site):
        target = target_of(site.rows(100)[0])
        parts = parts_of(target)
    pages = -(-items // 10)
    assert list(parts) == ["items", *(f"more-{n}" for n in range(1, pages))]
    assert len(site.arrivals) == 1 + pages + 1  # the preview, the pages, and the last one again
    found = record_of(parts, target)["parcels"]
    assert [item["parcel_id"] for item in found] == [parcel_id(n) for n in range(1, items + 1)]
    auction = found[-1]["auction"]
    assert (auction["date"], auction["case_number"]) == ("2026-03-05", f"2026-TD-{items:05d}")
    assert auction["opening_bid"] > 0


def test_the_address_of_a_days_preview_says_enough() -> None:
    site = AuctionSite(items_a_day=12)
    with serving(site):
        target = Target("realauction", url=site.preview_url(next(iter(site.days))))
        assert len(record_of(parts_of(target), target)["parcels"]) == 12


def test_a_day_without_auctions_is_told_from_a_session_that_is_over() -> None:
    site = AuctionSite(items_a_day=15, end_every=12)
    with serving(site):
        empty = target_of(site.rows(100)[0] | {"auction_date": "01/01/2026"})
        assert (walk_one(flow_of(empty), empty)).reason == "parcel_not_found"  # type: ignore[union-attr]
        day = target_of(site.rows(100)[0])
        lost = walk_one(flow_of(day), day)
    assert isinstance(lost, Ended)
    assert lost.reason == "session_lost"


def test_all_days_of_auctions_share_a_session_as_long_as_it_lasts() -> None:
    for site, opened in ((AuctionSite(days=6), 1), (AuctionSite(days=6, end_every=20), 6)):
        with serving(site):
            targets = [target_of(row) for row in site.rows(100)]
            moves = walk_all(flow_of(targets[0]), targets)
        assert all(isinstance(move, Done) and len(move.parts) == 2 for move in moves)
        assert site.sessions_opened <= opened


def test_the_calendar_of_an_auction_site_is_a_list_of_days() -> None:
    site = AuctionSite(days=3)
    with serving(site):
        target = Target(platform="realauction", extra={"base_url": site.url})
        parts = parts_of(target)
    days = record_of(parts, target)["parcels"]
    assert [day["auction"]["date"] for day in days] == ["2026-03-05", "2026-03-12", "2026-03-19"]


PAGES = Path(__file__).resolve().parents[1] / "fixtures" / "pages"
_CONTROL = "ctl00$ctl00$PrimaryPlaceHolder$ContentPlaceHolderMain$Control$"
_MAIN = "ctl00$ctl00$PrimaryPlaceHolder$ContentPlaceHolderMain$"


def fixture(name: str) -> bytes:
    return (PAGES / name).read_bytes()


def replayed(platform: str, parcel: str, exchanges: list[Exchange], **extra: str) -> tuple[dict[str, Page], Record]:
    """Walk the platform's flow over these exchanges, all of them and no other; return the parts and their record."""
    site = ReplaySite(exchanges)
    with serving(site):
        target = Target(platform=platform, parcel_id=parcel, extra={"base_url": site.url, **extra})
        done = walk_one(flow_of(target), target)
    assert isinstance(done, Done), (done, site.refused)
    assert site.is_over
    return dict(done.parts), record_of(done.parts, target)


def test_a_card_of_patriot_is_the_frame_of_the_account_that_the_session_opened() -> None:
    parts, record = replayed(
        "patriot",
        "012-A-0003",
        [
            Exchange(
                "POST",
                "/SearchResults.asp",
                '<a href="Summary.asp?AccountNumber=9903" target="_top">012-A-0003</a>',
                sent={"SearchParcel": "012-A-0003", "SearchSubmitted": "yes"},
            ),
            Exchange("GET", "/Summary.asp?AccountNumber=9903", "<frameset><frame src='summary-bottom.asp'></frameset>"),
            Exchange("GET", "/summary-bottom.asp", fixture("patriot.html")),
        ],
    )
    assert list(parts) == ["card"]
    assert (record["parcel_id"], record["owner_name"]) == ("012-A-0003", "HOLLOWELL JUDE")


def test_patriot_needs_no_search_for_an_account_that_is_known() -> None:
    exchanges = [
        Exchange("GET", "/Summary.asp?AccountNumber=9903", "<frameset></frameset>"),
        Exchange("GET", "/summary-bottom.asp", fixture("patriot.html")),
    ]
    assert replayed("patriot", "012-A-0003", exchanges, account="9903")[1]["year_built"] == 1952


@pytest.mark.parametrize("words", ["Either no search has been executed", "Your session has timed out."])
def test_patriot_says_that_its_session_is_over(words: str) -> None:
    site = ReplaySite([], lost=f"<p>{words}</p>")
    with serving(site):
        target = Target(platform="patriot", parcel_id="1", extra={"base_url": site.url})
        end = walk_one(flow_of(target), target)
    assert isinstance(end, Ended)
    assert end.reason == "session_lost"


def test_the_bills_of_munis_are_searched_for_and_the_first_is_opened() -> None:
    search = (
        '<form id="aspnetForm" method="post" action="Default.aspx?mode=new">'
        '<input type="hidden" name="__VIEWSTATE" value="s">'
        f'<input name="{_CONTROL}ParcelIdSearchFieldLayout$ctl01$ParcelIDTextBox"><input name="{_CONTROL}Other">'
        f'<input type="submit" name="{_CONTROL}FormLayoutItem7$ctl01$Button1" value="Search"></form>'
    )
    parts, record = replayed(
        "munis",
        "R0021-003",
        [
            Exchange("GET", "/citizens/RealEstate/Default.aspx?mode=new", search),
            Exchange(
                "POST",
                "/citizens/RealEstate/Default.aspx?mode=new",
                "",
                sent={
                    f"{_CONTROL}ParcelIdSearchFieldLayout$ctl01$ParcelIDTextBox": "R0021-003",
                    f"{_CONTROL}Other": "",
                    f"{_CONTROL}FormLayoutItem7$ctl01$Button1": "Search",
                    "__VIEWSTATE": "s",
                },
                moved_to="/citizens/RealEstate/ParcelBrowse.aspx",
            ),
            Exchange("GET", "/citizens/RealEstate/ParcelBrowse.aspx", fixture("munis_bills.html")),
            Exchange(
                "POST",
                "/citizens/RealEstate/ParcelBrowse.aspx",
                "",
                sent={"__EVENTTARGET": f"{_MAIN}BillsGridView$ctl02$ViewBillLinkButton", "__VIEWSTATE": "browse"},
                moved_to="/citizens/RealEstate/ViewBill.aspx",
            ),
            Exchange("GET", "/citizens/RealEstate/ViewBill.aspx", fixture("munis_bill.html")),
            Exchange("GET", "/citizens/RealEstate/ViewPayments.aspx", "<p>No payments</p>"),
        ],
    )
    assert list(parts) == ["bills", "bill", "payments"]
    assert (record["parcel_id"], record["total_due"]) == ("R0021-003", 412.5)
    assert {bill["year"] for bill in record["taxes"]} == {2023, 2024}


_PACS_SEARCH = (
    '<form id="propertySearch" method="post" action="PropertySearch.aspx?cid=9">'
    '<input type="hidden" name="__VIEWSTATE" value="v"><input name="propertySearchOptions:searchText">'
    '<input name="propertySearchOptions:ownerName">'
    '<input type="submit" name="propertySearchOptions:search" value="Search"></form>'
)


def test_a_property_of_propaccess_is_one_page_where_the_district_allows_it() -> None:
    exchanges = [
        Exchange("GET", "/clientdb/PropertySearch.aspx?cid=9", _PACS_SEARCH),
        Exchange("GET", "/clientdb/Property.aspx?cid=9&prop_id=23699", fixture("propaccess.html")),
    ]
    parts, record = replayed("propaccess", "23699", exchanges, cid="9")
    assert (list(parts), record["market_value"]) == (["property"], 120000.0)


def test_propaccess_searches_first_where_the_district_wants_that() -> None:
    row = '<tr><td><a href="Property.aspx?prop_id=23699">View Details</a></td></tr>'
    results = f'<table id="propertySearchResults_resultsTable">{row}</table>'
    exchanges = [
        Exchange("GET", "/clientdb/PropertySearch.aspx?cid=9", _PACS_SEARCH),
        Exchange("GET", "/clientdb/Property.aspx?cid=9&prop_id=23699", _PACS_SEARCH),
        Exchange(
            "POST",
            "/clientdb/PropertySearch.aspx?cid=9",
            "",
            sent={
                "propertySearchOptions:searchText": "23699",
                "propertySearchOptions:ownerName": "",
                "propertySearchOptions:search": "Search",
                "__VIEWSTATE": "v",
            },
            moved_to="/clientdb/SearchResults.aspx",
        ),
        Exchange("GET", "/clientdb/SearchResults.aspx", results),
        Exchange("GET", "/clientdb/Property.aspx?prop_id=23699", fixture("propaccess.html")),
    ]
    assert replayed("propaccess", "23699", exchanges, cid="9")[1]["owner_name"] == "GALLOWAY INEZ"


def test_sri_sends_its_key_and_asks_for_the_details_of_the_card() -> None:
    parcel = "49-06-11-101-001.000-501"
    exchanges = [
        Exchange(
            "POST",
            "/property/carddetail",
            fixture("sri_cards.json"),
            sent={"searchText": parcel, "startIndex": 0, "auctionDateRange": ""},
            headers={"x-api-key": "public"},
            kind="application/json",
        ),
        Exchange(
            "POST",
            "/property/detail",
            fixture("sri_detail.json"),
            sent={"propertyId": parcel, "saleType": "A"},
            headers={"x-api-key": "public"},
            kind="application/json",
        ),
    ]
    site = ReplaySite(exchanges)
    with serving(site):
        target = Target(platform="sri", parcel_id=parcel)
        flow = replace(flow_of(target), settings={"base_url": site.url, "api_key": "public"})
        done = walk_one(flow, target)
    assert isinstance(done, Done), (done, site.refused)
    assert record_of(done.parts, target)["auction"]["opening_bid"] == 1312.44


def test_devnet_is_one_address() -> None:
    target = Target(
        platform="devnet", state="IL", county="Nowhere", parcel_id="09-99-100-001", extra={"tax_year": "2024"}
    )
    assert default_registry().get("devnet").build_url(target) == (
        "https://nowhereil.devnetwedge.com/parcel/view/0999100001/2024"
    )


@pytest.mark.parametrize("name", ["iasworld", "eagleweb", "propaccess", "patriot", "munis", "sri"])
def test_a_flow_is_not_begun_for_a_target_that_says_too_little(name: str) -> None:
    platform = default_registry().get(name)
    assert platform.flow is not None
    assert not can_walk(platform.flow, Target(platform=name, state="XX", county="Juniper"))


def test_the_items_of_a_day_are_followed_with_their_sale() -> None:
    site = AuctionSite(items_a_day=15)
    with serving(site):
        target = target_of(site.rows(15)[0])
        parts = parts_of(target)
    page = next(iter(parts.values()))
    listed = list(
        listed_parcels(record_of(parts, target), page, Target("collier", "XX", "Juniper"), default_registry())
    )
    assert [item.target.parcel_id for item in listed] == [parcel_id(n) for n in range(1, 16)]
    assert listed[14].facts["auction"]["case_number"] == "2026-TD-00015"
    assert listed[14].facts["auction"]["opening_bid"] > 0


def test_an_item_that_links_to_the_countys_page_is_followed_there() -> None:
    row = '<td class="AD_LBL">Parcel ID:</td><td class="AD_DTA"><a href="http://pa.example/?id=7">00-7</a></td>'
    item = f'<div id="AITEM_9" class="AUCTION_ITEM" aid="9"><table class="ad_tab"><tr>{row}</tr></table></div>'
    page = Page("http://x.example/index.cfm", json.dumps({"retHTML": item, "rlist": "9"}).encode(), "text/html")
    record = default_registry().parse(page, Target("realauction")).record
    (found,) = listed_parcels(record, page, Target(), default_registry())
    assert (found.url, found.target.parcel_id) == ("http://pa.example/?id=7", "00-7")


def test_the_days_of_a_calendar_are_followed_as_lists() -> None:
    site = AuctionSite(days=3)
    with serving(site):
        target = Target("realauction", extra={"base_url": site.url})
        parts = parts_of(target)
    listed = list(listed_parcels(record_of(parts, target), parts["calendar"], Target(state="XX"), default_registry()))
    assert [item.target.extra["auction_date"] for item in listed] == ["03/05/2026", "03/12/2026", "03/19/2026"]
    assert all(item.is_list and item.target.extra["base_url"] == site.url for item in listed)
    assert len({item.url for item in listed}) == 3
