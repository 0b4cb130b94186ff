from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from fetching_servers import (
    PAGE,
    Proxy,
    always,
    failure,
    fetch,
    fetcher,
    http_proxy,
    listening,
    names,
    page,
    pages,
    redirect,
    refused_port,
    replying,
    site,
    socks_proxy,
)

from lienworker.fetching import FetchRequest
from lienworker.fetching.proxies import _MAX_SOCKS_SESSIONS

# The proxies resolve names by themselves; from here nobody knows county.test.
KINDS = pytest.mark.parametrize(("scheme", "serve"), [("http", http_proxy), ("socks5", socks_proxy)])


@KINDS
def test_a_page_comes_through_a_proxy(scheme: str, serve: object) -> None:
    async def story() -> None:
        async with site(always()) as county, serve(Proxy(leads_to=county.port)) as proxy:  # type: ignore[operator]
            got = page(
                await fetch("http://county.test/a?b", proxy=f"{scheme}://127.0.0.1:{proxy.port}", lookup=names())
            )
        assert (got.body, got.url) == (PAGE, "http://county.test/a?b")
        assert proxy.asked == ["http://county.test/a?b" if scheme == "http" else "county.test:80"]

    asyncio.run(story())


@KINDS
def test_a_proxy_gets_its_credentials_and_nobody_else_does(scheme: str, serve: object) -> None:
    async def story() -> None:
        async with (
            site(always()) as county,
            serve(Proxy(leads_to=county.port, login=("me", "p@ss"))) as proxy,  # type: ignore[operator]
        ):
            there = f"127.0.0.1:{proxy.port}"
            page(await fetch("http://county.test/", proxy=f"{scheme}://me:p%40ss@{there}", lookup=names()))
            failed = failure(await fetch("http://county.test/", proxy=f"{scheme}://me:wrong@{there}", lookup=names()))
        assert (failed.reason, failed.retryable, failed.host_fault) == ("proxy_failed", True, False)
        assert "wrong" not in repr(failed)
        assert "Proxy-Authorization" not in county.seen[0].headers

    asyncio.run(story())


@KINDS
def test_robots_txt_and_redirects_go_through_the_proxy_too(scheme: str, serve: object) -> None:
    async def story() -> None:
        handler = pages(robots_txt=b"User-agent: *\nDisallow: /secret", a=redirect("/secret"), secret=PAGE)
        async with site(handler) as county, serve(Proxy(leads_to=county.port)) as proxy:  # type: ignore[operator]
            through = f"{scheme}://127.0.0.1:{proxy.port}"
            outcome = await fetch("http://county.test/a", proxy=through, lookup=names(), obey_robots=True)
        assert failure(outcome).reason == "robots_denied"
        assert county.paths == ["/robots.txt", "/a"]

    asyncio.run(story())


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_a_proxy_that_is_down_is_not_the_sites_fault(scheme: str) -> None:
    async def story() -> None:
        through = f"{scheme}://me:hunter2@127.0.0.1:{await refused_port()}"
        failed = failure(await fetch("http://county.test/", proxy=through, lookup=names()))
        assert (failed.reason, failed.retryable, failed.host_fault) == ("proxy_failed", True, False)
        assert "hunter2" not in repr(failed)

    asyncio.run(story())


def test_a_proxy_that_refuses_to_connect_to_a_secure_site_is_not_the_sites_fault() -> None:
    async def story() -> None:
        async with listening(replying(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")) as port:
            through = f"http://me:hunter2@127.0.0.1:{port}"
            failed = failure(await fetch("https://county.test/", proxy=through, lookup=names()))
        assert (failed.reason, failed.host_fault) == ("proxy_failed", False)
        assert "hunter2" not in repr(failed)

    asyncio.run(story())


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_with_an_unknown_name_is_not_the_sites_fault(scheme: str) -> None:
    outcome = asyncio.run(fetch("http://county.test/", proxy=f"{scheme}://proxy.test:1080", lookup=names()))
    assert failure(outcome).reason == "proxy_failed"


@pytest.mark.parametrize(("answer", "reason"), [(1, "proxy_failed"), (2, "proxy_failed"), (4, "connect_failed")])
def test_a_socks_proxy_says_whose_fault_it_is(answer: int, reason: str) -> None:
    async def story() -> None:
        async with socks_proxy(Proxy(answer=answer)) as proxy:
            through = f"socks5://127.0.0.1:{proxy.port}"
            assert failure(await fetch("http://county.test/", proxy=through, lookup=names())).reason == reason

    asyncio.run(story())


def test_a_tls_failure_behind_a_socks_proxy_is_still_one() -> None:
    async def story() -> None:
        async with site(always()) as county, socks_proxy(Proxy(leads_to=county.port)) as proxy:
            through = f"socks5://127.0.0.1:{proxy.port}"
            assert failure(await fetch("https://county.test/", proxy=through, lookup=names())).reason == "tls_failed"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("proxy", "reason"),
    [
        ("http://10.0.0.1:3128", "private_address"),
        ("socks5://169.254.169.254:80", "private_address"),
        ("socks5h://[::1]:1080", "private_address"),
        ("http://2130706433:3128", "private_address"),
        ("http://inside.test:3128", "private_address"),
        ("socks5://inside.test", "private_address"),
        ("ftp://me:hunter2@proxy.test", "scheme_refused"),
        ("socks4://proxy.test", "scheme_refused"),
        ("me:hunter2@proxy.test:1080", "scheme_refused"),
        ("http://me:hunter2@:3128", "bad_url"),
        ("http://me:hunt/er2@proxy.test", "bad_url"),
        ("", "scheme_refused"),
    ],
)
def test_a_proxy_is_guarded_as_any_other_address(proxy: str, reason: str) -> None:
    lookup = names(inside_test="10.0.0.1")
    failed = failure(asyncio.run(fetch("http://county.test/", proxy=proxy, lookup=lookup, allow_private=())))
    assert (failed.reason, failed.retryable) == (reason, False)
    assert "proxy" in failed.detail.lower()
    assert "hunt" not in repr(failed)


@KINDS
@pytest.mark.parametrize("target", ["http://10.0.0.1/", "http://[::ffff:a00:1]/", "http://inside.test/"])
def test_a_proxy_is_no_way_into_the_private_network(scheme: str, serve: object, target: str) -> None:
    async def story() -> None:
        async with serve(Proxy()) as proxy:  # type: ignore[operator]
            through = f"{scheme}://127.0.0.1:{proxy.port}"
            outcome = await fetch(target, proxy=through, lookup=names(inside_test="10.0.0.1"))
        assert failure(outcome).reason == "private_address"
        assert proxy.asked == []

    asyncio.run(story())


def test_a_socks_proxy_is_connected_to_at_the_address_that_was_checked() -> None:
    async def story() -> None:
        async with site(always()) as county, socks_proxy(Proxy(leads_to=county.port)) as proxy:
            answers = ["127.0.0.1", "10.0.0.1"]

            async def changing(host: str) -> list[str]:
                if host != "proxy.test":
                    raise OSError
                return [answers.pop(0)]

            through = f"socks5://proxy.test:{proxy.port}"
            page(await fetch("http://county.test/", proxy=through, lookup=changing))
            assert answers == ["10.0.0.1"]

    asyncio.run(story())


def test_only_a_few_socks_sessions_are_kept() -> None:
    async def story() -> None:
        async with (
            site(always()) as county,
            socks_proxy(Proxy(leads_to=county.port)) as proxy,
            fetcher(lookup=names()) as one,
        ):
            requests = [
                FetchRequest("http://county.test/", proxy=f"socks5://user{number}:x@127.0.0.1:{proxy.port}")
                for number in range(_MAX_SOCKS_SESSIONS + 5)
            ]
            outcomes = await asyncio.gather(*map(one.fetch, requests))
            assert all(page(outcome).body == PAGE for outcome in outcomes)
            assert one._proxies is not None
            assert len(one._proxies._socks) == _MAX_SOCKS_SESSIONS

    asyncio.run(story())


def test_a_socks_connection_is_used_again() -> None:
    async def story() -> None:
        async with (
            site(always()) as county,
            socks_proxy(Proxy(leads_to=county.port)) as proxy,
            fetcher(lookup=names()) as one,
        ):
            for _ in range(3):
                page(await one.fetch(FetchRequest("http://county.test/", proxy=f"socks5://127.0.0.1:{proxy.port}")))
            assert len(proxy.asked) == 1

    asyncio.run(story())


def test_without_a_socks_proxy_its_library_is_not_loaded() -> None:
    code = "import sys, lienworker.fetching; sys.exit('aiohttp_socks' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
