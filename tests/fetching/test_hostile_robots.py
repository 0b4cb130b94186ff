"""robots.txt files that are meant to hurt: bombs, absurd delays, patterns that take for ever, strangers' proxies."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import subprocess
import sys
import textwrap
import time

import pytest
from aiohttp import web
from fetching_servers import PAGE, Proxy, failure, fetcher, http_proxy, page, pages, site
from protego import Protego
from yarl import URL

from lienworker.fetching import FetchRequest
from lienworker.fetching.robots import MAX_CRAWL_DELAY, MAX_LINE, MAX_RULES_TEXT, Robots, rules_for

TOKEN = "lienworker"
_NAMES = "".join(f"User-agent: a{n}\n" for n in range(4_000))
_RULES = "".join(f"Disallow: /{n}\n" for n in range(5_000))
BOMBS = {
    "names and rules": _NAMES + "User-agent: *\n" + _RULES,
    "our name in many spellings": "".join(f"User-agent: lien{'*' * n}worker\n" for n in range(500)) + _RULES,
    "beginnings of our name": "".join(f"User-agent: {TOKEN[: n % 10 + 1]}\n" for n in range(9_000)) + _RULES,
    "stars": "User-agent: *\n" + ("Disallow: /" + "*a" * 900 + "b\n") * 280,
    "stars and dollars": "User-agent: *\n" + ("Disallow: /" + "*$" * 900 + "\n") * 280,
    "different patterns": "User-agent: *\n" + "".join(f"Allow: /{n}*index.html\n" for n in range(20_000)),
    "one long line": "User-agent: *\nDisallow: /" + "*a" * 250_000,
    "nothing": " \n" * 250_000,
    "sitemaps": "User-agent: *\n" + "Sitemap: http://x/\n" * 25_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_becomes_a_short_list_of_rules_in_no_time(name: str) -> None:
    began = time.process_time()
    text = rules_for(BOMBS[name][:524_288], TOKEN)
    rules = Protego.parse(text)
    for _ in range(10):
        rules.can_fetch("http://county.example/" + "a" * 2_000, TOKEN)
    assert time.process_time() - began < 5
    assert len(text) <= MAX_RULES_TEXT * 1.2
    assert text.count("User-agent") <= 1


def test_rules_that_are_cut_out_say_the_same_as_the_whole_file() -> None:
    lines = [
        "User-agent: *", "User-agent: lienworker", "user agent: lien", "User-agent: other", "User-agent lienworker",
        "useragent: LIENWORKER*", "Disallow: /a", "Disallow /b", "Disallow:", "Allow: /a/x", "Allow: /",
        "Dissallow: /c", "Crawl-delay: 3", "crawl delay: 0.5", "# comment", "", "Disallow: /*?q=$",
        "Disallow: / # all", "Sitemap: http://x",
    ]  # fmt: skip
    dice = random.Random(8)
    for _ in range(3_000):
        text = "\n".join(dice.choice(lines) for _ in range(dice.randint(1, 10)))
        whole, cut = Protego.parse(text), Protego.parse(rules_for(text, TOKEN))
        assert cut.crawl_delay(TOKEN) == whole.crawl_delay(TOKEN), text
        for path in ("/a", "/a/x", "/b", "/c?q=", "/"):
            url = f"http://county.example{path}"
            assert cut.can_fetch(url, TOKEN) == whole.can_fetch(url, TOKEN), (text, path)


def test_a_line_that_is_too_long_is_passed_over_and_the_others_count() -> None:
    text = f"User-agent: *\nDisallow: /{'x' * MAX_LINE}\nDisallow: /private\n"
    assert rules_for(text, TOKEN) == "User-agent: *\nDisallow: /private"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("2.5", 2.5),
        ("1e300", MAX_CRAWL_DELAY),
        ("1e9", MAX_CRAWL_DELAY),
        ("9" * 1500, None),  # as a float it is infinite
        ("9" * 300, MAX_CRAWL_DELAY),
        ("inf", None),
        ("-inf", None),
        ("nan", None),
        ("-1", None),
        ("0", None),
        ("0x10", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_crawl_delay_is_a_number_of_seconds_or_none(said: str, wanted: float | None) -> None:
    async def story() -> None:
        rules = f"User-agent: *\nCrawl-delay: {said}\n".encode()
        async with site(pages(robots_txt=rules, page=PAGE)) as county, fetcher(obey_robots=True) as one:
            page(await one.fetch(FetchRequest(f"{county.url}/page")))
            assert one.crawl_delay(f"{county.url}/page") == wanted

    asyncio.run(story())


_CHILD = """
import asyncio, json, sys
from tests.harness.memory import peak_kb
sys.path.insert(0, {folder!r})
from fetching_servers import fetcher
from lienworker.fetching import FetchRequest

async def story(urls):
    async with fetcher(obey_robots=True) as one:
        before = peak_kb()
        outcomes = await asyncio.gather(*(one.fetch(FetchRequest(url)) for url in urls))
        print(json.dumps([peak_kb() - before,
                          [type(outcome).__name__ for outcome in outcomes]]))

asyncio.run(story(json.loads(sys.argv[1])))
"""


def _in_a_process_of_its_own(*arguments: object) -> tuple[int, list[str]]:
    from pathlib import Path

    script = textwrap.dedent(_CHILD.format(folder=str(Path(__file__).parent)))
    command = [sys.executable, "-c", script, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    grown, outcomes = json.loads(done.stdout)
    return grown, outcomes


def test_sixty_four_bombs_at_once_take_little_memory() -> None:
    """Packed ones, too: the cap counts what they unpack to."""
    packed = gzip.compress((BOMBS["names and rules"] + "#" * 5_000_000).encode())

    async def handler(request: web.BaseRequest) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(body=packed, headers={"Content-Encoding": "gzip"})
        return web.Response(body=PAGE)

    async def many() -> tuple[int, list[str]]:
        sites = [site(handler) for _ in range(64)]
        opened = [await one.__aenter__() for one in sites]
        try:
            return await asyncio.to_thread(_in_a_process_of_its_own, *(f"{one.url}/page" for one in opened))
        finally:
            for one in sites:
                await one.__aexit__(None, None, None)

    grown_kb, outcomes = asyncio.run(many())
    assert set(outcomes) == {"Fetched"}
    assert grown_kb < 200_000


def test_rules_of_many_origins_stay_within_their_bound() -> None:
    async def story() -> None:
        async def load(url: URL, proxy: str | None) -> bytes:
            return BOMBS["different patterns"].encode()

        robots = Robots(f"{TOKEN}/1", 3600, load)
        for n in range(60):
            await robots.allow(URL(f"http://c{n}.example/"), None)
        assert 2 <= sum(robots.knows(URL(f"http://c{n}.example/"), None) for n in range(60)) <= 33
        assert robots.knows(URL("http://c59.example/"), None), "the newest is known"

    asyncio.run(story())


def test_what_a_proxy_says_of_robots_txt_is_believed_of_that_proxy_only() -> None:
    async def story() -> None:
        strict = pages(robots_txt=b"User-agent: *\nDisallow: /\nCrawl-delay: 3000\n")
        kind = pages(robots_txt=b"User-agent: *\nCrawl-delay: 2\n", page=PAGE)
        async with (
            site(strict) as liar,
            site(kind) as county,
            http_proxy(Proxy(leads_to=liar.port)) as proxy,
            fetcher(obey_robots=True) as one,
        ):
            url = f"{county.url}/page"
            asked = FetchRequest(url, proxy=f"http://127.0.0.1:{proxy.port}", is_own_proxy=True)
            assert failure(await one.fetch(asked)).reason == "robots_denied"
            page(await one.fetch(FetchRequest(url)))
            assert one.crawl_delay(url) == 2
            assert failure(await one.fetch(asked)).reason == "robots_denied"
        assert county.paths == ["/robots.txt", "/page"]

    asyncio.run(story())


def test_one_robots_txt_is_read_for_all_spellings_of_a_host() -> None:
    async def story() -> None:
        loads: list[str] = []

        async def load(url: URL, proxy: str | None) -> bytes:
            loads.append(str(url))
            return b"User-agent: *\nDisallow: /"

        robots = Robots(f"{TOKEN}/1", 3600, load)
        for text in ("http://county.example/", "http://COUNTY.example./", "http://ｃounty．example:80/"):
            assert not await robots.allow(URL(text), None)
        assert len(loads) == 1

    asyncio.run(story())
