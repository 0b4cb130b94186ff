"""A data folder with pages that nobody had to fetch: the real steps after the fetch, on pages that a test writes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dramatiq.asyncio import EventLoopThread

from lienworker.db.database import all_rows, write
from lienworker.fetching import Fetched
from lienworker.operator.reparse import Reparse, Tally
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.outbox.claims import Rules, claim
from lienworker.outbox.registration import register_in_transaction
from lienworker.platforms import registry_with
from lienworker.settings import Settings
from lienworker.steps.fetch import Arrived, page_key, store_fetches
from lienworker.steps.runtime import Runtime, running
from lienworker.steps.scrape import scrape_row, store_scrapes
from lienworker.store.raw_files import write_aside
from lienworker.store.runs import PageFilter
from lienworker.store.tasks import NewTask

FREE = Rules(host_delay=0.0, host_concurrency=1000)
DEFINITION = """
version = "{version}"
hosts = ["*.quarry.example"]
[fields]
parcel_id = "#pid"
owner_name = "{owner}"
market_value = "#value"
"""


def page(n: int, owner: str = "owner") -> str:
    """The page of parcel `n`; a redesign puts the owner elsewhere."""
    return (
        f"<html><p id='pid'>00-{n}</p><p id='{owner}'>OTTER NO {n}</p><p id='value'>${1000 + n}</p>"
        "<h1>Quarry County parcel, owner, value</h1></html>"
    )


class Shelf:
    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self.runtime = runtime
        self.definitions = folder
        self.pages: dict[str, str] = {}

    def teach(self, owner: str = "#owner", version: str = "1") -> None:
        """Writes (or mends) the platform of these pages."""
        self.definitions.mkdir(exist_ok=True)
        text = DEFINITION.format(owner=owner, version=version)
        (self.definitions / "quarry.toml").write_text(text)
        self.learn()

    def learn(self) -> None:
        """Read the definitions again, as a process that starts now would."""
        self.runtime = replace(self.runtime, registry=registry_with(self.definitions))

    def add(self, county: str | None, pages: dict[str, str], **more: Any) -> None:
        """Tasks that wait to be fetched, by the last part of their address."""
        site = f"https://{(county or 'somewhere').lower()}.quarry.example/"
        self.pages |= {site + name: text for name, text in pages.items()}
        about: dict[str, Any] = {"platform": "quarry", "state": "XX", **more}
        tasks = [NewTask("local_file", site + name, county=county, **about) for name in pages]
        with write("test"):
            register_in_transaction(tasks)

    def fetch(self, most: int = 1000) -> int:
        """Pages arrive for what may be fetched."""
        rows = claim("fetch", most, "t-test", FREE)
        arrived = []
        for row in rows:
            body = self.pages[row.url].encode()
            written = write_aside(self.runtime.folder, page_key(self.runtime.registry, row), body, "text/html")
            arrived.append(Arrived(row, Fetched(row.url, 200, body, "text/html", "utf-8", None, None, 0, 5), written))
        store_fetches(self.runtime.folder, self.runtime.retries, arrived)
        return len(rows)

    def scrape(self) -> None:
        while rows := claim("scrape", 10, "t-test", FREE):
            store_scrapes(self.runtime.scrape, [scrape_row(self.runtime.scrape, row) for row in rows])

    def work(self, most: int = 1000) -> int:
        n = self.fetch(most)
        self.scrape()
        return n

    def reparse(self, *, dry_run: bool = False, **wanted: str) -> Tally:
        return self.passed(dry_run=dry_run, **wanted).tally

    def passed(self, *, dry_run: bool = False, **wanted: str) -> Reparse:
        again = Reparse(self.runtime.folder, self.runtime.registry, PageFilter(**wanted), dry_run=dry_run)
        again.work()
        return again

    def rows(self, topic: str, county: str | None = None) -> dict[str, int]:
        """How many rows of a lane are in which state, with the reason."""
        sql = (
            "SELECT o.state || coalesce(' ' || o.reason, ''), count(*) FROM outbox o JOIN tasks t"
            " ON t.task_id = o.task_id WHERE o.topic = ? AND coalesce(t.county, '') = coalesce(?, t.county, '')"
            " GROUP BY 1"
        )
        return dict(all_rows(sql, (topic, county)))


def check_books() -> None:
    assert all(side.holds for side in balances())
    assert not wrong_tallies()


@contextmanager
def shelf_in(root: Path, **settings: Any) -> Iterator[Shelf]:
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    try:
        with running(Settings(data_dir=root / "data", **settings), "test", 2, loop.loop) as runtime:
            shelf = Shelf(runtime, root / "platforms")
            shelf.teach()
            yield shelf
    finally:
        loop.stop()
