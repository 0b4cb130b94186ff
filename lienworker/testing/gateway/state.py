"""Everything the reference Gateway knows, behind one lock: tests ask and command from their own threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
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
_BEAT_COLUMNS = ("active_tasks", "platforms", "cpu_percent", "memory_percent")


class RedisDownError(Exception):
    """The Gateway's own queue does not answer."""


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
    request_id: str = ""


@dataclass(slots=True)
class Settings:
    """What differs between deployments, and two switches for what the real Gateway does not do."""

    retry_with_tasks: int = 5
    retry_without_tasks: int = 30
    #: Calls in each `rate_window` (seconds); None for no limit.
    rate_limit: int | None = None
    rate_window: float = 1.0
    #: Tokens that are as good as the first.
    other_tokens: Sequence[str] = ()
    #: What closing one task takes for each task that its worker has booked, s. The real one needs about 6e-6.
    booking_seconds: float = 0.0
    #: Commands may go out with a heartbeat. The real one has never sent any.
    sends_commands: bool = False
    #: Refuse what the contract forbids and the real one takes: a call without a worker id (401), a raw file without
    #: metadata that is JSON, a time that is not in UTC (400).
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One heartbeat as it came; of its body the real Gateway keeps `_BEAT_COLUMNS` only."""

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
        """Forget everything but the settings (raw files on disk stay)."""
        with self._lock:
            self._faults = FaultBoard()
            self._queue = TaskQueue()
            self._table = ResultTable()
            self._raw = RawFolder(self._raw_folder)
            self._log: deque[Request] = deque(maxlen=_LOG_LENGTH)
            self._heartbeats: list[Heartbeat] = []
            self._commands: list[tuple[str | None, Any]] = []
            self._window = _Window()
            self._redis_free_at = 0.0
            self._seq = 0

    # Commands: what a test or an operator does

    def enqueue(self, *tasks: Mapping[str, Any]) -> list[str]:
        """Queue tasks (see `TaskQueue.add` for the forms) and return their ids."""
        with self._lock:
            return [self._queue.add(task, self._clock()) for task in tasks]

    def fault(self, kind: str, **options: Any) -> int:
        """Switch a fault on (see `faults`) and return its id."""
        made = make_fault(kind, **options)
        with self._lock:
            return self._faults.add(made)

    def clear_faults(self, fault_id: int | None = None) -> None:
        with self._lock:
            self._faults.clear(fault_id)

    def command(self, *commands: Any, worker_id: str | None = None) -> None:
        """Send commands once, with the next heartbeat (of this worker, or of any)."""
        with self._lock:
            if not self.settings.sends_commands:
                raise ValueError("the real Gateway sends no commands; set sends_commands first")
            self._commands.extend((worker_id, one) for one in commands)

    def configure(self, **changes: Any) -> None:
        """Change settings; ValueError for one that does not exist."""
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
        """Return the requests of one endpoint (see `faults.ENDPOINTS`)."""
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
        """Return what the table holds now, by (parcel_id, platform, state, county)."""
        with self._lock:
            return {key: versions[-1].row for key, versions in self._table.history.items()}

    @property
    def history(self) -> dict[Key, list[Version]]:
        """Return every storing of every result, in order."""
        with self._lock:
            return {key: list(versions) for key, versions in self._table.history.items()}

    @property
    def raw_files(self) -> dict[str, RawFile]:
        """Return what the flat folder holds now, by name."""
        with self._lock:
            return dict(self._raw.current)

    @property
    def raw_uploads(self) -> list[RawFile]:
        """Return every upload, also those that were overwritten."""
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
    def bookings(self) -> dict[str, dict[str, int]]:
        """Return how often each worker has booked each task; an id that is closed for good is not in it."""
        with self._lock:
            return {worker_id: dict(booked) for worker_id, booked in self._queue.bookings.items() if booked}

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
        """Return what is known of each worker: when it was last seen, whether it counts as gone, its last figures."""
        now = self._clock()
        last = {beat.worker_id: beat for beat in self.heartbeats}
        return {
            name: {"last_seen": beat.time, "gone": now - beat.time > GONE_AFTER}
            | {column: beat.body.get(column) for column in _BEAT_COLUMNS}
            for name, beat in last.items()
        }

    @property
    def stored(self) -> dict[str, Any]:
        """Return what the real Gateway would have kept; all else is here for tests to ask for."""
        with self._lock:
            files = {name: file.size for name, file in self._raw.current.items()}
            return {"results": self._table.stored(), "raw_files": files, "workers": self.workers}

    @property
    def faults(self) -> list[Mapping[str, Any]]:
        with self._lock:
            return self._faults.listed()

    # What the server does

    def arrive(self, method: str, path: str, query: str, endpoint: str, headers: Mapping[str, str]) -> Request:
        with self._lock:
            seq, worker_id = self._next(), headers.get("X-Worker-ID") or "unknown"
            request = Request(seq, self._clock(), method, path, endpoint, worker_id, query)
            request.request_id = headers.get("X-Request-ID") or f"reference-{seq:06d}"
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
        """Return the calls left in this window (negative: too many) and its end; None without a limit."""
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
            self._ask_redis("work")
            return self._queue.take(capacity, platforms, worker_id, self._clock())

    def close_task(self, task_id: str, state: str, worker_id: str, error: str = "") -> bool:
        """Close one task of this worker. Raises RedisDownError."""
        with self._lock:
            self._ask_redis("complete" if state == "completed" else "fail")
            return self._close(task_id, state, worker_id, error)

    def store_results(self, rows: list[ResultRow], worker_id: str) -> Counts:
        """Store row by row and close the tasks of those that are in, if this worker has booked them."""
        with self._lock:
            down = self._faults.strike("results", {"database_down"}) is not None
            bad = {name: fault.words for fault in self._faults.failing("parcels", "results") for name in fault.names}

            def error(row: ResultRow) -> str:
                return _DATABASE_DOWN if down else bad.get(row.parcel_id) or database_error(row)

            def version(row: ResultRow) -> Version:
                return Version(self._next(), self._clock(), worker_id, row)

            counts, stored = self._table.store(rows, version, error)
            with suppress(RedisDownError):  # nobody is told: the tasks just stay booked
                self._ask_redis("results")
                for row in stored:
                    self._close(row.task_id, "completed", worker_id)
            return counts

    def redis_delay(self) -> float:
        """Return how long Redis, which does one thing at a time, is still busy with closing tasks, s."""
        with self._lock:
            return max(0.0, self._redis_free_at - self._clock())

    def _ask_redis(self, endpoint: str) -> None:
        if self._faults.strike(endpoint, {"redis_down"}):
            raise RedisDownError

    def _close(self, task_id: str, state: str, worker_id: str, error: str = "") -> bool:
        now = self._clock()
        if self.settings.booking_seconds:
            cost = self.settings.booking_seconds * self._queue.booked(worker_id)
            self._redis_free_at = max(now, self._redis_free_at) + cost
        return self._queue.close(task_id, state, worker_id, now, error)

    def store_raw(self, sent_name: str, content: bytes, metadata: str, worker_id: str) -> RawFile | str:
        """Return the stored file, or the message of a 200 that is an error."""
        with self._lock:
            if self._faults.strike("raw", {"database_down"}):
                return _DATABASE_DOWN
            return self._raw.put(sent_name, content, metadata, worker_id, self._next(), self._clock())

    def raw_name_fails(self, sent_name: str) -> bool:
        with self._lock:
            return any(part in sent_name for fault in self._faults.failing("raw_file", "raw") for part in fault.names)

    def beat(self, worker_id: str, body: Mapping[str, Any]) -> list[Any]:
        """Note a heartbeat and return the commands for this worker."""
        with self._lock:
            self._heartbeats.append(Heartbeat(self._clock(), worker_id, body))
            mine = [command for who, command in self._commands if who in {None, worker_id}]
            self._commands = [(who, command) for who, command in self._commands if who not in {None, worker_id}]
            return mine

    def _next(self) -> int:
        self._seq += 1
        return self._seq
