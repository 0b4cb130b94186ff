"""Fetches one page over HTTP, politely and safely, and says in one word what went wrong if that fails.

The path of one fetch:

1. `urls` parses the address: http or https, a host that can exist, no control characters.
2. `guard` refuses addresses inside the operator's own network; the address that it checked is the one that is
   connected to. Names, literal addresses, redirects, robots.txt and proxies all pass through it.
3. `robots` reads the site's robots.txt, once per origin and hour.
4. `turns` waits until the request may be sent, as the pacer of the caller decides.
5. `fetcher` sends the request directly or through `proxies`, and follows redirects itself (`reply.Trail`).
6. `reply` tells a page from a refusal, and reads and unpacks it, never more than the cap (`budget`).
7. `cookies` keeps what a site sets: for the redirects of one fetch, or for the steps of a session.
8. `failures` maps every error to a stable reason, and says whose fault that is.

Nothing here knows the database or the environment: everything is passed in.
"""

from lienworker.fetching.cookies import Jar
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
    "Jar",
    "NotModified",
    "fault_of",
    "redact_url",
]
