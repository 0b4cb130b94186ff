"""Witnesses: a county and a Gateway that look, at the moment something arrives, whether it should arrive at all.

They read the node's database as anybody could. A page that is asked for while no fetch of it is open was committed
before; a row that is sent while it is not open was acknowledged before. So no clock plays a part: neither the node's,
which a test may set wrong, nor the time between two machines.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway.decoding import ResultRow
from lienworker.testing.gateway.state import GatewayState
from lienworker.testing.gateway.storage import Counts, RawFile

_OPEN = "('waiting', 'leased', 'held', 'parked')"
_IS_OPEN = "SELECT 1 FROM outbox WHERE task_id = ? AND topic = ? AND state IN " + _OPEN
_RAW_IS_IN = """
SELECT 1 FROM outbox o WHERE o.task_id = ? AND o.topic = 'upload_result' AND o.state <> 'held' AND EXISTS (
    SELECT 1 FROM outbox raw WHERE raw.topic = 'upload_raw' AND raw.state = 'delivered'
    AND (raw.id = o.raw_id OR o.raw_id IS NULL AND raw.task_id = o.task_id AND raw.generation = o.generation))
"""


@dataclass
class Sightings:
    """What should not have been seen, each as a sentence."""

    doubled_pages: list[str] = field(default_factory=list)
    doubled_sends: list[str] = field(default_factory=list)
    too_early: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        return self.doubled_pages + self.doubled_sends + self.too_early


class Witness:
    """Looks into one node's database, from any thread."""

    def __init__(self, data: Path) -> None:
        self._file = data / "lienworker.db"
        self._tasks: dict[str, list[str]] = {}
        self.sightings = Sightings()

    def page_is_asked_for(self, url: str) -> None:
        tasks = self._tasks.get(url) or self._learn(url)
        if not tasks:
            self.sightings.too_early.append(f"{url} was asked for before its task was stored")
        elif not self._is_wanted(tasks) and not self._is_wanted(self._learn(url)):  # another task may have come for it
            self.sightings.doubled_pages.append(f"{url} was asked for though its page is committed")

    def row_is_sent(self, topic: str, task_id: str) -> None:
        if not self._ask(_IS_OPEN, task_id, topic):
            self.sightings.doubled_sends.append(f"{topic} of {task_id} was sent though it was acknowledged")

    def result_is_sent(self, task_id: str) -> None:
        self.row_is_sent("upload_result", task_id)
        if not self._ask(_RAW_IS_IN, task_id):
            self.sightings.too_early.append(f"the result of {task_id} was sent before its raw file was acknowledged")

    def _is_wanted(self, tasks: list[str]) -> bool:
        return any(self._ask(_IS_OPEN, task_id, "fetch") for task_id in tasks)

    def _learn(self, url: str) -> list[str]:
        self._tasks[url] = [task_id for (task_id,) in self._ask("SELECT task_id FROM tasks WHERE url = ?", url)]
        return self._tasks[url]

    def delay_of(self, host: str, usual: float) -> float:
        """Seconds that the node leaves between two requests to a host, as far as it knows now."""
        sql = "SELECT max(coalesce(delay, ?), coalesce(robots_delay, 0)) FROM hosts WHERE host = ?"
        return float(next(iter(self._ask(sql, usual, host)), (usual,))[0])

    def _ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """A connection for each question: one that stayed open would be a user of the log that the node never has."""
        with contextlib.closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=20)) as connection:
            return connection.execute(sql, values).fetchall()


class WatchedCounty(DemoSite):
    """The demo county; whoever sets `witness` is told of every parcel that is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.witness: Witness | None = None
        #: Pages that are lists of parcels, by path.
        self.lists: dict[str, str] = {}

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.witness and request.path.startswith("/parcel/"):
            self.witness.page_is_asked_for(f"http://{request.host}{request.path}")
        answer = await super()._record(request, handler)
        if request.path in self.lists:
            return web.Response(text=self.lists[request.path], content_type="text/html")
        return answer

    def forget(self) -> None:
        """An empty log, for the next test."""
        with self._lock:
            self._log.clear()

    @property
    def repeats(self) -> int:
        """How many requests for a parcel were not the first for it."""
        counted = Counter(path for path, _ in self.log if path.startswith("/parcel/"))
        return sum(counted.values()) - len(counted)


class WatchedGateway(GatewayState):
    """The reference Gateway's memory; whoever sets `witness` is told of everything that is to be stored."""

    witness: Witness | None = None

    def store_raw(self, sent_name: str, content: bytes, metadata: str, worker_id: str) -> RawFile | str:
        if self.witness:
            with contextlib.suppress(ValueError, KeyError):
                self.witness.row_is_sent("upload_raw", json.loads(metadata)["task_id"])
        return super().store_raw(sent_name, content, metadata, worker_id)

    def store_results(self, rows: list[ResultRow], worker_id: str) -> Counts:
        if self.witness:
            for row in rows:
                self.witness.result_is_sent(row.task_id)
        return super().store_results(rows, worker_id)

    def close_task(self, task_id: str, state: str, worker_id: str, error: str = "") -> bool:
        if self.witness:
            self.witness.row_is_sent("report_failure", task_id)
        return super().close_task(task_id, state, worker_id, error)
