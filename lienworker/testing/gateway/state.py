"""Everything the reference Gateway knows, behind one lock: tests ask and command from their own threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lienworker.testing.gateway.decoding import ResultRow
from lienworker.testing.gateway.faults import Fault, FaultBoard, make_fault
from lienworker.testing.gateway.queue import TaskQueue, TaskRecord
from lienworker.testing.gateway.storage import Counts, Key, RawFile, RawFolder, ResultTable, Version, database_error

GONE_AFTER = 300.0
_LOG_LENGTH = 200_000
_DATABASE_DOWN = "failed to connect to database: connection refused"


@dataclass(slots=True)
class Request:
    """One line of the request log. `status` is None while it runs and where the client got no reply."""

    seq: int
    time: float
    method: str
    path: str
    endpoint: str
    worker_id: str
    query: str = ""
    status: int | None = None
    finished: float | None = None
    fault: str = ""
    items: int | None = None  # of a results call
    stored_part: int | None = None  # by a fault: no more than the first so many of them were stored
    names: tuple[str, ...] = ()  # what it brought: the name of a raw file, the task ids of results
    retry_after: float | None = None  # what it was told to wait, s


@dataclass(slots=True)
class Settings:
    """What differs between deployments. `rate_limit` is calls a `rate_window` (seconds); None for no limit."""

    retry_with_tasks: int = 5
    retry_without_tasks: int = 30
    rate_limit: int | None = None
    rate_window: float = 1.0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    time: float
    worker_id: str
    body: Mapping[str, Any]


@dataclass(slots=True)
class _Window:
    start: float = 0.0
    calls: int = 0


class GatewayState:
    """The Gateway's memory. Every public method may be called from any thread."""

    def __init__(
        self,
        token: str,
        *,
        raw_folder: Path | None = None,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.token = token
        self.settings = settings or Settings()
        self._raw_folder = raw_folder
        self._clock = clock
        self._lock = threading.RLock()
        if raw_folder is not None:
            raw_folder.mkdir(parents=True, exist_ok=True)
        self.reset()

    def reset(self) -> None:
        """Forgets everything but the settings (raw files on disk stay)."""
        with self._lock:
            self._faults = FaultBoard()
            self._queue = TaskQueue()
            self._table = ResultTable()
            self._raw = RawFolder(self._raw_folder)
            self._log: deque[Request] = deque(maxlen=_LOG_LENGTH)
            self._heartbeats: list[Heartbeat] = []
            self._commands: list[tuple[str | None, Any]] = []
            self._window = _Window()
            self._seq = 0

    # Commands: what a test or an operator does

    def enqueue(self, *tasks: Mapping[str, Any]) -> list[str]:
        """Queues tasks (see `TaskQueue.add` for the forms) and returns their ids."""
        with self._lock:
            return [self._queue.add(task, self._clock()) for task in tasks]

    def remove_poison(self) -> int:
        with self._lock:
            return self._queue.remove_poison()

    def fault(self, kind: str, **options: Any) -> int:
        """Switches a fault on (see `faults`) and returns its id."""
        made = make_fault(kind, **options)
        with self._lock:
            return self._faults.add(made)

    def clear_faults(self, fault_id: int | None = None) -> None:
        with self._lock:
            self._faults.clear(fault_id)

    def command(self, *commands: Any, worker_id: str | None = None) -> None:
        """Goes out once, with the next heartbeat (of this worker, or of any)."""
        with self._lock:
            self._commands.extend((worker_id, one) for one in commands)

    def configure(self, **changes: Any) -> None:
        """Changes settings; ValueError for one that does not exist."""
        with self._lock:
            for name, value in changes.items():
                if name not in Settings.__dataclass_fields__:
                    raise ValueError(f"unknown setting {name!r}")
                setattr(self.settings, name, value)

    # Questions: what was received

    @property
    def requests(self) -> list[Request]:
        with self._lock:
            return list(self._log)

    def calls(self, endpoint: str) -> list[Request]:
        """The requests of one endpoint: health, work, raw, results, complete, fail, heartbeat, other."""
        return [request for request in self.requests if request.endpoint == endpoint]

    def too_early(self) -> list[str]:
        """Return what was sent again before the wait was over that its 429 had asked for; heartbeats are not waited
        for."""
        free_at: dict[tuple[str, str], float] = {}
        found = []
        for request in (one for one in self.requests if one.endpoint != "heartbeat"):
            things = [(request.endpoint, name) for name in request.names or (request.path,)]
            found += [f"{name} at {request.time}" for name in things if request.time < free_at.get(name, 0.0)]
            if request.retry_after is not None and request.finished is not None:
                free_at |= dict.fromkeys(things, request.finished + request.retry_after)
        return found

    @property
    def results(self) -> dict[Key, ResultRow]:
        """What the table holds now, by (parcel_id, platform, state, county)."""
        with self._lock:
            return {key: versions[-1].row for key, versions in self._table.history.items()}

    @property
    def history(self) -> dict[Key, list[Version]]:
        """Every storing of every result, in order."""
        with self._lock:
            return {key: list(versions) for key, versions in self._table.history.items()}

    @property
    def raw_files(self) -> dict[str, RawFile]:
        """What the flat folder holds now, by name."""
        with self._lock:
            return dict(self._raw.current)

    @property
    def raw_uploads(self) -> list[RawFile]:
        """Every upload, also those that were overwritten."""
        with self._lock:
            return list(self._raw.uploads)

    def raw_content(self, name: str) -> bytes:
        with self._lock:
            return self._raw.content(name)

    @property
    def tasks(self) -> dict[str, TaskRecord]:
        with self._lock:
            return {task_id: TaskRecord(**asdict(record)) for task_id, record in self._queue.records.items()}

    @property
    def waiting_tasks(self) -> int:
        with self._lock:
            return self._queue.waiting

    @property
    def heartbeats(self) -> list[Heartbeat]:
        with self._lock:
            return list(self._heartbeats)

    @property
    def workers(self) -> dict[str, dict[str, Any]]:
        """When each worker was last seen, and whether it counts as gone."""
        now = self._clock()
        seen = {beat.worker_id: beat.time for beat in self.heartbeats}
        return {name: {"last_seen": last, "gone": now - last > GONE_AFTER} for name, last in seen.items()}

    @property
    def faults(self) -> list[Mapping[str, Any]]:
        with self._lock:
            return self._faults.listed()

    # What the server does

    def arrive(self, method: str, path: str, query: str, endpoint: str, worker_id: str) -> Request:
        with self._lock:
            request = Request(self._next(), self._clock(), method, path, endpoint, worker_id, query)
            self._log.append(request)
            return request

    def finish(self, request: Request, status: int | None) -> None:
        with self._lock:
            request.status, request.finished = status, self._clock()

    def strike(self, endpoint: str, kinds: Iterable[str]) -> Fault | None:
        with self._lock:
            return self._faults.strike(endpoint, kinds)

    def is_on(self, fault: Fault) -> bool:
        with self._lock:
            return self._faults.is_on(fault)

    def count_against_limit(self) -> tuple[int, float] | None:
        """Calls left in this window (negative: too many) and its end; None without a limit."""
        with self._lock:
            if self.settings.rate_limit is None:
                return None
            now = self._clock()
            if now >= self._window.start + self.settings.rate_window:
                self._window = _Window(now)
            self._window.calls += 1
            return self.settings.rate_limit - self._window.calls, self._window.start + self.settings.rate_window

    def take_tasks(self, capacity: int, platforms: Sequence[str], worker_id: str) -> list[Any]:
        with self._lock:
            return self._queue.take(capacity, platforms, worker_id, self._clock())

    def close_task(self, task_id: str, state: str, worker_id: str, error: str = "") -> bool:
        with self._lock:
            return self._queue.close(task_id, state, worker_id, self._clock(), error)

    def store_results(self, rows: list[ResultRow], worker_id: str) -> Counts:
        """Stores row by row and closes the tasks of those that are in."""
        with self._lock:
            down = self._faults.strike("results", {"database_down"}) is not None
            bad = {name: fault.words for fault in self._faults.failing("parcels", "results") for name in fault.names}

            def error(row: ResultRow) -> str:
                return _DATABASE_DOWN if down else bad.get(row.parcel_id) or database_error(row)

            def version(row: ResultRow) -> Version:
                return Version(self._next(), self._clock(), worker_id, row)

            counts, stored = self._table.store(rows, version, error)
            for row in stored:
                self._queue.close(row.task_id, "completed", None, self._clock())
            return counts

    def store_raw(self, sent_name: str, content: bytes, metadata: str, worker_id: str) -> RawFile | str:
        """The stored file, or the message of a 200 that is an error."""
        with self._lock:
            if self._faults.strike("raw", {"database_down"}):
                return _DATABASE_DOWN
            return self._raw.put(sent_name, content, metadata, worker_id, self._next(), self._clock())

    def raw_name_fails(self, sent_name: str) -> bool:
        with self._lock:
            return any(part in sent_name for fault in self._faults.failing("raw_file", "raw") for part in fault.names)

    def beat(self, worker_id: str, body: Mapping[str, Any]) -> list[Any]:
        """Notes a heartbeat and returns the commands for this worker."""
        with self._lock:
            self._heartbeats.append(Heartbeat(self._clock(), worker_id, body))
            mine = [command for who, command in self._commands if who in {None, worker_id}]
            self._commands = [(who, command) for who, command in self._commands if who not in {None, worker_id}]
            return mine

    def _next(self) -> int:
        self._seq += 1
        return self._seq
