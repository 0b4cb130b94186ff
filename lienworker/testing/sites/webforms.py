"""An ASP.NET site after iasWorld: disclaimer, search form, result list, and several datalets of a parcel.

What it insists on, as the real ones do:

- the disclaimer is agreed to in the session; the `DISCLAIMER` cookie alone opens nothing;
- a post returns every hidden field of the page before it; view state and event validation are good for that reply only;
- `sIndex` and `idx` point into the list of the session's last search, whatever parcel the visitor believes to open.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from html import escape
from urllib.parse import quote

from aiohttp import web

from lienworker.testing.county.pages import parcel_number, sale_rows, tax_rows, value_rows
from lienworker.testing.county.people import USES, Parcel
from lienworker.testing.sites.visits import SessionSite, Visit, html

COOKIE = "ASP.NET_SessionId"
MODES = ("profile", "values", "sales", "taxes")
_HIDDEN = {
    "ScriptManager1_TSM": "", "__EVENTTARGET": "", "__EVENTARGUMENT": "", "hdAction": "", "hdLink": "", "hdURL": "",
    "hdSelected": "", "hdSelectAllChecked": "false", "hdIndex": "", "hdListType": "PA", "hdJur": "", "sIndex": "-1",
    "PageNum": "1", "PageSize": "15", "SortBy": "PARID", "SortDir": " asc", "mode": "PARID",
}  # fmt: skip
_CHECKED = ("__VIEWSTATE", "__VIEWSTATEGENERATOR", "__EVENTVALIDATION")
_TITLES = {
    "values": ("Appraised Value History", "Tax Year|Land|Building|Market Value|Assessed Value|Taxable Value"),
    "sales": ("Sales", "Sale Date|Sale Price|Deed Type|Book/Page|Grantor|Grantee"),
    "taxes": ("Taxes", "Tax Year|Bill Number|Total Billed|Paid|Balance|Status|Date Paid"),
}


class WebFormsSite(SessionSite):
    """The site under `base`; with `opens_at_once`, a search with one hit opens the parcel instead of a list."""

    kind = "iasworld"

    def __init__(self, *, end_every: int = 0, base: str = "", opens_at_once: bool = False) -> None:
        super().__init__(end_every=end_every)
        self.base = base
        self.opens_at_once = opens_at_once

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(f"{self.base}/search/commonsearch.aspx", self._form)
        router.add_post(f"{self.base}/search/commonsearch.aspx", self._search)
        router.add_get(f"{self.base}/Search/Disclaimer.aspx", self._disclaimer)
        router.add_post(f"{self.base}/Search/Disclaimer.aspx", self._agree)
        router.add_get(f"{self.base}/Datalets/Datalet.aspx", self._datalet)

    def secret_of(self, request: web.Request) -> str:
        return request.cookies.get(COOKIE, "")

    def settings(self) -> dict[str, str]:
        return {"base_url": self.url + self.base}

    async def _disclaimer(self, request: web.Request) -> web.Response:
        visit = self.visit_of(request) or self.open_visit()
        back = request.query.get("FromUrl", "../search/commonsearch.aspx?mode=parid")
        buttons = '<input type="submit" name="btAgree" id="btAgree" value="Agree">'
        buttons += '<input type="submit" name="btDisagree" id="btDisagree" value="Disagree">'
        fields = self._checked_fields(visit, "disclaimer") | {"hdURL": back, "action": ""}
        reply = html(_page("Disclaimer", _form(request.path_qs, fields, f"<p>No warranty.</p>{buttons}")))
        reply.set_cookie(COOKIE, visit.secret, path="/", httponly=True)
        return reply

    async def _agree(self, request: web.Request) -> web.Response:
        visit, posted = self.visit_of(request), await request.post()
        if visit is None or not self._is_fresh(visit, "disclaimer", posted):
            return _server_error()
        if posted.get("btAgree") != "Agree":
            return html(_page("Disclaimer", "<p>You must agree to go on.</p>"))
        visit.held["agreed"] = True
        reply = web.Response(status=302, headers={"Location": str(posted.get("hdURL"))})
        reply.set_cookie("DISCLAIMER", "1", path="/")
        return reply

    async def _form(self, request: web.Request) -> web.Response:
        visit = self._agreed(request)
        return html(self._search_page(visit))

    async def _search(self, request: web.Request) -> web.Response:
        visit, posted = self._agreed(request), await request.post()
        if not self._is_fresh(visit, "search", posted):
            return _server_error()
        if not posted.keys() >= _HIDDEN.keys():
            return html(_page("Error", "<p>Requested page not registered.</p>"))
        if "btSearch" not in posted or posted["hdAction"] != "Search":
            return html(self._search_page(visit))
        wanted = str(posted.get("inpParid", "")).strip()
        number = parcel_number(wanted)
        self.count_parcels(visit)
        if number is None:
            return html(self._search_page(visit, "<p>Your search did not find any records.</p>"))
        visit.held["found"] = number
        visit.held["searches"] = visit.held.get("searches", 0) + 1
        link = f"../Datalets/Datalet.aspx?sIndex={visit.held['searches'] - 1}&idx=1"
        if self.opens_at_once:
            return web.Response(status=302, headers={"Location": link})
        return html(self._search_page(visit, _results(Parcel(number), link)))

    async def _datalet(self, request: web.Request) -> web.Response:
        visit, mode = self._agreed(request), request.query.get("mode", "profile")
        number = visit.held.get("found")
        if number is None or not {"sIndex", "idx"} <= request.query.keys():
            return html(self._search_page(visit))
        if mode not in MODES:
            return html(_page("Error", "<p>Requested page not registered.</p>"), status=404)
        return html(render_datalet(Parcel(number), mode))

    def _agreed(self, request: web.Request) -> Visit:
        """Return the session of a visitor who has agreed; everybody else is sent to the disclaimer."""
        visit = self.visit_of(request)
        if visit is None or not visit.held.get("agreed"):
            asked = quote(f"../search/commonsearch.aspx?mode={request.query.get('mode', 'parid')}", "")
            raise web.HTTPFound(f"{self.base}/Search/Disclaimer.aspx?FromUrl={asked}")
        return visit

    def _search_page(self, visit: Visit, results: str = "") -> str:
        fields = self._checked_fields(visit, "search") | _HIDDEN
        fields["sIndex"] = str(visit.held.get("searches", 0) - 1)
        inputs = '<input name="inpParid" id="inpParid" maxlength="30" value="">'
        inputs += '<select name="inpTaxyr"><option value="2024" selected>2024</option></select>'
        inputs += '<input type="submit" name="btSearch" id="btSearch" value="Search">'
        inputs += '<input type="submit" name="btClear" value="Clear">'
        return _page("Search", _form("commonsearch.aspx?mode=parid", fields, inputs + results))

    def _checked_fields(self, visit: Visit, form: str) -> dict[str, str]:
        """Return the fields that the next post has to bring back, new for each page."""
        fields = {name: secrets.token_urlsafe(48) for name in _CHECKED}
        visit.held[form] = fields
        return dict(fields)

    def _is_fresh(self, visit: Visit, form: str, posted: Mapping[str, object]) -> bool:
        """Say whether these are the fields of the last page; they are good once."""
        given = visit.held.pop(form, None)
        return given is not None and all(posted.get(name) == value for name, value in given.items())


def render_datalet(parcel: Parcel, mode: str) -> str:
    """Render one tab of a parcel."""
    banner = (
        f'<table id="datalet_header"><tr><td class="DataletHeaderTop">PARID: {parcel.parcel_id}</td></tr>'
        f'<tr><td class="DataletHeaderBottom">{escape(parcel.owner)}</td>'
        f'<td class="DataletHeaderBottom">{parcel.situs}</td></tr></table>'
    )
    menu = "".join(_tab(tab, tab == mode) for tab in MODES)
    body = _profile(parcel) if mode == "profile" else _history(parcel, mode)
    return _page(
        f"Parcel {parcel.parcel_id}", f"<div id='sidemenu'><ul class='navigation'>{menu}</ul></div>{banner}{body}"
    )


def _tab(mode: str, is_open: bool) -> str:
    link = f"../Datalets/Datalet.aspx?mode={mode}&amp;sIndex=0&amp;idx=1&amp;LMparent=20"
    return f"<li class='{'sel' if is_open else 'unsel'}'><a href='{link}'><span>{mode.title()}</span></a></li>"


def _profile(parcel: Parcel) -> str:
    street, city = parcel.mailing
    facts = {"Property Location": parcel.situs, "City": parcel.town[0], "Land Use Code": parcel.pick("use", USES)}
    owner = {"Name(s)": parcel.owner, "Mailing Address": street, "City, State, Zip Code": city}
    return _facts("Parcel", facts) + _facts("Parcel Mailing Address", owner)


def _history(parcel: Parcel, mode: str) -> str:
    title, heads = _TITLES[mode]
    rows = {"values": value_rows, "sales": sale_rows, "taxes": tax_rows}[mode](parcel)
    head = "".join(f'<td class="DataletTopHeading">{name}</td>' for name in heads.split("|"))
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return _datalet(title, f"<tr>{head}</tr>{body}")


def _facts(title: str, facts: Mapping[str, str]) -> str:
    return _datalet(
        title,
        "".join(f'<tr><td class="DataletSideHeading">{name}</td>{_cell(said)}</tr>' for name, said in facts.items()),
    )


def _datalet(title: str, rows: str) -> str:
    head = f'<table><tr><td class="DataletTitleColor">{title}</td></tr></table>'
    return f"<div id='datalet_div_1'>{head}<table>{rows}</table></div>"


def _cell(value: object) -> str:
    return f'<td class="DataletData">{escape(str(value)) or "&nbsp;"}</td>'


def _results(parcel: Parcel, link: str) -> str:
    cells = "".join(f"<td>{escape(value)}</td>" for value in (parcel.parcel_id, parcel.owner, parcel.situs))
    row = f'<tr class="SearchResults" onclick="selectSearchRow(\'{escape(link)}\')">{cells}</tr>'
    return f'<table id="searchResults"><tr><td>Parcel</td><td>Owner</td><td>Address</td></tr>{row}</table>'


def _form(action: str, fields: Mapping[str, str], inside: str) -> str:
    hidden = "".join(_hidden(fields.items()))
    return f'<form id="frmMain" name="frmMain" method="post" action="{escape(action)}">{hidden}{inside}</form>'


def _hidden(fields: Iterable[tuple[str, str]]) -> Iterable[str]:
    return (f'<input type="hidden" name="{name}" id="{name}" value="{escape(value)}">' for name, value in fields)


def _page(title: str, content: str) -> str:
    head = f"<head><title>{title} - Juniper County Public Access</title></head>"
    return f"<!DOCTYPE html>\n<html>{head}<body>{content}</body></html>\n"


def _server_error() -> web.Response:
    words = "<h1>Server Error in '/' Application.</h1><h2>Invalid postback or callback argument.</h2>"
    return html(_page("Runtime Error", words), status=500)
