"""The task queue of the reference Gateway: a line for each platform and priority, and the bookings of each worker."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

PRIORITIES = (1, 2, 3, 4)
#: What is handed out to a worker that names no platform.
OWN_PLATFORMS = ("beacon", "qpublic", "floridatax")
NO_TIME = "0001-01-01T00:00:00Z"
_PLACE = ("parcel_id", "state", "county")


class PoisonedError(Exception):
    """An entry that the Gateway cannot read; it turns the whole call into a 500."""


@dataclass(slots=True)
class TaskRecord:
    """What became of a task. `state`: queued, handed_out, completed, failed."""

    task_id: str
    state: str = "queued"
    worker_id: str = ""
    handed_out_at: float | None = None
    closed_at: float | None = None
    error: str = ""
    times_handed_out: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    wire: Any
    record: TaskRecord | None  # None: poisoned


@dataclass(slots=True)
class TaskQueue:
    """Queued tasks and who has booked which. Not locked: its owner is.

    A task that is handed out twice is booked twice, and each closing takes one booking away. That is what the real
    Gateway's list `processing:<worker>` does.
    """

    records: dict[str, TaskRecord] = field(default_factory=dict)
    bookings: dict[str, Counter[str]] = field(default_factory=dict)
    _lines: dict[tuple[str, int], deque[_Entry]] = field(default_factory=dict)
    _added: int = 0

    def add(self, task: Mapping[str, Any], now: float) -> str:
        """Queue a task as it goes over the wire, or a flat row (`platform`, `parcel_id`, `url` …) made into one.

        `{"verbatim": anything, "platform", "priority"}` is handed out exactly as it is; `{"poison": true, "platform"}`
        is an entry that cannot be read.
        """
        self._added += 1
        platform, priority = str(task.get("platform", "")), int(task.get("priority", 3))
        if task.get("poison"):
            entry = _Entry(None, None)
        else:
            wire = task["verbatim"] if "verbatim" in task else self._wire(task, priority, now)
            given = wire.get("task_id") if isinstance(wire, dict) else None
            entry = _Entry(wire, self._record(given if isinstance(given, str) else f"odd-{self._added}"))
        self._lines.setdefault((platform, priority), deque()).append(entry)
        return entry.record.task_id if entry.record else ""

    def take(self, capacity: int, platforms: Sequence[str], worker_id: str, now: float) -> list[Any]:
        """Hand out one task of each priority of the first platform named, then of the next, up to `capacity`.

        A platform that is named n times gets n turns. A poisoned entry raises PoisonedError and is gone then; what was
        popped before it stays booked, and no reply will name it.
        """
        taken: list[Any] = []
        for platform in platforms or OWN_PLATFORMS:
            for priority in PRIORITIES:
                line = self._lines.get((platform, priority))
                if line and len(taken) < capacity:
                    taken.append(self._hand_out(line.popleft(), worker_id, now))
        return taken

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def booked(self, worker_id: str) -> int:
        """Return how many bookings a worker has."""
        return self.bookings.get(worker_id, Counter()).total()

    def close(self, task_id: str, state: str, worker_id: str, now: float, error: str = "") -> bool:
        """Take one booking away; False for a task that this worker has not booked."""
        booked = self.bookings.get(worker_id, Counter())
        if not booked[task_id]:
            return False
        booked[task_id] -= 1
        if not booked[task_id]:
            del booked[task_id]
        record = self.records[task_id]
        record.state, record.closed_at, record.error = state, now, error
        return True

    def _record(self, task_id: str) -> TaskRecord:
        return self.records.setdefault(task_id, TaskRecord(task_id))

    def _hand_out(self, entry: _Entry, worker_id: str, now: float) -> Any:
        if entry.record is None:
            raise PoisonedError
        entry.record.state, entry.record.worker_id, entry.record.handed_out_at = "handed_out", worker_id, now
        entry.record.times_handed_out += 1
        self.bookings.setdefault(worker_id, Counter())[entry.record.task_id] += 1
        return entry.wire

    def _wire(self, task: Mapping[str, Any], priority: int, now: float) -> dict[str, Any]:
        """Return the fields that the Gateway knows; a proxy and unknown keys of the target are dropped."""
        place = task.get("target", task)
        url = {"url": place["url"]} if place.get("url") else {}
        queued = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return {
            "task_id": task.get("task_id") or f"gw-{self._added:06d}",
            "type": task.get("type", "scrape_parcel"),
            "platform": task.get("platform", ""),
            "target": {name: place.get(name) or "" for name in _PLACE} | url,
            "priority": priority,
            "created_at": task.get("created_at") or (NO_TIME if "target" in task else queued),
        }
