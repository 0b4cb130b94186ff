"""Lists of URLs, and what a URL may be."""

from __future__ import annotations

import pytest
from reading import outline, read, rows

from lienworker.intake import Defaults, Reject


def test_a_url_a_line_with_comments_and_blank_lines() -> None:
    text = "# county list\n\n https://a.example/1 \nhttps://a.example/2#top\nhttps://a.example/3  # sold\n"

    found = rows(text, format="txt", defaults=Defaults(state="fl"))

    assert [(row.line, row.url, row.state) for row in found] == [
        (3, "https://a.example/1", "FL"),
        (4, "https://a.example/2#top", "FL"),
        (5, "https://a.example/3", "FL"),
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example",
        "HTTPS://A.example:8443/x?y=1#z",
        "http://127.0.0.1:80/",
        "http://[::1]:8080/x",
        "https://münchen.example/straße?q=ä",
        "https://a.example/" + "x" * 1_982,
    ],
)
def test_a_good_url_is_taken_as_it_is(url: str) -> None:
    assert [row.url for row in rows(f"{url}\n{url}\n", format="txt")] == [url, url]


@pytest.mark.parametrize(
    "url",
    [
        "a.example/1",
        "www.a.example/1",
        "ftp://a.example/1",
        "file:///etc/passwd",
        "javascript:alert(1)//",
        "http://",
        "http:///path",
        "http://?x=/1",
        "http://.../1",
        "http://user:secret@a.example/1",
        "http://user@a.example/1",
        "http://a.example\\@b.example/1",
        "http://a b.example/1",
        "http://a.example/1 2",
        "http://a.example/\x07",
        "http://a.example/\u200b1",
        "http://a.example:99999/1",
        "http://a.example:port/1",
        "http://[::1/1",
        "http://a.example/" + "x" * 2_000,
    ],
)
def test_a_bad_url_is_rejected_also_after_good_ones_of_the_same_site(url: str) -> None:
    text = f"http://a.example/0\n{url}\nhttp://a.example/2\n"

    assert outline(text, format="txt") == [(1, "ok"), (2, "bad_url"), (3, "ok")]


def test_a_site_that_only_begins_like_a_good_one_is_not_taken_for_it() -> None:
    text = "http://a.example/0\nhttp://a.example@b.example/1\nhttp://a.example:x\n"

    assert outline(text, format="txt") == [(1, "ok"), (2, "bad_url"), (3, "bad_url")]


def test_the_reason_never_repeats_a_password() -> None:
    _, reject = read("http://a.example/0\nhttp://user:secret@a.example/1\n", format="txt")

    assert isinstance(reject, Reject)
    assert "secret" not in reject.detail
