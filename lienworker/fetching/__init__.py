"""Fetches one page over HTTP, politely and safely, and says in one word what went wrong when it does not.

The way of one fetch:

1. `urls` reads the address: http or https, a host that can exist, no control characters.
2. `guard` refuses addresses inside the operator's own network; the address that it checked is the one that is
   connected to. Names, literal addresses, redirects, robots.txt and proxies all pass through it.
3. `robots` asks the site's robots.txt, once per origin and hour.
4. `fetcher` sends the request over `connector`, or through `proxies`, and follows redirects by hand (`trail`).
5. `reply` tells a page from a refusal; `body` reads and unpacks it, never more than the cap.
6. `failures` gives every accident a stable reason; `reasons` says whose fault that is.

Nothing here knows the database or the environment: everything comes in as arguments.
"""

from lienworker.fetching.failures import Fault, fault_of
from lienworker.fetching.fetcher import Fetcher
from lienworker.fetching.guard import Guard
from lienworker.fetching.outcomes import (
    Fetched,
    FetchFailed,
    FetchOptions,
    FetchOutcome,
    FetchRequest,
    NotModified,
)
from lienworker.fetching.urls import redact_url

__all__ = [
    "Fault",
    "FetchFailed",
    "FetchOptions",
    "FetchOutcome",
    "FetchRequest",
    "Fetched",
    "Fetcher",
    "Guard",
    "NotModified",
    "fault_of",
    "redact_url",
]
