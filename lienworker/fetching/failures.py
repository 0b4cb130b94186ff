"""From any exception of a library to one stable reason and a sentence without secrets.

The sentences are ours: libraries put whole addresses, with passwords, into theirs.
"""

from __future__ import annotations

import logging
import os
import ssl
from http import HTTPStatus
from typing import NamedTuple

import aiohttp

from lienworker.errors import LienworkerError
from lienworker.fetching.outcomes import FetchFailed

logger = logging.getLogger(__name__)


class FetchError(LienworkerError):
    """Ends a fetch inside this package; outside it is a `FetchFailed`."""

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        status: int | None = None,
        body: bytes | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        # Addresses from outside may hold half a character, which no file or database accepts.
        self.detail = detail.encode("utf-8", "replace").decode("utf-8")
        self.status = status
        self.body = body
        self.retry_after = retry_after

    def outcome(self, elapsed_ms: int, *, was_asked: bool) -> FetchFailed:
        fault = fault_of(self.reason)
        return FetchFailed(
            reason=self.reason,
            detail=self.detail,
            retryable=fault.retryable,
            host_fault=fault.host_fault,
            retry_after=self.retry_after,
            status=self.status,
            body=self.body,
            elapsed_ms=elapsed_ms,
            is_refused_here=self.reason in _REFUSED_HERE and not was_asked,
        )


# The first type that fits names the reason: narrow ones before their parents. Certificate errors are also
# ValueErrors, connection time-outs are also TimeoutErrors, and everything at the socket is an OSError.
_KINDS: tuple[tuple[type[Exception], str, str], ...] = (
    (aiohttp.ClientHttpProxyError, "proxy_failed", "the proxy refused to connect to the site"),
    (aiohttp.ClientProxyConnectionError, "proxy_failed", "the proxy cannot be reached"),
    (aiohttp.ClientConnectorCertificateError, "tls_failed", "the site's certificate is not valid"),
    (aiohttp.ClientConnectorSSLError, "tls_failed", "no secure connection could be made"),
    (ssl.SSLError, "tls_failed", "no secure connection could be made"),
    (aiohttp.ClientConnectorDNSError, "dns_failed", "the host's name cannot be resolved"),
    (aiohttp.ConnectionTimeoutError, "connect_failed", "no connection within the timeout"),
    (aiohttp.ClientConnectorError, "connect_failed", "the connection was refused or found no way"),
    (aiohttp.SocketTimeoutError, "timeout", "the site stopped sending"),
    (TimeoutError, "timeout", "the fetch took longer than it may in all"),
    (aiohttp.InvalidURL, "bad_url", "this address cannot be used"),
    (aiohttp.ClientPayloadError, "protocol_error", "the reply broke off or is malformed"),
    (aiohttp.ServerDisconnectedError, "protocol_error", "the site hung up without a reply"),
    (aiohttp.ClientResponseError, "protocol_error", "the reply is not HTTP"),
    (aiohttp.ClientError, "protocol_error", "the connection broke"),
    (OSError, "protocol_error", "the connection broke"),
)

# SOCKS5 replies that the proxy makes about the site: network or host unreachable, refused, time to live.
_SOCKS_BLAMES_SITE = frozenset({3, 4, 5, 6})


def explain(exc: Exception, shown_url: str, *, proxied: bool) -> FetchError:
    """Return the failure that an exception stands for. An unforeseen one is a protocol error, and is logged."""
    if isinstance(exc, FetchError):
        return exc
    # aiohttp_socks is imported only where a SOCKS proxy is used, so its errors are recognized by their module.
    if proxied and type(exc).__module__.partition(".")[0] in ("aiohttp_socks", "python_socks"):
        return _explain_socks(exc, shown_url)
    if isinstance(exc.__cause__, ssl.SSLError):  # behind SOCKS, TLS errors come wrapped as plain OSErrors
        exc = exc.__cause__
    for kind, reason, sentence in _KINDS:
        if isinstance(exc, kind):
            return _blame(reason, f"{shown_url}: {sentence}{_system_words(exc)}.", proxied=proxied)
    logger.warning("unforeseen %s while fetching", type(exc).__name__, extra={"action": "fetch"})
    return FetchError("protocol_error", f"{shown_url}: unforeseen trouble ({type(exc).__name__}).")


def _blame(reason: str, detail: str, *, proxied: bool) -> FetchError:
    # With an HTTP proxy the only connection that we make ourselves is the one to the proxy.
    if proxied and reason in ("dns_failed", "connect_failed"):
        reason = "proxy_failed"
    return FetchError(reason, detail)


def _explain_socks(exc: Exception, shown_url: str) -> FetchError:
    if getattr(exc, "error_code", None) in _SOCKS_BLAMES_SITE:
        return FetchError("connect_failed", f"{shown_url}: the proxy cannot connect to the site.")
    return FetchError("proxy_failed", f"{shown_url}: the proxy cannot be used.")


def _system_words(exc: Exception) -> str:
    """Return what the operating system or the TLS library says; neither knows addresses or passwords."""
    # aiohttp's errors carry the original, and only the original has all its fields.
    origin = exc.os_error if isinstance(exc, aiohttp.ClientConnectorError) else exc
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        origin = exc.certificate_error
    words = None
    if isinstance(origin, ssl.SSLError):
        words = getattr(origin, "verify_message", None) or getattr(origin, "reason", None)
    elif isinstance(origin, OSError) and origin.errno:
        words = os.strerror(origin.errno)
    return f" ({words.replace('_', ' ').lower()})" if words else ""


# The one table of why a fetch fails, whether another try makes sense, and whose fault it is.
#
# `retryable`: the same request may work later. `host_fault`: the site as a whole does not serve us, so its other
# pages would fare no better now. Where the page alone could be the cause the answer is no: a page that always hangs
# or breaks must be able to fail alone.


class Fault(NamedTuple):
    retryable: bool
    host_fault: bool


#: We refuse the address ourselves; unless a redirect led to it, the site hears nothing of that.
_REFUSED_HERE = frozenset({"bad_url", "scheme_refused", "private_address", "robots_denied"})
_FINAL = Fault(retryable=False, host_fault=False)
_PAGE = Fault(retryable=True, host_fault=False)
_HOST = Fault(retryable=True, host_fault=True)

FAULTS: dict[str, Fault] = {
    # The address: another try does not make it better.
    "bad_url": _FINAL,
    "scheme_refused": _FINAL,
    "private_address": _FINAL,
    "robots_denied": _FINAL,
    "crawl_delay": _FINAL,  # a redirect within a site that asks for minutes between two requests
    # The connection to the site. A timeout while connecting is `connect_failed`.
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
    "http_403": _PAGE,  # as often a firewall's decision as a forbidden page
    "http_408": _PAGE,
    "http_423": _PAGE,
    "http_425": _PAGE,
    "http_501": _FINAL,
    "http_502": _HOST,
    "http_503": _HOST,
    "http_504": _HOST,
    "http_505": _FINAL,
    # Cloudflare's codes for an origin that is down, too slow to connect to, unreachable, or unknown to it.
    "http_521": _HOST,
    "http_522": _HOST,
    "http_523": _HOST,
    "http_530": _HOST,
    # All other numbers, by their hundred.
    "http_4xx": _FINAL,
    "http_5xx": _PAGE,
}


def fault_of(reason: str) -> Fault:
    """Return the table's answer for a reason, `http_404` and `http_507` included."""
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
    """Return the standard phrase for a status; the site's own is text from outside and stays out of our messages."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
