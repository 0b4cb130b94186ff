"""The way to RealAuction's lists: the auctions of a day, page after page, or the calendar of a month.

The preview of a day binds it to the session; without that the list comes back empty, as on an empty day. What tells the
two apart are the ids that the preview of a day with auctions holds. Past its last page a site sends the last one again.
"""

from __future__ import annotations

from lienworker.platforms.flows import Capture, Condition, Flow, Repeat, Step

_INDEX = "{base_url}/index.cfm"
_LOAD = _INDEX + "?zaction=AUCTION&Zmethod=UPDATE&FNC=LOAD&AREA={area}"
_UNBOUND = Condition(re=(r'"retHTML"\s*:\s*""',))
_HAS_ITEMS = Condition(re=("AITEM_",))
_FIRST_ITEM = {"first_item": Capture(re=r"AITEM_(\d+)")}

BY_DAY = Flow(
    settings={"base_url": "", "auction_date": "", "area": "W"},
    session=15 * 60.0,
    steps=(
        Step(
            get=_INDEX + "?zaction=AUCTION&Zmethod=PREVIEW&AUCTIONDATE={auction_date}",
            missing=Condition(xpath=("//*[@id='ALB'][not(normalize-space())]",)),
            expect=Condition(css=("#ALB",)),
        ),
        Step(
            get=_LOAD + "&PageDir=0&doR=1&bypassPage=0&tx=0",
            lost=_UNBOUND,
            expect=_HAS_ITEMS,
            capture=_FIRST_ITEM,
            keep="items",
        ),
        Step(
            get=_LOAD + "&PageDir=1&doR=0&bypassPage=0&tx={n}",
            lost=_UNBOUND,
            missing=Condition(text=(r"AITEM_{first_item}\"",)),  # the page before this one, again
            optional=True,
            expect=_HAS_ITEMS,
            capture=_FIRST_ITEM,
            repeat=Repeat(most=60, until=Condition(without=_HAS_ITEMS)),
            keep="more",
        ),
    ),
)
CALENDAR = Flow(
    settings={"base_url": ""},
    steps=(Step(get=_INDEX + "?zaction=USER&zmethod=CALENDAR", expect=Condition(css=(".CALBOX",)), keep="calendar"),),
)
