"""County sites that are more than one GET a parcel, each after a kind of real ones, and as unforgiving as they are.

visits      what they share: sessions that end on demand, and a log of every request that arrives
webforms    ASP.NET with view state, event validation and a disclaimer, as iasWorld has it
auction     ColdFusion, whose list depends on the page before it and comes in pages, as RealAuction's does
guest       a guest login and a token in a header, over pages as EagleWeb has them
service     a JSON service by POST with an access token, as SRI's is

Their parcels are those of Juniper County: every person, address and amount is invented.
Run one by hand with `python -m lienworker.testing.sites webforms --port 8901`.
"""

from lienworker.testing.sites.auction import AuctionSite
from lienworker.testing.sites.guest import GuestSite
from lienworker.testing.sites.service import ServiceSite
from lienworker.testing.sites.visits import Arrival, SessionSite
from lienworker.testing.sites.webforms import WebFormsSite

SITES: dict[str, type[SessionSite]] = {
    "webforms": WebFormsSite,
    "auction": AuctionSite,
    "guest": GuestSite,
    "service": ServiceSite,
}

__all__ = ["SITES", "Arrival", "AuctionSite", "GuestSite", "ServiceSite", "SessionSite", "WebFormsSite"]
