"""What the Gateway is told about a failed task: the reason, and a fixed sentence that goes with it.

The messages that people here read contain addresses inside our network, proxies and paths. No pattern finds all of
those in text that a library or a parser wrote, so none of that text is sent: only what is written here is.
"""

from __future__ import annotations

import re

_REASON = re.compile(r"[a-z][a-z0-9_]{0,63}")
_STATUS = re.compile(r"http_([1-5][0-9]{2})")
_UNKNOWN_REASON = "failed"
_USUAL = "The task could not be done; the worker's own records say more."
_SENTENCES = {
    "bad_encoding": "The site's reply could not be decoded.",
    "bad_proxy": "The proxy that the task names cannot be read.",
    "bad_task": "The task is not complete.",
    "bad_url": "The task's address cannot be used.",
    "cancelled": "The task was cancelled by hand.",
    "captcha": "The site asks for a captcha.",
    "connect_failed": "No connection to the site could be made.",
    "data_not_object": "The result cannot be stored: its data is no object.",
    "discarded": "The result was given up by hand.",
    "disclaimer": "The site asks for its terms to be accepted.",
    "crawl_delay": "The site wants too long a pause before the page can be followed.",
    "dns_failed": "The site's name cannot be resolved.",
    "empty_body": "The site answered with nothing.",
    "empty_page": "The page shows nothing.",
    "error_page": "The site answered with an error page.",
    "expired": "The task expired before its page was fetched.",
    "host_down": "The site has not answered for a long time.",
    "incomplete_key": "The result lacks its parcel id, platform, state or county, by which it would be stored.",
    "key_not_storable": "The result cannot be stored: one of its keys has a character that no database takes.",
    "key_not_text": "The result cannot be stored: one of its keys is no text.",
    "key_too_long": "The result cannot be stored: its parcel id, platform, state or county is too long.",
    "login_required": "The site asks for a login.",
    "map_shell": "The page is a map without the parcel's values.",
    "no_url": "The task has no address, and none can be built for it.",
    "not_a_parcel": "The page does not show a parcel.",
    "parcel_not_found": "The site does not know the parcel.",
    "parser_error": "The page could not be read.",
    "parser_failed": "The page could not be read.",
    "private_address": "The task's address is not a public one.",
    "protocol_error": "The site's reply broke off or is malformed.",
    "proxy_failed": "The proxy could not be used.",
    "rate_limited": "The site asks for fewer requests.",
    "raw_discarded": "The page was given up by hand, and a result never goes without it.",
    "raw_page_damaged": "The stored page was damaged.",
    "robots_denied": "The site's robots.txt forbids the page.",
    "scheme_refused": "The task's address is neither http nor https.",
    "search_form": "The site answered with its search form.",
    "timeout": "The site took too long to answer.",
    "tls_failed": "No secure connection to the site could be made.",
    "too_complex": "The page is too complex to be read.",
    "too_deep": "The result cannot be stored: its data is nested too deep.",
    "too_large": "The page is too large.",
    "too_many_redirects": "The site redirects without end.",
    "unknown_platform": "This worker does not know the platform.",
    "unknown_type": "This worker does not do tasks of this type.",
    "worker_died": "The worker ended several times while it worked on the task.",
}


def report_words(reason: str) -> str:
    """Return what the Gateway is told about a failure with this reason."""
    known = reason if _REASON.fullmatch(reason) else _UNKNOWN_REASON
    status = _STATUS.fullmatch(known)
    sentence = f"The site answered with HTTP {status[1]}." if status else _SENTENCES.get(known, _USUAL)
    return f"{known}: {sentence}"


def cleared(words: str) -> str:
    """Return what may be sent of a report as it is stored: early ones contain the sentence for people."""
    return report_words(words.partition(":")[0])
