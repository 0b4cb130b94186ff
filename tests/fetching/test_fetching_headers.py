from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lienworker.fetching import FetchRequest
from lienworker.fetching.reply import conditions, content_type_of, retry_after_of

NOON = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Sun, 01 Jun 2025 12:01:30 GMT", 90),
        ("Sun, 01 Jun 2025 11:00:00 GMT", 0),
        ("Sunday, 01-Jun-25 12:00:10 GMT", 10),
        ("999999999", 86400),
        ("9" * 5000, 86400),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86400),
        ("-5", None),
        ("soon", None),
        ("Sun, 99 Jun 2025 12:00:00 GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_a_day(header: str | None, seconds: float | None) -> None:
    assert retry_after_of(header, NOON) == seconds


@pytest.mark.parametrize(
    ("header", "media", "charset"),
    [
        ("Text/HTML; Charset=UTF-8", "text/html", "utf-8"),
        ('text/html;charset="windows-1252"', "text/html", "windows-1252"),
        ("text/html; boundary=x; charset='iso-8859-1'", "text/html", "iso-8859-1"),
        ("application/json", "application/json", None),
        ("text/html; charset=", "text/html", None),
        ("", "", None),
        ("html", "", None),
        ("text/html, text/html", "text/html", None),
        ("te\udcffxt/html", "", None),
    ],
)
def test_a_content_type_is_split(header: str, media: str, charset: str | None) -> None:
    assert content_type_of(header) == (media, charset)


def test_conditions_are_sent_as_they_were_given() -> None:
    request = FetchRequest("http://x/", etag='W/"abc"', last_modified="Sun, 01 Jun 2025 12:00:00 GMT")
    assert conditions(request) == {
        "If-None-Match": 'W/"abc"',
        "If-Modified-Since": "Sun, 01 Jun 2025 12:00:00 GMT",
    }


@pytest.mark.parametrize("etag", ['"a"\r\nX-Evil: 1', '"\x00"', '"é"', '"' + "a" * 2000 + '"', ""])
def test_a_condition_that_is_no_header_value_is_left_out(etag: str) -> None:
    assert conditions(FetchRequest("http://x/", etag=etag)) == {}
