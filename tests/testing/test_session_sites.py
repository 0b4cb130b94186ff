"""The county sites with sessions, visited with plain requests: they give and refuse what the real ones do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from parsel import Selector
from yarl import URL

from lienworker.platforms import Page, Target, default_registry
from lienworker.testing.county.pages import parcel_id
from lienworker.testing.serving import serving
from lienworker.testing.sites import SITES, AuctionSite, GuestSite, ServiceSite, SessionSite, WebFormsSite
from lienworker.testing.sites.guest import HEADER, account_of
from lienworker.testing.sites.service import KEY

AGENT = {"User-Agent": "Mozilla/5.0 (county research)"}
FORM = "/search/commonsearch.aspx?mode=parid"
Fields = dict[str, str]


class Visitor:
    """A client with one cookie jar, which remembers the last page and its form."""

    def __init__(self, site: SessionSite, client: aiohttp.ClientSession) -> None:
        self.site = site
        self._client = client
        self.status, self.path, self.text = 0, "", ""

    async def ask(self, method: str, path: str, **about: Any) -> str:
        url = path if "://" in path else self.site.url + path
        async with self._client.request(method, url, **about) as reply:
            self.status, self.path, self.text = reply.status, reply.url.path_qs, await reply.text()
            self.url = reply.url
        return self.text

    async def get(self, path: str, **about: Any) -> str:
        return await self.ask("GET", path, **about)

    def fields(self) -> Fields:
        """Return the hidden fields of the page."""
        found = Selector(self.text).css("form input[type=hidden]")
        return {item.attrib["name"]: item.attrib.get("value", "") for item in found}

    async def post_form(self, fields: Fields) -> str:
        action = Selector(self.text).css("form::attr(action)").get("")
        return await self.ask("POST", str(self.url.join(URL(action))), data=fields)

    async def agree(self) -> None:
        await self.get(FORM)
        await self.post_form({**self.fields(), "btAgree": "Agree"})

    async def search(self, wanted: str) -> str:
        """Search by parcel id from the page at hand; return the address of the parcel."""
        await self.post_form({**self.fields(), "hdAction": "Search", "inpParid": wanted, "btSearch": "Search"})
        found = re.search(r"selectSearchRow\('(.+?)'\)", self.text)
        return found[1].replace("&amp;", "&").removeprefix("..") if found else ""


def visiting(site: SessionSite, *visits: Callable[[Visitor], Awaitable[None]]) -> None:
    """Serve the site and let each visitor in, one after the other, each with a jar of its own."""

    async def all_of_them() -> None:
        for visit in visits:
            jar = aiohttp.CookieJar(unsafe=True)
            async with aiohttp.ClientSession(cookie_jar=jar, headers=AGENT) as client:
                await visit(Visitor(site, client))

    with serving(site):
        asyncio.run(all_of_them())


def read(text: str, platform: str) -> dict[str, Any]:
    page = Page("http://county.example/page", text.encode(), charset="utf-8")
    return default_registry().parse(page, Target(platform=platform)).record


def test_a_parcel_of_the_webforms_site_has_four_pages_behind_its_disclaimer() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.get(FORM)
        assert visitor.path.startswith("/Search/Disclaimer.aspx?FromUrl=")
        await visitor.agree()
        link = await visitor.search(parcel_id(7))
        pages = {mode: read(await visitor.get(f"{link}&mode={mode}"), "tyler") for mode in ("profile", "values")}
        assert pages["profile"]["parcel_id"] == pages["values"]["parcel_id"] == parcel_id(7)
        assert len(pages["values"]["values"]) == 8
        assert len(read(await visitor.get(f"{link}&mode=taxes"), "tyler")["taxes"]) == 8
        assert read(await visitor.get(f"{link}&mode=sales"), "tyler")["sales"]
        await visitor.get(f"{link}&mode=commercial")
        assert visitor.status == 404

    site = WebFormsSite()
    visiting(site, visit)
    assert site.sessions_opened == 1


def test_the_webforms_site_takes_each_view_state_once_and_only_whole() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.agree()
        asked = {**visitor.fields(), "hdAction": "Search", "inpParid": parcel_id(1), "btSearch": "Search"}
        await visitor.post_form(asked)
        assert "searchResults" in visitor.text
        await visitor.post_form(asked)
        assert (visitor.status, "Invalid postback" in visitor.text) == (500, True)
        await visitor.get(FORM)
        await visitor.post_form({**visitor.fields(), "__EVENTVALIDATION": "made up"})
        assert visitor.status == 500
        await visitor.get(FORM)
        some = {name: said for name, said in visitor.fields().items() if name != "hdListType"}
        assert "not registered" in await visitor.post_form({**some, "hdAction": "Search", "btSearch": "Search"})

    visiting(WebFormsSite(), visit)


def test_a_form_of_another_visitor_is_refused() -> None:
    seen: list[Fields] = []

    async def first(visitor: Visitor) -> None:
        await visitor.agree()
        seen.append(visitor.fields())

    async def second(visitor: Visitor) -> None:
        await visitor.agree()
        await visitor.post_form({**seen[0], "hdAction": "Search", "inpParid": parcel_id(1), "btSearch": "Search"})
        assert visitor.status == 500

    visiting(WebFormsSite(), first, second)


def test_an_address_of_an_earlier_search_shows_the_parcel_of_the_last_one() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.agree()
        before = await visitor.search(parcel_id(1))
        await visitor.search(parcel_id(2))
        assert parcel_id(2) in await visitor.get(f"{before}&mode=profile")

    visiting(WebFormsSite(), visit)


def test_a_parcel_that_does_not_exist_is_not_found() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.agree()
        assert await visitor.search("00-000-1") == ""
        assert "did not find any records" in visitor.text

    visiting(WebFormsSite(), visit)


def test_a_session_of_the_webforms_site_ends_in_the_middle_of_a_parcel() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.agree()
        for number in (1, 2):
            assert parcel_id(number) in await visitor.get(await visitor.search(parcel_id(number)))
            await visitor.get(FORM)
        link = await visitor.search(parcel_id(3))
        assert link  # the search is answered still
        await visitor.get(link)
        assert visitor.path.startswith("/Search/Disclaimer.aspx")

    visiting(WebFormsSite(end_every=2), visit)


def test_one_hit_may_open_the_parcel_at_once_and_the_site_may_be_below_a_path() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.get("/public.access" + FORM)
        await visitor.post_form({**visitor.fields(), "btAgree": "Agree"})
        await visitor.search(parcel_id(5))
        assert visitor.path == "/public.access/Datalets/Datalet.aspx?sIndex=0&idx=1"
        assert read(visitor.text, "tyler")["parcel_id"] == parcel_id(5)

    visiting(WebFormsSite(base="/public.access", opens_at_once=True), visit)


CALENDAR = "/index.cfm?zaction=USER&zmethod=CALENDAR"
PREVIEW = "/index.cfm?zaction=AUCTION&Zmethod=PREVIEW&AUCTIONDATE="
LOAD = "/index.cfm?zaction=AUCTION&Zmethod=UPDATE&FNC=LOAD&AREA=W&PageDir={}&doR={}&bypassPage=0&tx=1"
FIRST, NEXT = LOAD.format(0, 1), LOAD.format(1, 0)
NOTHING = '{"retHTML": "", "rlist": ""}'


def items(text: str) -> list[str]:
    return [item["parcel_id"] for item in read(text, "realauction")["parcels"]]


def test_a_day_of_auctions_comes_in_pages_and_the_last_page_comes_again() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.get(CALENDAR)
        day = Selector(visitor.text).css(".CALBOX::attr(dayid)").get("")
        assert len(Selector(await visitor.get(PREVIEW + day)).css("#ALB::text").get("").split(",")) == 25
        found = items(await visitor.get(FIRST)) + items(await visitor.get(NEXT)) + items(await visitor.get(NEXT))
        assert found == [parcel_id(number) for number in range(1, 26)]
        assert items(await visitor.get(NEXT)) == found[-5:]
        auction = read(visitor.text, "realauction")["parcels"][0]["auction"]
        assert (auction["date"], auction["case_number"]) == ("2026-03-05", "2026-TD-00021")
        assert auction["opening_bid"] > 0

    visiting(AuctionSite(items_a_day=25), visit)


def test_the_list_is_empty_without_the_cookie_of_the_preview() -> None:
    async def without_any(visitor: Visitor) -> None:
        assert await visitor.get(FIRST) == NOTHING

    async def with_the_calendar_only(visitor: Visitor) -> None:
        await visitor.get(CALENDAR)
        assert await visitor.get(FIRST) == NOTHING

    visiting(AuctionSite(), without_any, with_the_calendar_only)


def test_the_auction_site_refuses_robots_by_their_name() -> None:
    async def visit(visitor: Visitor) -> None:
        for agent in ("", "Python-urllib/3.11", "Somebot/1.0"):
            await visitor.get(CALENDAR, headers={"User-Agent": agent})
            assert visitor.status == 403

    visiting(AuctionSite(), visit)


def test_a_session_of_the_auction_site_ends_between_two_pages() -> None:
    async def visit(visitor: Visitor) -> None:
        await visitor.get(PREVIEW + "03/05/2026")
        assert len(items(await visitor.get(FIRST))) == 10
        assert len(items(await visitor.get(NEXT))) == 10
        assert await visitor.get(NEXT) == NOTHING

    visiting(AuctionSite(items_a_day=30, end_every=12), visit)


async def enter(visitor: Visitor) -> dict[str, str]:
    """Log in as a guest; return the header with the token."""
    await visitor.get("/web/login.jsp")
    await visitor.post_form({"guest": "true", "submit": "Public Login"})
    return {HEADER: Selector(visitor.text).css("meta[name=session-token]::attr(content)").get("")}


def test_a_guest_sees_an_account_and_its_documents_with_cookie_and_token() -> None:
    account = f"/taxweb/account.jsp?accountNum={account_of(parcel_id(3))}"

    async def visit(visitor: Visitor) -> None:
        token = await enter(visitor)
        record = read(await visitor.get(account, headers=token), "eagleweb")
        assert record["parcel_id"] == parcel_id(3)
        links = Selector(visitor.text).css("#left a::attr(href)").getall()
        values, sales = [read(await visitor.get(f"/taxweb/{link}", headers=token), "generic") for link in links]
        assert (len(values["values"]), bool(sales["sales"])) == (8, True)
        await visitor.get(account)
        assert visitor.status == 403

    async def stranger(visitor: Visitor) -> None:
        await visitor.get(account, headers={HEADER: "made up"})
        assert visitor.path == "/web/login.jsp"

    visiting(GuestSite(), visit, stranger)


def test_an_account_that_does_not_exist_is_not_found() -> None:
    async def visit(visitor: Visitor) -> None:
        token = await enter(visitor)
        assert "No results found" in await visitor.get("/taxweb/account.jsp?accountNum=X1", headers=token)

    visiting(GuestSite(), visit)


def test_a_guest_is_sent_to_the_login_when_the_session_ends() -> None:
    async def visit(visitor: Visitor) -> None:
        token = await enter(visitor)
        visitor.site.end_sessions()
        await visitor.get(f"/taxweb/account.jsp?accountNum={account_of(parcel_id(3))}", headers=token)
        assert visitor.path == "/web/login.jsp"

    visiting(GuestSite(), visit)


async def call(visitor: Visitor, name: str, body: object, **headers: str) -> Any:
    async with visitor._client.post(
        f"{visitor.site.url}/api/{name}", json=body, headers={"x-api-key": KEY, **headers}
    ) as reply:
        visitor.status = reply.status
        return await reply.json()


def test_the_service_wants_key_token_and_the_id_of_its_own_search() -> None:
    async def visit(visitor: Visitor) -> None:
        await call(visitor, "session", {}, **{"x-api-key": "another"})
        assert visitor.status == 401
        given = await call(visitor, "session", {})
        token = {"Authorization": f"Bearer {given['accessToken']}"}
        found = await call(visitor, "property/carddetail", {"searchText": parcel_id(4)}, **token)
        detail = await call(visitor, "property/detail", {"id": found["properties"][0]["id"]}, **token)
        assert detail["propertyId"] == parcel_id(4)
        history = await call(visitor, "property/history", {"id": found["properties"][0]["id"]}, **token)
        assert len(history["taxes"]) == 8
        await call(visitor, "property/detail", {"id": 1}, **token)
        assert visitor.status == 404
        assert await call(visitor, "property/carddetail", {"searchText": "none"}, **token) == {"properties": []}
        await call(visitor, "property/carddetail", {"searchText": parcel_id(4)})
        assert visitor.status == 401

    visiting(ServiceSite(), visit)


def test_the_service_forgets_a_token_after_so_many_parcels() -> None:
    async def visit(visitor: Visitor) -> None:
        given = await call(visitor, "session", {})
        token = {"Authorization": f"Bearer {given['accessToken']}"}
        for number in (1, 2, 3):
            await call(visitor, "property/carddetail", {"searchText": parcel_id(number)}, **token)
            assert visitor.status == 200
        assert await call(visitor, "property/detail", {"id": 1}, **token) == {"error": "token expired"}

    visiting(ServiceSite(end_every=2), visit)


@pytest.mark.parametrize("kind", SITES)
def test_every_request_is_logged_with_its_session_and_never_with_its_secret(kind: str) -> None:
    site = SITES[kind]()

    async def visit(visitor: Visitor) -> None:
        await visitor.get("/robots.txt")
        assert "User-agent" in visitor.text
        if kind == "webforms":
            await visitor.agree()
        elif kind == "auction":
            await visitor.get(CALENDAR)
        elif kind == "guest":
            await enter(visitor)
        else:
            await call(visitor, "session", {})

    visiting(site, visit, visit)
    assert site.sessions_opened == 2
    first = site.arrivals[0]
    assert (first.path, first.session, first.host) == ("/robots.txt", 0, site.url.removeprefix("http://"))
    assert all(gap >= 0 for gap in site.gaps())
    assert len(site.secrets) >= 2
    assert not any(secret in repr(site.arrivals) for secret in site.secrets)
