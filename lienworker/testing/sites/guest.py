"""A site after EagleWeb: a guest login, and then accounts of several pages.

What it insists on: the cookie of the login, and beside it a token in a header, which the page after the login names.
Without the cookie it sends the visitor to the login; with a cookie and no token it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from aiohttp import web

from lienworker.testing.county.pages import dollars, parcel_number, sale_rows, value_rows
from lienworker.testing.county.people import Parcel
from lienworker.testing.sites.visits import SessionSite, Visit, html

COOKIE = "JSESSIONID"
HEADER = "X-Session-Token"
DOCS = {"values": "DOC1S1", "sales": "DOC2S1"}
_COLUMNS = {
    "values": "Tax Year|Land Value|Building Value|Market Value|Assessed Value|Taxable Value",
    "sales": "Sale Date|Sale Price|Deed Type|Book/Page|Grantor|Grantee",
}

_FLOW = """account = ""
[flow]
session = "30m"
[[flow.open]]
get = "{base_url}/web/login.jsp"
[[flow.open]]
submit = { form = "#guestLogin", click = "submit" }
safe = true
capture = { token = { css = "meta[name=session-token]::attr(content)" } }
[[flow.step]]
get = "{base_url}/taxweb/account.jsp?accountNum={account}"
headers = { X-Session-Token = "{token}" }
missing = { text = "No results found" }
expect = { css = "#taxAccountSummary" }
capture = { documents = { css = "#left a::attr(href)", many = true } }
keep = "account"
[[flow.step]]
get = "{item}"
headers = { X-Session-Token = "{token}" }
repeat = { over = "documents", most = 5 }
keep = "document"
"""


class GuestSite(SessionSite):
    """Accounts behind the guest's door; without `wants_token` the cookie alone opens it, as EagleWeb has it."""

    kind = "eagleweb"
    flow = _FLOW

    def __init__(self, *, end_every: int = 0, wants_token: bool = True) -> None:
        super().__init__(end_every=end_every)
        self.wants_token = wants_token

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/web/login.jsp", self._login)
        router.add_post("/web/loginPOST.jsp", self._enter)
        router.add_get("/taxweb/results.jsp", self._results)
        router.add_get("/taxweb/account.jsp", self._account)

    def secret_of(self, request: web.Request) -> str:
        return request.cookies.get(COOKIE, "")

    def _row(self, wanted: str) -> dict[str, str]:
        return super()._row(wanted) | {"account": account_of(wanted)}

    async def _login(self, request: web.Request) -> web.Response:
        buttons = (
            '<input type="hidden" name="guest" value="true"><input type="submit" name="submit" value="Public Login">'
        )
        form = f'<form id="guestLogin" action="loginPOST.jsp" method="post">{buttons}</form>'
        return html(_page("Login", f"<h1>Juniper County</h1>{form}"))

    async def _enter(self, request: web.Request) -> web.Response:
        posted = await request.post()
        if posted.get("guest") != "true" or not posted.get("submit"):
            raise web.HTTPFound("login.jsp")
        visit = self.open_visit()
        visit.held["token"] = self.new_secret()
        welcome = f'<meta name="session-token" content="{visit.held["token"]}">'
        reply = html(_page("Welcome", "<p>You are logged in as a guest.</p>", welcome))
        reply.set_cookie(COOKIE, visit.secret, path="/", httponly=True)
        return reply

    async def _results(self, request: web.Request) -> web.Response:
        self._entered(request)
        wanted = request.query.get("ParcelNumID", "")
        if parcel_number(wanted) is None:
            return html(_page("Results", "<p>No results found.</p>"))
        return html(_page("Results", f'<a href="account.jsp?accountNum={account_of(wanted)}">{wanted}</a>'))

    async def _account(self, request: web.Request) -> web.Response:
        visit = self._entered(request)
        number, doc = number_of(request.query.get("accountNum", "")), request.query.get("doc", "")
        if not doc:
            self.count_parcels(visit)
        if number is None:
            return html(_page("Account", "<p>No results found.</p>"))
        part = next((part for part, name in DOCS.items() if name == doc), "")
        if doc and not part:
            return html(_page("Account", "<p>There is no such document.</p>"), status=404)
        return html(_history(Parcel(number), part) if part else _summary(Parcel(number)))

    def _entered(self, request: web.Request) -> Visit:
        """Return the session of a guest with cookie and token."""
        visit = self.visit_of(request)
        if visit is None:
            raise web.HTTPFound("/web/login.jsp")
        if self.wants_token and request.headers.get(HEADER) != visit.held["token"]:
            words = _page("Forbidden", "<p>The token of this session is missing or wrong.</p>")
            raise web.HTTPForbidden(text=words, content_type="text/html")
        return visit


def account_of(wanted: str) -> str:
    """Return the account behind a parcel id: another number, as it is with these counties."""
    return f"R{wanted.rpartition('-')[2]}"


def number_of(account: str) -> int | None:
    digits = account[1:]
    if account[:1] != "R" or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(digits)
    return number if parcel_number(Parcel(number).parcel_id) == number else None


def _summary(parcel: Parcel) -> str:
    street, city = parcel.mailing
    facts = {
        "Account Id": account_of(parcel.parcel_id),
        "Parcel Number": parcel.parcel_id,
        "Owners": parcel.owner,
        "Address": f"{street}\n{city}",
        "Situs Address": parcel.situs,
    }
    rows = "".join(
        f"<tr><td>{name}</td><td>{escape(said).replace(chr(10), '<br>')}</td></tr>" for name, said in facts.items()
    )
    links = "".join(
        f'<a href="account.jsp?accountNum={account_of(parcel.parcel_id)}&amp;doc={doc}">{part.title()}</a>'
        for part, doc in DOCS.items()
    )
    due = f"<tr><td>Total Due</td><td>{dollars(parcel.roll('due', 90_000) / 100)}</td></tr>"
    tables = f'<div id="taxAccountSummary"><table>{rows}</table></div><div id="totals"><table>{due}</table></div>'
    return _page("Account", f'<div id="left">{links}</div><div id="middle"><h1>Summary</h1>{tables}</div>')


def _history(parcel: Parcel, part: str) -> str:
    rows = value_rows(parcel) if part == "values" else sale_rows(parcel)
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS[part].split("|"))
    table = f"<table><tr>{head}</tr>{''.join(map(_row, rows))}</table>"
    number = f"<table><tr><td>Account Id</td><td>{account_of(parcel.parcel_id)}</td></tr></table>"
    return _page("Account", f'<div id="middle"><h1>{part.title()}</h1>{number}{table}</div>')


def _row(row: Iterable[object]) -> str:
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"


def _page(title: str, content: str, head: str = "") -> str:
    return f"<html><head><title>{title}</title>{head}</head><body>{content}</body></html>"
