"""A worker's side of the Gateway in the test's own process: real store, real HTTP, no Redis and no stack.

What the stack does with messages is done here by calling the same functions: `collect`, `fetch`, `upload`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dramatiq.asyncio import EventLoopThread

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, dict_rows, execute, one_row, write
from lienworker.fetching import Fetched
from lienworker.hubs.gateway.client import GatewayClient, Timeouts
from lienworker.maintenance.heartbeat import book_heartbeat, heartbeat_of, send_heartbeat
from lienworker.outbox import leases
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.outbox.claims import Rules, claim
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.rows import NEVER_DUE, Claimed
from lienworker.outbox.uploads import Chosen, Claim
from lienworker.platforms import ParsedPage
from lienworker.settings import Settings
from lienworker.steps.collect import Collector
from lienworker.steps.fetch import Arrived, FetchLoop, store_fetches
from lienworker.steps.runtime import Runtime, running
from lienworker.steps.scrape import Scraped, store_scrapes
from lienworker.steps.scrape_lane import ScrapeRun
from lienworker.steps.upload.loop import Uploader
from lienworker.store.pages import page_of
from lienworker.store.raw_files import PageKey, write_aside
from lienworker.store.tasks import NewTask
from lienworker.testing.county.pages import render_parcel
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.node import PATIENCE, wait_until

#: More than any call on loopback takes, also on a busy machine.
PATIENT = Timeouts(connect=10, work=10, raw=10, results=10, task=10, heartbeat=10, health=10, idle=10)
#: For a test in which the Gateway hangs, and nothing is lost by giving up a call that was only slow.
QUICK = Timeouts(connect=2, work=1, raw=1, results=1, task=1, heartbeat=1, health=1, idle=1)
#: An idle turn of collect looks around this often; tests have less patience.
sys.modules["lienworker.steps.collect"].__dict__["_LOOK_SECONDS"] = 0.01
_FREE = Rules(host_delay=0.0, host_concurrency=100_000)


class Desk:
    """One worker process's hands, moved one by one by a test."""

    def __init__(self, runtime: Runtime, gateway: ReferenceGateway) -> None:
        self.runtime = runtime
        self.gateway = gateway

    def give_up_after(self, timeouts: Timeouts) -> None:
        """Use another client, with less patience."""
        worker_id = self.runtime.settings.worker_id or self.runtime.folder.worker_id()
        self.runtime.gateway.made = GatewayClient(self.gateway.url, self.gateway.token, worker_id, timeouts=timeouts)

    # What the other steps would have left behind

    def add(self, n: int = 1, start: int = 1, *, name: str = "p", **fields: Any) -> list[str]:
        """Tasks that are scraped: pages on disk, results stored, uploads waiting. Gives their ids."""
        new = [self.new_task(number, name, **fields) for number in range(start, start + n)]
        self.scraped(new)
        return [task.task_id for task in new]

    def new_task(self, number: int, name: str = "p", **fields: Any) -> NewTask:
        place = {"platform": "demo", "state": "XX", "county": "Juniper", "parcel_id": f"{name}-{number}"}
        return NewTask(
            **{"source": "gateway", "url": f"http://county.example/{name}/{number}", "task_id": f"{name}{number}"}
            | place
            | fields
        )

    def scraped(self, new: Sequence[NewTask], **data: Any) -> None:
        """By the product's own transactions, without a county and without parsing."""
        with write("test"):
            register_in_transaction(new)
        self.scrape_waiting(**data)

    def scrape_waiting(self, **data: Any) -> None:
        with self.runtime.holder.lease() as token:
            rows = claim("fetch", 100_000, token, _FREE)
            store_fetches(self.runtime.folder, self.runtime.retries, [self._arrived(row) for row in rows])
            store_scrapes(
                self.runtime.scrape, [self._parsed(row, data) for row in claim("scrape", 100_000, token, _FREE)]
            )

    def add_unread(self, name: str, n: int = 1, *, filling: str = "") -> None:
        """Tasks whose pages are on disk, and nobody has read them yet."""
        with write("test"):
            register_in_transaction([self.new_task(number, name) for number in range(1, n + 1)])
        with self.runtime.holder.lease() as token:
            page = f"{render_parcel(1)}{filling}".encode()
            store_fetches(
                self.runtime.folder,
                self.runtime.retries,
                [self._arrived(row, page) for row in claim("fetch", n, token, _FREE)],
            )

    def _arrived(self, row: Claimed, body: bytes = b"") -> Arrived:
        body = body or f"<html>{row.url} {row.generation} {time.time_ns()}</html>".encode()
        key = PageKey(row.platform or "", row.state or "", row.county or "", row.parcel_id or "", row.task_id)
        page = write_aside(self.runtime.folder, key, body, "text/html")
        return Arrived(row, Fetched(row.url, 200, body, "text/html", "utf-8", None, None, 0, 1), page)

    def _parsed(self, row: Claimed, data: dict[str, Any]) -> Scraped:
        record = {"owner_name": f"Owner of {row.parcel_id}", **data}
        outcome = ParsedPage(row.platform or "generic", "1", record)
        return Scraped(row, page_of(row.task_id, row.generation), outcome, 3)

    # What actors do

    def collect(self, seconds: float = 0.0) -> None:
        """Polls as a turn does: until nothing more comes for now, or until the time is over."""
        collector = self._collector()
        deadline = time.monotonic() + (seconds or PATIENCE)
        looks_in_vain = 0  # one alone says little: on a busy machine its time may be over before it has begun
        while time.monotonic() < deadline and (seconds or looks_in_vain < 3):
            before = len(self.gateway.state.calls("work"))
            collector.run(time.monotonic() + 0.01)
            looks_in_vain = looks_in_vain + 1 if len(self.gateway.state.calls("work")) == before else 0

    def collect_until(self, is_so: Callable[[], Any]) -> None:
        """Poll as a turn does, until this is so."""
        collector = self._collector()
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline, self.gateway.state.calls("work")
            collector.run(time.monotonic() + 0.01)

    def _collector(self) -> Collector:
        with write("test"):
            execute("INSERT OR REPLACE INTO turns VALUES ('collect', ?, '')", (self.runtime.holder.id,))
        return Collector(self.runtime.collect)

    def fetch_and_scrape(self) -> None:
        with self.runtime.holder.lease() as token:
            lane = self.runtime.lane(token, quarantined=True)
            FetchLoop(self.runtime.fetch, lane).run()
            ScrapeRun(self.runtime.scrape, self.runtime.slots, lane).work()

    def heartbeat_body(self) -> dict[str, Any]:
        return heartbeat_of(self.runtime.folder, self.runtime.settings, self.runtime.registry)

    def heartbeat(self) -> None:
        send_heartbeat(self.runtime.gateway, self.heartbeat_body(), self.runtime.settings.heartbeat)

    def uploader(self, token: str, only: Sequence[int] | None = None) -> Uploader:
        return Uploader(
            self.runtime.upload, Claim(token, self.runtime.rules, only=None if only is None else Chosen(only))
        )

    def upload(self) -> None:
        """What a token of the upload lane leads to."""
        with self.runtime.holder.lease() as token:
            self.uploader(token).work()

    def send_raws(self) -> None:
        """Raw files only, to the end."""
        with self.runtime.holder.lease() as token:
            lane = self.uploader(token).raws
            while lane.set_out() or lane:
                lane.land()
                time.sleep(0.005)

    def upload_until(self, seconds: float = PATIENCE) -> None:
        """Goes on as the relay would, until nothing waits any more."""
        self.upload_until_it(lambda: not self.waiting(), seconds)

    def upload_until_it(self, is_so: Callable[[], Any], seconds: float = PATIENCE) -> None:
        """Go on as the relay would, until this is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, self.states()
            self.upload()
            time.sleep(0.01)

    def next_moment(self) -> None:
        """Wait until the clock of the store has gone on: what comes now is later, and its row says so."""
        before = now_ms()
        wait_until(lambda: now_ms() > before)

    def everything_is_due(self) -> None:
        """Time passes: every row and every probe is due."""
        with write("test"):
            execute("UPDATE outbox SET due_at = ? WHERE state = 'waiting' AND due_at < 9e14", (now_ms(),))
            execute("UPDATE breakers SET retry_at = 0")

    # Looking

    def waiting(self) -> int:
        sql = "SELECT count(*) FROM outbox WHERE state IN ('waiting', 'leased') AND topic NOT IN ('fetch', 'scrape')"
        return int(one_row(sql)[0])

    def states(self, topic: str | None = None) -> dict[str, int]:
        sql = (
            "SELECT state, count(*) FROM outbox WHERE topic = coalesce(?, topic)"
            " AND topic NOT IN ('fetch', 'scrape') GROUP BY 1"
        )
        return dict(all_rows(sql, (topic,)))

    def row(self, task_id: str, topic: str = "upload_result") -> dict[str, Any]:
        sql = "SELECT * FROM outbox WHERE task_id = ? AND topic = ? ORDER BY generation DESC LIMIT 1"
        return next(dict_rows(sql, (task_id, topic)))

    def breaker(self, endpoint: str) -> dict[str, Any]:
        return next(dict_rows("SELECT * FROM breakers WHERE endpoint = ?", (endpoint,)), {"is_open": 0})

    def errors(self, task_id: str) -> str:
        return " | ".join(row[0] for row in all_rows("SELECT error FROM attempts WHERE task_id = ?", (task_id,)))

    def books_are_right(self) -> None:
        assert [side for side in balances() if not side.holds] == []
        assert wrong_tallies() == []


def desk_settings(root: Path, gateway: ReferenceGateway, **changes: str) -> Settings:
    return Settings.from_mapping(
        {
            "LIENWORKER_DATA_DIR": str(root),
            "GATEWAY_URL": gateway.url,
            "GATEWAY_TOKEN": gateway.token,
            "LIENWORKER_GATEWAY_RETRY": "0.05",
            "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1",
            "LIENWORKER_HOST_DELAY": "0",
            "LIENWORKER_TASK_EXPIRY": "80000",
            **changes,
        }
    )


@contextmanager
def desk(root: Path, gateway: ReferenceGateway, **changes: str) -> Iterator[Desk]:
    settings = desk_settings(root, gateway, **changes)
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    try:
        # It looks after others only when a test says so: what they are in a test would not outlive a look.
        with patch.object(leases, "PULSE_SECONDS", 3600.0), running(settings, "worker", 4, loop.loop) as here:
            opened = Desk(here, gateway)
            opened.give_up_after(PATIENT)
            yield opened
    finally:
        loop.stop()


def assert_raw_before_result(gateway: ReferenceGateway) -> None:
    """By the order in which the Gateway stored things: never a result before its raw file."""
    first: dict[str, int] = {}
    for raw in gateway.state.raw_uploads:
        first.setdefault(json.loads(raw.metadata)["raw_html_hash"], raw.seq)
    for key, versions in gateway.state.history.items():
        for version in versions:
            assert first[version.row.raw_html_hash] < version.seq, key


def assert_nothing_is_sent_after_it_was_acknowledged(gateway: ReferenceGateway) -> None:
    """Our commits against the Gateway's own log."""
    ended = {
        (task_id, topic): at / 1000
        for task_id, topic, at in all_rows(
            "SELECT task_id, topic, max(finished_at) FROM outbox WHERE state = 'delivered' GROUP BY 1, 2"
        )
    }
    for raw in gateway.state.raw_uploads:
        task_id = json.loads(raw.metadata)["task_id"]
        assert raw.time <= ended[task_id, "upload_raw"] + 0.002, task_id
    for versions in gateway.state.history.values():
        for version in versions:
            assert version.time <= ended[version.row.task_id, "upload_result"] + 0.002, version.row.task_id
    for call in gateway.state.calls("fail") + gateway.state.calls("complete"):
        assert call.time <= ended[call.path.split("/")[3], "report_failure"] + 0.002, call.path


def time_passes() -> None:
    """A probe that died with its process is given up after two minutes, a beat is due, and so is every row."""
    with write("test"):
        execute("UPDATE breakers SET retry_at = 0")
        execute("UPDATE facts SET value = value - 120000 WHERE name = 'heartbeat_at'")
        execute("UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")


def work_to_the_end(here: Runtime, patience: float) -> None:
    """Polls, fetches, scrapes and uploads in turns."""
    deadline = time.monotonic() + patience
    with write("errand"):
        execute("INSERT OR REPLACE INTO turns VALUES ('collect', ?, '')", (here.holder.id,))
    collector = Collector(here.collect)
    if book_heartbeat(60):
        send_heartbeat(here.gateway, heartbeat_of(here.folder, here.settings, here.registry), here.settings.heartbeat)
    while time.monotonic() < deadline:
        collector.run(time.monotonic() + 0.01)
        with here.holder.lease() as token:
            lane = here.lane(token, quarantined=True)
            FetchLoop(here.fetch, lane).run()
            ScrapeRun(here.scrape, here.slots, lane).work()
            Uploader(here.upload, Claim(token, here.rules)).work()
        if collector._next_poll > time.monotonic() and not _left():
            return
        time.sleep(0.01)
    raise TimeoutError("not done in time")


def _left() -> int:
    """Rows that will still move by themselves."""
    sql = "SELECT count(*) FROM outbox WHERE state = 'leased' OR (state = 'waiting' AND due_at < ?)"
    return int(one_row(sql, (NEVER_DUE,))[0])
