"""How much of a bare aiohttp loop's speed the Fetcher keeps.

    python tests/fetching/bench_fetcher.py [--pages 2000] [--rounds 9] [--robots] [--profile]

A server in a process of its own sends pages of 50 KB; the bare loop and the Fetcher take turns, each turn in a
fresh process (or the second would inherit the first one's heap), with 64 requests in flight. Printed are the
ratios by the clock and by the client's CPU time, which others on the machine disturb less, and their medians.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import multiprocessing
import pstats
import statistics
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

import aiohttp
from aiohttp import web

from lienworker.fetching import Fetched, Fetcher, FetchOptions, FetchRequest

PAGE = (b"<tr><td>Parcel</td><td>12-34-567</td></tr>\n" * 1200)[:50_000]
ROBOTS = b"User-agent: *\nDisallow: /admin/\nDisallow: /*.pdf$\nAllow: /parcel/\nCrawl-delay: 1\n"
IN_FLIGHT = 64

Rates = tuple[float, float]
One = Callable[[str], Awaitable[int]]


def serve(ready: Connection) -> None:
    async def page(request: web.BaseRequest) -> web.Response:
        body = ROBOTS if request.path == "/robots.txt" else PAGE
        return web.Response(body=body, content_type="text/html", charset="utf-8")

    async def main() -> None:
        runner = web.ServerRunner(web.Server(page))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


async def fetch_all(urls: list[str], one: One) -> Rates:
    """Pages a second: by the clock, and by this process's CPU time."""
    waiting = iter(urls)

    async def work() -> None:
        for url in waiting:
            assert await one(url) == len(PAGE)

    clock, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return len(urls) / (time.perf_counter() - clock), len(urls) / (time.process_time() - cpu)


async def bare(urls: list[str]) -> Rates:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as session:

        async def one(url: str) -> int:
            async with session.get(url) as response:
                return len(await response.read())

        return await fetch_all(urls, one)


async def ours(urls: list[str], robots: bool) -> Rates:
    fetcher = Fetcher(FetchOptions("lienworker-bench/1.0", 5, 5, 30, 10**7, 5, robots, ("127.0.0.1",)))

    async def one(url: str) -> int:
        outcome = await fetcher.fetch(FetchRequest(url))
        assert isinstance(outcome, Fetched), outcome
        return len(outcome.body)

    try:
        return await fetch_all(urls, one)
    finally:
        await fetcher.close()


def turn(answer: Connection, urls: list[str], who: str) -> None:
    answer.send(asyncio.run(bare(urls) if who == "bare" else ours(urls, who == "robots")))


def measure(urls: list[str], who: str) -> Rates:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=turn, args=(there, urls, who))
    process.start()
    rates: Rates = here.recv()
    process.join()
    return rates


def compare(urls: list[str], who: str, rounds: int) -> None:
    by_clock, by_cpu = [], []
    for number in range(rounds):
        order = ("bare", who) if number % 2 else (who, "bare")
        rates = {name: measure(urls, name) for name in order}
        by_clock.append(rates[who][0] / rates["bare"][0])
        by_cpu.append(rates[who][1] / rates["bare"][1])
        print(
            f"bare {rates['bare'][0]:6.0f}/s   fetcher {rates[who][0]:6.0f}/s   "
            f"ratio by clock {by_clock[-1]:.2f}, by CPU {by_cpu[-1]:.2f}"
        )
    print(f"median ratio by clock {statistics.median(by_clock):.2f}, by CPU {statistics.median(by_cpu):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--robots", action="store_true", help="obey robots.txt")
    parser.add_argument("--profile", action="store_true", help="profile one round of the Fetcher")
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    site = f"http://127.0.0.1:{here.recv()}"
    urls = [f"{site}/parcel/{number}" for number in range(arguments.pages)]
    if arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(lambda: asyncio.run(ours(urls, arguments.robots)))
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    else:
        compare(urls, "robots" if arguments.robots else "fetcher", arguments.rounds)
    server.terminate()


if __name__ == "__main__":
    main()
