"""The limit: two processes of aiohttp, parsel, gzip and SQLite. No queue, no task state, no retry, no politeness.

Nothing survives a kill but the rows that were committed, and nobody knows which pages are missing.

    python -m benchmarks.speed.bare_loop --site http://127.0.0.1:1234 --pages 2000 --folder out
"""

from __future__ import annotations

import asyncio
import multiprocessing
from pathlib import Path

import aiohttp

from benchmarks.speed import work
from benchmarks.speed.measuring import contender_arguments, urls_of

IN_THE_AIR = 16


async def loop(urls: list[str], folder: Path) -> None:
    rows = work.open_rows(folder)
    waiting = iter(urls)
    done: list[tuple[str, str, dict[str, str | None]]] = []

    async def visit(session: aiohttp.ClientSession) -> None:
        for url in waiting:
            async with session.get(url) as reply:
                body = await reply.read()
            done.append((url, work.keep_page(folder, url, body), work.parse(body)))
            if len(done) >= work.GROUP:
                group, done[:] = list(done), []
                work.keep_rows(rows, group)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_THE_AIR)) as session:
        await asyncio.gather(*(visit(session) for _ in range(IN_THE_AIR)))
    work.keep_rows(rows, done)


def run(urls: list[str], folder: Path) -> None:
    asyncio.run(loop(urls, folder))


if __name__ == "__main__":
    chosen = contender_arguments(__doc__)
    urls = urls_of(chosen.site, chosen.pages)
    work.open_rows(chosen.folder).close()
    halves = [multiprocessing.Process(target=run, args=(urls[n::2], chosen.folder)) for n in range(2)]
    for half in halves:
        half.start()
    for half in halves:
        half.join()
