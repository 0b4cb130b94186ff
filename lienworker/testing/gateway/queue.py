"""The task queue of the reference Gateway: a line for each platform and priority; a task is handed out once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

PRIORITIES = (1, 2, 3, 4)
NO_TIME = "0001-01-01T00:00:00Z"
_PLACE = ("parcel_id", "state", "county", "url")


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
    """Not locked: its owner is."""

    records: dict[str, TaskRecord] = field(default_factory=dict)
    _lines: dict[tuple[str, int], deque[_Entry]] = field(default_factory=dict)
    _added: int = 0

    def add(self, task: Mapping[str, Any], now: float) -> str:
        """Queues a task as it goes over the wire, or a flat row (`platform`, `parcel_id`, `url` …) made into one.

        `{"verbatim": anything, "platform", "priority"}` is handed out exactly as it is; `{"poison": true, "platform"}`
        is an entry that cannot be read and stays where it is until `remove_poison`.
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

    def take(self, capacity: int, platforms: Iterable[str], worker_id: str, now: float) -> list[Any]:
        """At most one task for each platform and priority. Raises PoisonedError before anything is taken."""
        wanted = list(dict.fromkeys(platforms)) or list(dict.fromkeys(platform for platform, _ in self._lines))
        keys = [(platform, priority) for priority in PRIORITIES for platform in wanted]
        lines = [self._lines[key] for key in keys if self._lines.get(key)][:capacity]
        if any(line[0].record is None for line in lines):
            raise PoisonedError
        return [self._hand_out(line.popleft(), worker_id, now) for line in lines]

    def remove_poison(self) -> int:
        before = self.waiting
        for key, line in self._lines.items():
            self._lines[key] = deque(entry for entry in line if entry.record is not None)
        return before - self.waiting

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def close(self, task_id: str, state: str, worker_id: str | None, now: float, error: str = "") -> bool:
        """False for an unknown task, one that is not out, and (where `worker_id` is given) another worker's."""
        record = self.records.get(task_id)
        if record is None or record.state != "handed_out" or worker_id not in {None, record.worker_id}:
            return False
        record.state, record.closed_at, record.error = state, now, error
        return True

    def _record(self, task_id: str) -> TaskRecord:
        return self.records.setdefault(task_id, TaskRecord(task_id))

    def _hand_out(self, entry: _Entry, worker_id: str, now: float) -> Any:
        assert entry.record is not None
        entry.record.state, entry.record.worker_id, entry.record.handed_out_at = "handed_out", worker_id, now
        entry.record.times_handed_out += 1
        return entry.wire

    def _wire(self, task: Mapping[str, Any], priority: int, now: float) -> dict[str, Any]:
        flat = "target" not in task
        target = {name: task[name] for name in _PLACE if task.get(name)} if flat else task["target"]
        queued = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        wire = {
            "task_id": task.get("task_id") or f"gw-{self._added:06d}",
            "type": task.get("type", "scrape_parcel"),
            "platform": task.get("platform", ""),
            "target": target,
            "priority": priority,
            "created_at": task.get("created_at") or (queued if flat else NO_TIME),
        }
        return wire | ({"proxy": task["proxy"]} if "proxy" in task else {})
