"""Scrapy: a spider with a JOBDIR and a pipeline that keeps pages and rows. One process, or two with half the URLs each.

A JOBDIR keeps the requests that wait; those in the air at a kill are lost or asked for again.

    python -m benchmarks.speed.with_scrapy --site http://127.0.0.1:1234 --pages 2000 --folder out [--processes 2]
"""

from __future__ import annotations

import multiprocessing
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

from benchmarks.speed import work
from benchmarks.speed.measuring import contender_arguments, urls_of
from benchmarks.speed.page import PATHS

_SETTINGS: dict[str, Any] = {
    "LOG_LEVEL": "WARNING",
    "ROBOTSTXT_OBEY": False,
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
    "DOWNLOAD_DELAY": 0,
    "RETRY_ENABLED": True,
    "TELNETCONSOLE_ENABLED": False,
    "COOKIES_ENABLED": False,
    "ITEM_PIPELINES": {"benchmarks.speed.with_scrapy.Keeper": 1},
}


class Parcels(scrapy.Spider):
    name = "parcels"
    urls: list[str]
    folder: Path

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response: Response) -> Any:
        data = {name: response.xpath(path).get() for name, path in PATHS.items()}
        yield {"url": response.url, "body": response.body, "data": data}


class Keeper:
    """Pages into files as they come, rows in groups."""

    def __init__(self, crawler: Any) -> None:
        self._spider = crawler
        self._done: list[tuple[str, str, dict[str, str | None]]] = []

    @classmethod
    def from_crawler(cls, crawler: Any) -> Keeper:
        return cls(crawler)

    def open_spider(self) -> None:
        self._folder: Path = self._spider.spider.folder
        self._rows = work.open_rows(self._folder)

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        self._done.append((item["url"], work.keep_page(self._folder, item["url"], item["body"]), item["data"]))
        if len(self._done) >= work.GROUP:
            self._flush()
        return item

    def close_spider(self) -> None:
        self._flush()

    def _flush(self) -> None:
        group, self._done = self._done, []
        work.keep_rows(self._rows, group)


def run(urls: list[str], folder: Path, name: str) -> None:
    crawler = CrawlerProcess({**_SETTINGS, "JOBDIR": str(folder / f"job{name}")})
    crawler.crawl(Parcels, urls=urls, folder=folder)
    crawler.start()


if __name__ == "__main__":
    chosen = contender_arguments(__doc__)
    urls = urls_of(chosen.site, chosen.pages)
    work.open_rows(chosen.folder).close()
    n = chosen.processes
    parts = [multiprocessing.Process(target=run, args=(urls[k::n], chosen.folder, str(k))) for k in range(n)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
