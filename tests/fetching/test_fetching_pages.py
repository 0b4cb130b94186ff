from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import pytest
from aiohttp import web
from fetching_servers import PAGE, always, failure, fetch, fetcher, page, pages, redirect, site

from lienworker.fetching import FetchRequest, NotModified


def test_a_page_comes_with_all_that_the_site_said_of_it() -> None:
    async def story() -> None:
        handler = always(
            Content_Type="Text/HTML; charset=Windows-1252",
            ETag='"v1"',
            Last_Modified="Sun, 01 Jun 2025 12:00:00 GMT",
        )
        async with site(handler) as county:
            got = page(await fetch(f"{county.url}/parcel?id=7#top"))
        assert got.url == f"{county.url}/parcel?id=7"
        assert (got.status, got.body, got.redirects) == (200, PAGE, 0)
        assert (got.content_type, got.charset) == ("text/html", "windows-1252")
        assert (got.etag, got.last_modified) == ('"v1"', "Sun, 01 Jun 2025 12:00:00 GMT")
        assert 0 <= got.elapsed_ms < 5000

    asyncio.run(story())


def test_we_say_who_we_are_and_what_we_can_read() -> None:
    async def story() -> None:
        async with site(always()) as county:
            page(await fetch(county.url))
        headers = county.seen[0].headers
        assert headers["User-Agent"] == "lienworker-test/1.0 (+https://county.test/bot)"
        assert headers["Accept"].startswith("text/html")
        assert headers["Accept-Language"].startswith("en-US")
        assert headers["Accept-Encoding"] == "gzip, deflate"
        assert "Cookie" not in headers

    asyncio.run(story())


def test_a_connection_is_used_again() -> None:
    async def story() -> None:
        async with site(always()) as county, fetcher() as one:
            for _ in range(3):
                page(await one.fetch(FetchRequest(county.url)))
            peers = {request.transport.get_extra_info("peername") for request in county.seen if request.transport}
            assert len(peers) == 1

    asyncio.run(story())


def test_credentials_in_the_address_are_used_but_not_shown() -> None:
    async def story() -> None:
        async with site(always()) as county:
            got = page(await fetch(f"http://clerk:hunter2@127.0.0.1:{county.port}/"))
        assert county.seen[0].headers["Authorization"].startswith("Basic ")
        assert "hunter2" not in got.url
        async with site(always(b"no", 500)) as county:
            failed = failure(await fetch(f"http://clerk:hunter2@127.0.0.1:{county.port}/"))
        assert "hunter2" not in failed.detail

    asyncio.run(story())


def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        same = request.headers.get("If-None-Match") == '"v1"'
        return web.Response(status=304) if same else web.Response(body=PAGE)

    async def story() -> None:
        async with site(handler) as county:
            assert isinstance(await fetch(county.url, etag='"v1"'), NotModified)
            page(await fetch(county.url, etag='"v0"'))

    asyncio.run(story())


def test_a_304_that_nobody_asked_for_is_a_protocol_error() -> None:
    async def story() -> None:
        async with site(always(b"", 304)) as county:
            assert failure(await fetch(county.url)).reason == "protocol_error"

    asyncio.run(story())


def test_the_page_behind_a_redirect_is_not_asked_whether_it_changed() -> None:
    async def story() -> None:
        async with site(pages(a=redirect("/b"), b=PAGE)) as county:
            page(await fetch(f"{county.url}/a", etag='"v1"'))
        assert [request.headers.get("If-None-Match") for request in county.seen] == ['"v1"', None]

    asyncio.run(story())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed_and_counted(status: int) -> None:
    async def story() -> None:
        async with site(pages(a=redirect("/b", status), b=redirect("c", status), c=PAGE)) as county:
            got = page(await fetch(f"{county.url}/a"))
        assert (got.url, got.redirects) == (f"{county.url}/c", 2)

    asyncio.run(story())


def test_a_redirect_in_a_circle_ends_at_once() -> None:
    async def story() -> None:
        async with site(pages(a=redirect("/b"), b=redirect("/a"))) as county:
            failed = failure(await fetch(f"{county.url}/a"))
        assert (failed.reason, failed.status) == ("too_many_redirects", 302)
        assert county.paths == ["/a", "/b"]

    asyncio.run(story())


def test_a_redirect_without_end_ends_at_the_limit() -> None:
    async def deeper(request: web.BaseRequest) -> web.Response:
        return redirect(request.path + "x")

    async def story() -> None:
        async with site(deeper) as county:
            assert failure(await fetch(f"{county.url}/x", max_redirects=3)).reason == "too_many_redirects"
        assert county.paths == ["/x", "/xx", "/xxx", "/xxxx"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("location", "reason"), [("http://[::1", "bad_url"), ("", "protocol_error"), ("mailto:x@y", "scheme_refused")]
)
def test_a_redirect_to_nowhere_says_so(location: str, reason: str) -> None:
    async def story() -> None:
        async with site(always(b"", 302, Location=location)) as county:
            assert failure(await fetch(county.url)).reason == reason

    asyncio.run(story())


def test_a_cookie_set_by_a_redirect_comes_back() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        if request.cookies.get("session") == "42":
            return web.Response(body=PAGE)
        return redirect(request.path, Set_Cookie="session=42; Path=/; HttpOnly")

    async def story() -> None:
        async with site(handler) as county, fetcher() as one:
            for _ in range(2):  # the second fetch knows nothing of the first one's cookie
                assert page(await one.fetch(FetchRequest(f"{county.url}/parcel"))).redirects == 1
        assert len(county.seen) == 4

    asyncio.run(story())


def test_a_cookie_never_goes_to_another_host() -> None:
    async def story() -> None:
        async with site(always(), host="::1") as other:
            first = redirect(f"{other.url}/", Set_Cookie="session=42; Path=/; Domain=1")
            async with site(pages(a=first)) as county:
                page(await fetch(f"{county.url}/a"))
            assert "Cookie" not in other.seen[0].headers

    asyncio.run(story())


def test_a_page_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    async def story() -> None:
        async with site(always(b"x" * 5000)) as county:
            assert len(page(await fetch(county.url, max_bytes=5000)).body) == 5000
            failed = failure(await fetch(county.url, max_bytes=4999))
        assert (failed.reason, failed.status, failed.retryable) == ("too_large", 200, False)

    asyncio.run(story())


def test_a_page_without_announced_length_is_cut_at_the_limit_too() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async def story() -> None:
        async with site(handler) as county:
            assert failure(await fetch(county.url, max_bytes=100_000)).reason == "too_large"

    asyncio.run(story())


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(PAGE, mtime=0)),
        ("X-GZip", gzip.compress(PAGE, mtime=0)),
        ("gzip", gzip.compress(PAGE[:10], mtime=0) + gzip.compress(PAGE[10:], mtime=0)),
        ("gzip", gzip.compress(PAGE, mtime=0) + b"\x00rubbish"),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", raw_deflate(PAGE)),
        ("identity", PAGE),
        ("UTF-8", PAGE),
    ],
)
def test_a_packed_page_is_unpacked(encoding: str, body: bytes) -> None:
    async def story() -> None:
        async with site(always(body, Content_Encoding=encoding)) as county:
            assert page(await fetch(county.url)).body == PAGE

    asyncio.run(story())


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(PAGE, mtime=0)[:-9]),
        ("gzip", PAGE),
        ("gzip", gzip.compress(PAGE, mtime=0)[:20] + b"\xff" * 30),
        ("gzip", gzip.compress(b"", mtime=0) * 1000),
        ("deflate", zlib.compress(PAGE)[:-5]),
        ("deflate", b"\xff\xff\xff\xff"),
        ("br", PAGE),
        ("zstd", PAGE),
        ("gzip, gzip", gzip.compress(gzip.compress(PAGE, mtime=0), mtime=0)),
    ],
)
def test_a_page_that_cannot_be_unpacked_says_so(encoding: str, body: bytes) -> None:
    async def story() -> None:
        async with site(always(body, Content_Encoding=encoding)) as county:
            failed = failure(await fetch(county.url))
        assert (failed.reason, failed.retryable) == ("bad_encoding", True)

    asyncio.run(story())


def test_a_decompression_bomb_takes_no_more_memory_than_the_limit_allows() -> None:
    bomb = gzip.compress(b"\x00" * 200_000_000)
    limit = 2_000_000

    async def story() -> int:
        async with site(always(bomb, Content_Encoding="gzip")) as county, fetcher(max_bytes=limit) as one:
            tracemalloc.start()
            try:
                assert failure(await one.fetch(FetchRequest(county.url))).reason == "too_large"
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    assert asyncio.run(story()) < limit + 1_500_000


@pytest.mark.parametrize("body", [b"", b" \r\n\t "])
def test_an_empty_page_is_a_failure(body: bytes) -> None:
    async def story() -> None:
        async with site(always(body)) as county:
            assert failure(await fetch(county.url)).reason == "empty_body"
        async with site(always(b"", 204)) as county:
            assert failure(await fetch(county.url)).reason == "empty_body"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("status", "reason", "host_fault"),
    [
        (404, "http_404", False),
        (410, "http_410", False),
        (403, "http_403", False),
        (418, "http_418", False),
        (429, "rate_limited", True),
        (500, "http_500", False),
        (503, "http_503", True),
        (300, "http_300", False),
        (206, "protocol_error", False),
    ],
)
def test_a_refusal_has_its_number_and_its_words(status: int, reason: str, host_fault: bool) -> None:
    async def story() -> None:
        async with site(always(b"Come back later", status, Retry_After="30")) as county:
            failed = failure(await fetch(county.url))
        assert (failed.reason, failed.status, failed.host_fault) == (reason, status, host_fault)
        if status != 206:
            assert (failed.body, failed.retry_after) == (b"Come back later", 30.0)
            assert str(status) in failed.detail

    asyncio.run(story())


def test_retry_after_as_a_date_is_counted_by_the_sites_own_clock() -> None:
    async def story() -> None:
        dates = {"Date": "Sat, 01 Jan 2000 00:00:00 GMT", "Retry-After": "Sat, 01 Jan 2000 00:02:00 GMT"}
        async with site(always(b"no", 503, **dates)) as county:
            assert failure(await fetch(county.url)).retry_after == 120.0

    asyncio.run(story())


def test_of_an_error_page_only_the_beginning_is_kept() -> None:
    async def story() -> None:
        async with site(always(gzip.compress(b"e" * 5_000_000), 500, Content_Encoding="gzip")) as county:
            assert failure(await fetch(county.url)).body == b"e" * 65536

    asyncio.run(story())


def test_a_closed_fetcher_says_so() -> None:
    async def story() -> None:
        async with fetcher() as one:
            pass
        with pytest.raises(RuntimeError, match="closed"):
            await one.fetch(FetchRequest("http://127.0.0.1/"))

    asyncio.run(story())
