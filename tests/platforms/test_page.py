"""A page: decoded as its header, itself or its bytes say, and parsed once."""

from __future__ import annotations

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page


def test_the_charset_of_the_header_decides() -> None:
    page = Page("http://a.example/", "<p>Señor Núñez</p>".encode("latin-1"), "text/html", "iso-8859-1")
    assert page.selector.css("p::text").get() == "Señor Núñez"


def test_the_page_itself_says_its_charset() -> None:
    page = Page("http://a.example/", '<meta charset="windows-1252"><p>“Núñez”</p>'.encode("cp1252"))
    assert page.selector.css("p::text").get() == "“Núñez”"


def test_without_any_word_utf8_is_tried_and_then_cp1252() -> None:
    assert Page("", "<p>Núñez</p>".encode()).selector.css("p::text").get() == "Núñez"
    assert Page("", "<p>Núñez</p>".encode("cp1252")).selector.css("p::text").get() == "Núñez"


def test_a_byte_order_mark_is_not_text() -> None:
    assert Page("", b"\xef\xbb\xbfhello").text == "hello"


def test_an_unknown_charset_in_the_header_is_survived() -> None:
    assert Page("", "<p>Núñez</p>".encode(), charset="no-such-charset").selector.css("p::text").get() == "Núñez"


def test_it_is_parsed_once() -> None:
    page = Page("", b"<p>x</p>")
    assert page.selector is page.selector


def test_json_is_known_by_its_type_or_its_first_character() -> None:
    assert Page("", b"[1]", "application/geo+json").is_json
    assert Page("", b'\xef\xbb\xbf {"a": 1}', "text/plain").json() == {"a": 1}
    assert not Page("", b"<html></html>", "text/html").is_json


def test_broken_json_is_the_pages_fault() -> None:
    with pytest.raises(PageError) as error:
        Page("", b'{"a": ', "application/json").json()
    assert error.value.reason == "not_a_parcel"


def test_what_was_worked_out_is_kept() -> None:
    page, calls = Page("", b"x"), []
    for _ in range(2):
        page.memo("answer", lambda: calls.append(1))
    assert calls == [1]
