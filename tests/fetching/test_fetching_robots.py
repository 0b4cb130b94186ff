from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from fetching_servers import PAGE, failure, fetch, fetcher, listening, page, pages, redirect, replying, site
from yarl import URL

from lienworker.fetching import FetchRequest
from lienworker.fetching.failures import FetchError
from lienworker.fetching.robots import FAILURE_TTL, Robots, product_token

RULES = b"User-agent: *\nDisallow: /private\nCrawl-delay: 2.5\n\nUser-agent: lienworker-test\nDisallow: /secret\n"
COUNTY = URL("http://county.test/page")


def test_robots_txt_is_obeyed_and_read_once() -> None:
    async def story() -> None:
        handler = pages(robots_txt=b"User-agent: *\nDisallow: /secret\nCrawl-delay: 2.5", page=PAGE, secret=PAGE)
        async with site(handler) as county, fetcher(obey_robots=True) as one:
            assert one.crawl_delay(county.url) is None
            page(await one.fetch(FetchRequest(f"{county.url}/page")))
            failed = failure(await one.fetch(FetchRequest(f"{county.url}/secret")))
            assert (failed.reason, failed.retryable, failed.host_fault) == ("robots_denied", False, False)
            assert one.crawl_delay(f"{county.url}/anything") == 2.5
            assert one.crawl_delay("not an address") is None
        assert county.paths == ["/robots.txt", "/page"]

    asyncio.run(story())


def test_robots_txt_is_not_asked_for_where_a_setting_says_so() -> None:
    async def story() -> None:
        async with site(pages(robots_txt=b"User-agent: *\nDisallow: /", page=PAGE)) as county:
            page(await fetch(f"{county.url}/page", obey_robots=False))
        assert county.paths == ["/page"]

    asyncio.run(story())


def test_rules_for_us_by_name_go_before_rules_for_all() -> None:
    async def story() -> None:
        handler = pages(robots_txt=RULES, private=PAGE, secret=PAGE)
        async with site(handler) as county, fetcher(obey_robots=True) as one:
            page(await one.fetch(FetchRequest(f"{county.url}/private")))
            assert failure(await one.fetch(FetchRequest(f"{county.url}/secret"))).reason == "robots_denied"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [("lienworker/0.1 (+https://x)", "lienworker"), ("lienworker", "lienworker"), ("  a b", "a"), ("", "")],
)
def test_our_name_is_the_first_word(user_agent: str, token: str) -> None:
    assert product_token(user_agent) == token


def test_a_redirect_is_checked_against_the_rules_of_where_it_leads() -> None:
    async def story() -> None:
        strict = pages(robots_txt=b"User-agent: *\nDisallow: /", page=PAGE)
        async with site(strict) as other, site(pages(a=redirect(f"{other.url}/page"))) as county:
            assert failure(await fetch(f"{county.url}/a", obey_robots=True)).reason == "robots_denied"
        assert other.paths == ["/robots.txt"]

    asyncio.run(story())


def test_robots_txt_itself_may_be_redirected() -> None:
    async def story() -> None:
        moved = pages(robots_txt=redirect("/rules"), rules=b"User-agent: *\nDisallow: /page", page=PAGE)
        async with site(moved) as county:
            assert failure(await fetch(f"{county.url}/page", obey_robots=True)).reason == "robots_denied"

    asyncio.run(story())


def test_many_fetches_of_one_site_ask_for_robots_txt_once() -> None:
    async def story() -> None:
        async with site(pages(robots_txt=RULES, page=PAGE)) as county, fetcher(obey_robots=True) as one:
            await asyncio.gather(*(one.fetch(FetchRequest(f"{county.url}/page")) for _ in range(10)))
        assert county.paths.count("/robots.txt") == 1
        assert county.paths.count("/page") == 10

    asyncio.run(story())


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_site_without_a_readable_robots_txt_allows_everything(status: int) -> None:
    async def story() -> None:
        async with site(pages(robots_txt=web.Response(status=status), page=PAGE)) as county:
            page(await fetch(f"{county.url}/page", obey_robots=True))

    asyncio.run(story())


def test_a_robots_txt_that_breaks_off_or_hangs_does_not_keep_us_out() -> None:
    async def story() -> None:
        async with listening(replying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")) as port:
            failed = failure(await fetch(f"http://127.0.0.1:{port}/page", obey_robots=True))
        assert failed.reason == "protocol_error"  # the page's own

    asyncio.run(story())


def test_of_a_huge_robots_txt_the_beginning_counts() -> None:
    async def story() -> None:
        huge = b"User-agent: *\nDisallow: /page\n" + b"# padding\n" * 100_000 + b"Disallow: /late\n"
        async with site(pages(robots_txt=huge, page=PAGE, late=PAGE)) as county, fetcher(obey_robots=True) as one:
            assert failure(await one.fetch(FetchRequest(f"{county.url}/page"))).reason == "robots_denied"
            page(await one.fetch(FetchRequest(f"{county.url}/late")))

    asyncio.run(story())


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"<html>404 in disguise</html>", b"Disallow", b"\n" * 1000])
def test_a_robots_txt_that_is_none_allows_everything(body: bytes) -> None:
    async def story() -> None:
        async with site(pages(robots_txt=body, page=PAGE)) as county:
            page(await fetch(f"{county.url}/page", obey_robots=True))

    asyncio.run(story())


class Loads:
    """Answers in turn, and counts."""

    def __init__(self, *answers: bytes | FetchError) -> None:
        self.answers = list(answers)
        self.now = 0.0

    async def __call__(self, url: URL, proxy: str | None) -> bytes:
        assert str(url) == "http://county.test/robots.txt"
        answer = self.answers.pop(0)
        if isinstance(answer, FetchError):
            raise answer
        return answer

    def robots(self) -> Robots:
        return Robots("lienworker/1", 3600, self, clock=lambda: self.now)


def test_rules_are_read_again_after_their_time() -> None:
    async def story() -> None:
        loads = Loads(b"User-agent: *\nDisallow: /", b"User-agent: *\nDisallow: /other")
        robots = loads.robots()
        assert not await robots.allow(COUNTY, None)
        loads.now = 3599
        assert not await robots.allow(COUNTY, None)
        loads.now = 3600
        assert await robots.allow(COUNTY, None)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("failed", "kept"),
    [
        (FetchError("http_404", "", status=404), 3600),
        (FetchError("empty_body", "", status=200), 3600),
        (FetchError("http_503", "", status=503), FAILURE_TTL),
        (FetchError("rate_limited", "", status=429), FAILURE_TTL),
        (FetchError("connect_failed", ""), FAILURE_TTL),
    ],
)
def test_a_failed_try_is_believed_only_briefly(failed: FetchError, kept: float) -> None:
    async def story() -> None:
        loads = Loads(failed, b"User-agent: *\nDisallow: /")
        robots = loads.robots()
        assert await robots.allow(COUNTY, None)
        loads.now = kept - 1
        assert await robots.allow(COUNTY, None)
        loads.now = kept
        assert not await robots.allow(COUNTY, None)

    asyncio.run(story())


def test_who_is_cancelled_while_waiting_for_robots_txt_takes_it_from_nobody() -> None:
    async def story() -> None:
        release = asyncio.Event()

        async def load(url: URL, proxy: str | None) -> bytes:
            await release.wait()
            return b"User-agent: *\nDisallow: /"

        robots = Robots("lienworker", 3600, load)
        waiting = [asyncio.create_task(robots.allow(COUNTY, None)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        release.set()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError)
        assert answers[1:] == [False, False]

    asyncio.run(story())
