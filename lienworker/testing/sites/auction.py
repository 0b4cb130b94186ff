"""A ColdFusion site after RealAuction: calendar, preview of a day, and its auctions in pages of ten.

What it insists on, as the real ones do: a user agent that is no robot's; the cookies of the preview, which binds the
day to the session (without it the list comes back empty, as on an empty day); and paging that goes on from the page
that the session saw last.
"""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from html import escape

from aiohttp import web

from lienworker.testing.county.pages import dollars
from lienworker.testing.county.people import Parcel
from lienworker.testing.sites.visits import SessionSite, Visit, html

PAGE_SIZE = 10
_REFUSED_AGENTS = re.compile(r"^$|bot|crawl|spider|python|curl|wget", re.I)
_NOTHING = json.dumps({"retHTML": "", "rlist": ""})


class AuctionSite(SessionSite):
    """So many sale days from `first_day` on, one a week, each with so many auctions."""

    kind = "realauction"

    def __init__(
        self, *, end_every: int = 0, days: int = 4, items_a_day: int = 15, first_day: date = date(2026, 3, 5)
    ) -> None:
        super().__init__(end_every=end_every)
        self.days = {first_day + timedelta(weeks=week): week for week in range(days)}
        self.items_a_day = items_a_day

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/index.cfm", self._index)

    def secret_of(self, request: web.Request) -> str:
        return request.cookies.get("cftoken", "")

    def items(self, day: date) -> list[Parcel]:
        """Return what is sold on a day."""
        first = self.days[day] * self.items_a_day + 1
        return [Parcel(number) for number in range(first, first + self.items_a_day)]

    def rows(self, n: int, start: int = 1) -> list[dict[str, str]]:
        """Rows for an import: the lists of as many sale days as `n` parcels need."""
        days = list(self.days)[: -(-n // self.items_a_day)]
        place = {"platform": self.kind, "state": "XX", "county": "Juniper"} | self.settings()
        return [place | {"auction_date": f"{day:%m/%d/%Y}", "url": self.preview_url(day)} for day in days]

    def preview_url(self, day: date) -> str:
        return f"{self.url}/index.cfm?zaction=AUCTION&Zmethod=PREVIEW&AUCTIONDATE={day:%m/%d/%Y}"

    async def _index(self, request: web.Request) -> web.Response:
        if _REFUSED_AGENTS.search(request.headers.get("User-Agent", "")):
            return html("<h1>403 Forbidden</h1>", status=403)
        asked = {name.lower(): value for name, value in request.query.items()}
        method = (asked.get("zaction", "").upper(), asked.get("zmethod", "").upper())
        if method == ("AUCTION", "UPDATE"):
            return self._load(request, asked)
        visit = self.visit_of(request) or self.open_visit()
        if method == ("AUCTION", "PREVIEW"):
            reply = self._preview(visit, asked.get("auctiondate", ""))
        else:
            reply = html(self._calendar())
        reply.set_cookie("cfid", str(visit.number), path="/")
        reply.set_cookie("cftoken", visit.secret, path="/", httponly=True)
        return reply

    def _calendar(self) -> str:
        boxes = "".join(_box(day, self.items_a_day) for day in self.days)
        return f'<html><body><div class="CALDAYBOX">{boxes}</div></body></html>'

    def _preview(self, visit: Visit, wanted: str) -> web.Response:
        """Bind the day, and show an empty frame that the site's script would fill."""
        day = next((day for day in self.days if f"{day:%m/%d/%Y}" == wanted), None)
        visit.held.clear()
        if day is not None:
            visit.held |= {"day": day, "page": 0}
        ids = ",".join(_aid(parcel) for parcel in (self.items(day) if day else ()))
        frame = '<div id="Area_W"></div><span id="curPWA"></span><span id="maxWA"></span>'
        return html(f'<html><body><h1>Auctions of {escape(wanted)}</h1><div id="ALB">{ids}</div>{frame}</body></html>')

    def _load(self, request: web.Request, asked: dict[str, str]) -> web.Response:
        visit = self.visit_of(request)
        if visit is None or "day" not in visit.held or asked.get("area") != "W":
            return web.Response(text=_NOTHING, content_type="text/html")
        items = self.items(visit.held["day"])
        last = (len(items) - 1) // PAGE_SIZE
        step = int(asked.get("pagedir", "0"))
        # Past the last page the last one comes again.
        page = min(visit.held["page"] + step, last) if step else max(0, min(int(asked.get("bypasspage", "0")), last))
        visit.held["page"] = page
        shown = items[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
        answer = {"retHTML": "".join(self._item(parcel, visit.held["day"]) for parcel in shown)}
        answer["rlist"] = ",".join(map(_aid, shown))
        self.count_parcels(visit, len(shown))
        return web.Response(text=json.dumps(answer), content_type="text/html")

    def _item(self, parcel: Parcel, day: date) -> str:
        """An auction in the shorthand that the site's script writes out."""
        town, code = parcel.town
        facts = {
            "Auction Type:": "TAXDEED",
            "Case #:": f"{day.year}-TD-{parcel.n:05d}",
            "Opening Bid:": opening_bid(parcel),
            "Parcel ID:": parcel.parcel_id,
            "Property Address:": parcel.situs,
            "": f"{town}, XX- {code}",
        }
        rows = "".join(f'@H@CAD_LBL">{name}@F@CAD_DTA">{escape(value)}@G' for name, value in facts.items())
        starts = f'@AASTAT_MSGA ASTAT_LBL">Auction Starts@B@AASTAT_MSGB Astat_DATA">{day:%m/%d/%Y} 10:00 AM ET@B'
        stats = f'@A@E_STATS">{starts}@B'
        head = f'<div id="AITEM_{_aid(parcel)}" @C@E_ITEM PREVIEW" aid="{_aid(parcel)}" rem="0">'
        return f'{head}{stats}@A@E_DETAILS"><@I @Cad_tab"><tbody>{rows}</tbody></@I>@B@B@A@E_ITEM_SPACER">@B'


def _box(day: date, items: int) -> str:
    count = f'<span class="CALMSG"><span class="CALACT">0</span> / <span class="CALSCH">{items}</span> TD<br></span>'
    text = f'<span class="CALTEXT">Tax Deed<br>{count}<span class="CALTIME">10:00 AM ET</span></span>'
    return f'<div class="CALBOX CALSELT" dayid="{day:%m/%d/%Y}"><span class="CALNUM">{day.day}</span>{text}</div>\n'


def opening_bid(parcel: Parcel) -> str:
    return dollars(1_000 + parcel.roll("opening", 900_000) / 100)


def _aid(parcel: Parcel) -> str:
    return str(500_000 + parcel.n)
