"""The way to a card of Patriot: search, open the account, which puts it into the session, then the card itself."""

from __future__ import annotations

from lienworker.platforms.flows import Capture, Condition, Flow, Step

_LOST = Condition(text=("session has timed out", "Either no search has been executed"))
_OPEN_AND_READ = (
    Step(get="{base_url}/Summary.asp?AccountNumber={account}"),
    Step(get="{base_url}/summary-bottom.asp", expect=Condition(text=("Property Account Number",)), keep="card"),
)
_SEARCH = Step(
    post="{base_url}/SearchResults.asp",
    form={"SearchParcel": "{parcel_id}", "SearchSubmitted": "yes"},
    safe=True,
    expect=Condition(css=("a[href*='AccountNumber=']",)),
    capture={"account": Capture(css="a[href*='AccountNumber=']::attr(href)", re=r"AccountNumber=(\d+)")},
)
_SHOWS_PARCEL = Step(expect=Condition(text=("{parcel_id}",)))
#: Where the target names the account.
BY_ACCOUNT = Flow(settings={"base_url": "", "account": ""}, session=15 * 60.0, lost=_LOST, steps=_OPEN_AND_READ)
#: Where it names the parcel only.
BY_PARCEL = Flow(
    settings={"base_url": ""}, session=15 * 60.0, lost=_LOST, steps=(_SEARCH, *_OPEN_AND_READ, _SHOWS_PARCEL)
)
