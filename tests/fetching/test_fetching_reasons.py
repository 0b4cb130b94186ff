from __future__ import annotations

import pytest

from lienworker.fetching import fault_of
from lienworker.fetching.failures import FAULTS, FetchError, phrase_of_status, reason_of_status

PROMISED = {
    *("bad_url", "scheme_refused", "private_address", "robots_denied"),
    *("dns_failed", "connect_failed", "tls_failed", "proxy_failed", "timeout"),
    *("protocol_error", "bad_encoding", "empty_body", "too_large", "too_many_redirects", "rate_limited"),
}


def test_every_promised_reason_is_in_the_table() -> None:
    assert set(FAULTS) >= PROMISED


def test_what_is_the_sites_fault_can_always_be_tried_again() -> None:
    assert all(fault.retryable for fault in FAULTS.values() if fault.host_fault)


@pytest.mark.parametrize(
    ("reason", "retryable", "host_fault"),
    [
        ("rate_limited", True, True),
        ("http_503", True, True),
        ("connect_failed", True, True),
        ("dns_failed", True, True),
        ("http_500", True, False),
        ("http_507", True, False),
        ("timeout", True, False),
        ("proxy_failed", True, False),
        ("http_403", True, False),
        ("http_404", False, False),
        ("http_410", False, False),
        ("http_418", False, False),
        ("http_501", False, False),
        ("private_address", False, False),
        ("http_300", False, False),
        ("http_999", False, False),
        ("never_heard_of", False, False),
    ],
)
def test_each_reason_has_its_fault(reason: str, retryable: bool, host_fault: bool) -> None:
    assert fault_of(reason) == (retryable, host_fault)


def test_a_status_keeps_its_true_number() -> None:
    assert reason_of_status(503) == "http_503"
    assert reason_of_status(429) == "rate_limited"
    assert phrase_of_status(503) == "503 Service Unavailable"
    assert phrase_of_status(799) == "799"


def test_407_is_the_proxys_word_only_where_there_is_a_proxy() -> None:
    assert reason_of_status(407, proxied=True) == "proxy_failed"
    assert reason_of_status(407) == "http_407"


def test_a_failure_takes_its_fault_from_the_table() -> None:
    failed = FetchError("http_503", "The site rests.", status=503, retry_after=9.0).outcome(12, was_asked=True)
    assert (failed.retryable, failed.host_fault, failed.retry_after, failed.elapsed_ms) == (True, True, 9.0, 12)
