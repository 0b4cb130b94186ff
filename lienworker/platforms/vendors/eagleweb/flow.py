"""The way to an EagleWeb account: a guest's log-in, the account by its number or the parcel's, its documents."""

from __future__ import annotations

from lienworker.platforms.flows import Capture, Condition, Flow, Repeat, Step

_SETTINGS = {"base_url": "", "login": "Login"}
_OPEN = (
    Step(get="{base_url}/web/login.jsp"),
    Step(post="{base_url}/web/loginPOST.jsp", form={"submit": "{login}", "guest": "true"}, safe=True),
)
_NONE = Condition(text=("No results found",))
_DOCUMENTS = "a[href*='account.jsp'][href*='doc=DOC']::attr(href)"
_ACCOUNT = Step(
    get="{base_url}/taxweb/account.jsp?accountNum={account}",
    missing=_NONE,
    expect=Condition(css=("#taxAccountSummary",)),
    capture={"documents": Capture(css=_DOCUMENTS, many=True)},
    keep="account",
)
_EACH_DOCUMENT = Step(get="{item}", repeat=Repeat(over="documents", most=12), keep="document", optional=True)
_SEARCH = Step(
    get="{base_url}/taxweb/results.jsp?ParcelNumID={parcel_id}",
    missing=_NONE,
    expect=Condition(css=("a[href*='accountNum=']",)),
    capture={"account": Capture(css="a[href*='accountNum=']::attr(href)", re=r"accountNum=([\w-]+)")},
)
#: Where the target names the account.
BY_ACCOUNT = Flow(
    settings={**_SETTINGS, "account": ""}, session=15 * 60.0, open=_OPEN, steps=(_ACCOUNT, _EACH_DOCUMENT)
)
#: Where it names the parcel only.
BY_PARCEL = Flow(settings=_SETTINGS, session=15 * 60.0, open=_OPEN, steps=(_SEARCH, _ACCOUNT, _EACH_DOCUMENT))
