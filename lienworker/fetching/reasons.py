"""The one table of why a fetch fails, whether trying again makes sense, and whose fault it is.

`retryable`: the same request may work later.
`host_fault`: the site as a whole does not serve us, so its other pages would fare no better now. Where the
page alone could be the cause the answer is no: a page that always hangs or breaks must be able to fail by
itself.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple


class Fault(NamedTuple):
    retryable: bool
    host_fault: bool


_FINAL = Fault(retryable=False, host_fault=False)
_PAGE = Fault(retryable=True, host_fault=False)
_HOST = Fault(retryable=True, host_fault=True)

FAULTS: dict[str, Fault] = {
    # The address: no later try makes it a better one.
    "bad_url": _FINAL,
    "scheme_refused": _FINAL,
    "private_address": _FINAL,
    "robots_denied": _FINAL,
    "crawl_delay": _FINAL,  # a redirect within a site that wants to be left alone for minutes in between
    # The way to the site. A time-out while connecting is `connect_failed`.
    "dns_failed": _HOST,
    "connect_failed": _HOST,
    "tls_failed": _HOST,
    "proxy_failed": _PAGE,  # the proxy's fault: the site must not cool for it
    # The reply.
    "timeout": _PAGE,
    "protocol_error": _PAGE,
    "bad_encoding": _PAGE,
    "empty_body": _PAGE,
    "too_large": _FINAL,
    "too_many_redirects": _FINAL,
    # What the site says of itself.
    "rate_limited": _HOST,
    "http_403": _PAGE,  # as often a firewall's mood as a forbidden page
    "http_408": _PAGE,
    "http_423": _PAGE,
    "http_425": _PAGE,
    "http_501": _FINAL,
    "http_502": _HOST,
    "http_503": _HOST,
    "http_504": _HOST,
    "http_505": _FINAL,
    # Cloudflare's words for an origin that is down, too slow to connect to, unreachable, or unknown to it.
    "http_521": _HOST,
    "http_522": _HOST,
    "http_523": _HOST,
    "http_530": _HOST,
    # All other numbers, by their hundred.
    "http_4xx": _FINAL,
    "http_5xx": _PAGE,
}


def fault_of(reason: str) -> Fault:
    """The table's answer for a reason, `http_404` and `http_507` included."""
    exact = FAULTS.get(reason)
    if exact is not None:
        return exact
    return FAULTS.get(f"{reason[:6]}xx", _FINAL)


def reason_of_status(status: int, *, proxied: bool = False) -> str:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "rate_limited"
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED and proxied:
        return "proxy_failed"
    return f"http_{status}"


def phrase_of_status(status: int) -> str:
    """The standard words for a status; the site's own are text from outside and stay out of our sentences."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
