from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from lienworker.fetching import redact_url
from lienworker.fetching.failures import FetchError
from lienworker.fetching.urls import MAX_URL, parse_url


def reason(text: str) -> str:
    with pytest.raises(FetchError) as caught:
        parse_url(text)
    return caught.value.reason


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("http://county.test", "http://county.test/"),
        ("  https://county.test/a?b=c \n", "https://county.test/a?b=c"),
        ("HTTP://County.TEST/A", "http://county.test/A"),
        ("http://county.test/find?owner=JOHN SMITH", "http://county.test/find?owner=JOHN+SMITH"),
        ("http://bücher.test/ä", "http://xn--bcher-kva.test/%C3%A4"),
        ("http://a_b.county.test/%2F", "http://a_b.county.test/%2F"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
    ],
)
def test_an_address_is_read(text: str, read: str) -> None:
    assert str(parse_url(text).with_path(parse_url(text).raw_path, encoded=True, keep_query=True)) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "county.test/parcel",
        "http://",
        "http:///path",
        "http:county.test",
        "http://county.test:0/",
        "http://county.test:99999/",
        "http://exa mple.test/",
        "http://county.test\\@127.0.0.1/",
        "http://a..b/",
        "http://" + "a" * 64 + ".test/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://county.test/\x00",
        "http://county.test/a\r\nHost: other",
        "http://county.test/" + "a" * MAX_URL,
        "//county.test/",
    ],
)
def test_what_is_no_address_is_a_bad_url(text: str) -> None:
    assert reason(text) == "bad_url"


@pytest.mark.parametrize(
    "text",
    ["file:///etc/passwd", "ftp://county.test/", "gopher://x/", "javascript:alert(1)", "data:text/html,x", "ws://x/"],
)
def test_other_schemes_are_refused(text: str) -> None:
    assert reason(text) == "scheme_refused"


def test_a_redirect_is_read_relative_to_where_it_came_from() -> None:
    here = URL("http://county.test/a/b?c=d")
    assert str(parse_url("../e", base=here)) == "http://county.test/e"
    assert str(parse_url("//other.test/x", base=here)) == "http://other.test/x"
    assert str(parse_url("?page=2", base=here)) == "http://county.test/a/b?page=2"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@county.test/a", "http://county.test/a"),
        ("socks5://user:secret@proxy.test:1080", "socks5://proxy.test:1080"),
        ("http://county.test/mail@home", "http://county.test/mail@home"),
        ("http://county.test/?q=a@b", "http://county.test/?q=a@b"),
        ("http://user:sec/ret@county.test/", "…county.test/"),
        ("http://user:sec@0/ret@county.test/", "…county.test/"),
        ("user:secret@county.test", "…county.test"),
        ("http://county.test/a\nb", "http://county.test/a b"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_half_a_character_in_an_address_does_not_spoil_the_sentence() -> None:
    with pytest.raises(FetchError) as caught:
        parse_url("htt\ud800p://county.test/\udcff")
    caught.value.detail.encode("utf-8")


def test_a_long_address_is_shown_cut() -> None:
    assert len(redact_url("http://county.test/" + "a" * 5000)) == 300


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_failure(text: str) -> None:
    for candidate in (text, "http://" + text):
        with suppress(FetchError):
            assert parse_url(candidate).raw_host


@given(st.text(st.characters(codec="ascii", exclude_characters="?#"), min_size=1, max_size=20))
@example("//")
def test_no_password_is_ever_shown(password: str) -> None:
    secret = f"hunter2{password}hunter2"
    assert "hunter2" not in redact_url(f"http://user:{secret}@county.test/")
