"""A JSON service after SRI's: everything by POST, with a public key in a header, and here an access token as well.

What it insists on: the key (401), a JSON body (415), and the token that `/api/session` gave for the key (401 with a
reason once it is over). The details of a property want the numbers that the search returned, which differ by session.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from lienworker.testing.county.pages import parcel_number, sale_rows, tax_rows
from lienworker.testing.county.people import Parcel
from lienworker.testing.sites.visits import SessionSite, Visit

KEY = "juniper-public-key"
_NAMES = {
    "taxes": ("year", "bill", "amount", "paid", "due", "status", "paidOn"),
    "sales": ("date", "price", "deedType", "bookPage", "grantor", "grantee"),
}

_FLOW = """[flow]
session = "30m"
headers = { x-api-key = "{api_key}" }
lost = { status = 401 }
[[flow.open]]
post = "{base_url}/session"
json = {}
safe = true
capture = { token = { json = "accessToken" } }
[[flow.step]]
post = "{base_url}/property/carddetail"
json = { searchText = "{parcel_id}", recordCount = 10, startIndex = 0 }
headers = { Authorization = "Bearer {token}" }
safe = true
missing = { json = "length(properties) == `0`" }
capture = { property = { json = "properties[0].id" } }
keep = "card"
[[flow.step]]
post = "{base_url}/property/detail"
json = { id = "{property}" }
headers = { Authorization = "Bearer {token}" }
safe = true
keep = "detail"
[[flow.step]]
post = "{base_url}/property/history"
json = { id = "{property}" }
headers = { Authorization = "Bearer {token}" }
safe = true
keep = "history"
"""


class ServiceSite(SessionSite):
    """Search, details and history of a property, each a POST."""

    kind = "sri"
    flow = _FLOW

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/api/session", self._session)
        router.add_post("/api/property/carddetail", self._search)
        router.add_post("/api/property/detail", self._detail)
        router.add_post("/api/property/history", self._history)

    def secret_of(self, request: web.Request) -> str:
        return request.headers.get("Authorization", "").removeprefix("Bearer ")

    def settings(self) -> dict[str, str]:
        return {"base_url": f"{self.url}/api", "api_key": KEY}

    async def _session(self, request: web.Request) -> web.Response:
        await _body(request)
        return web.json_response({"accessToken": self.open_visit().secret, "expiresIn": 1800})

    async def _search(self, request: web.Request) -> web.Response:
        visit, asked = await self._asked(request)
        number = parcel_number(str(asked.get("searchText", "")))
        self.count_parcels(visit)
        if number is None:
            return web.json_response({"properties": []})
        visit.held[str(number)] = visit.number * 1_000_000 + number
        return web.json_response({"properties": [_card(Parcel(number), visit.held[str(number)])]})

    async def _detail(self, request: web.Request) -> web.Response:
        parcel = await self._found_before(request)
        street, city = parcel.mailing
        owner = {"ownerName": parcel.owner, "ownerAddress": f"{street} {city}"}
        return web.json_response({**_card(parcel, 0), **owner})

    async def _history(self, request: web.Request) -> web.Response:
        parcel = await self._found_before(request)
        rows = {"taxes": tax_rows(parcel), "sales": sale_rows(parcel)}
        named = {part: [dict(zip(_NAMES[part], row, strict=True)) for row in rows[part]] for part in rows}
        return web.json_response({"propertyId": parcel.parcel_id, **named})

    async def _found_before(self, request: web.Request) -> Parcel:
        """Return the parcel of an id that this session's search gave out."""
        visit, asked = await self._asked(request)
        wanted = str(asked.get("id"))  # these services take a number that is written as a text
        number = next((int(number) for number, given in visit.held.items() if str(given) == wanted), None)
        if number is None:
            raise web.HTTPNotFound(
                text='{"error": "no such property in this session"}', content_type="application/json"
            )
        return Parcel(number)

    async def _asked(self, request: web.Request) -> tuple[Visit, dict[str, Any]]:
        asked = await _body(request)
        visit = self.visit_of(request)
        if visit is None:
            raise web.HTTPUnauthorized(text='{"error": "token expired"}', content_type="application/json")
        return visit, asked


async def _body(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request with the right key."""
    if request.headers.get("x-api-key") != KEY:
        raise web.HTTPUnauthorized(text='{"error": "invalid api key"}', content_type="application/json")
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    asked = await request.json()
    return asked if isinstance(asked, dict) else {}


def _card(parcel: Parcel, number: int) -> dict[str, Any]:
    town, code = parcel.town
    return {
        "id": number,
        "saleId": parcel.n,
        "saleType": "A",
        "propertyId": parcel.parcel_id,
        "ownerName": parcel.owner,
        "address1": parcel.situs,
        "city": town,
        "state": "XX",
        "zip": code,
        "minimumBid": 100 + parcel.roll("minimum", 9_000),
        "auctionDate": "08/01/2026",
    }
