"""Purging: what is delivered and old is removed, in small steps that block nobody. What is not delivered never is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from lienworker.data_folder import DataFolder, lock_within
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import all_rows, execute, fact, one_row, set_fact, write
from lienworker.errors import BusyError
from lienworker.maintenance.pending_deletes import delete_pending_files
from lienworker.maintenance.sweeps import PageSweep, Purged, StepSweep, Sweep, TaskSweep
from lienworker.maintenance.vacuum import checkpoint, shrink_a_bit
from lienworker.settings import Settings
from lienworker.store.audit import record_action
from lienworker.store.counts import fold_counties
from lienworker.store.pending import remove_pending

_DAY_MS = 86_400_000
#: How long one transaction should keep other writers waiting, s: the size of a slice follows from it.
_HOLD_SECONDS = 0.02
_SMALLEST, _LARGEST = 5, 1000
_FILES = 200
WHAT = ("tasks", "raw", "steps", "history")


@dataclass(frozen=True, slots=True)
class Keep:
    """How many days each kind is kept; infinite where it is never purged."""

    raw: float
    steps: float
    tasks: float
    archived: float
    history: float

    @classmethod
    def of(cls, settings: Settings) -> Keep:
        return cls(
            settings.keep_raw, settings.keep_steps, settings.keep_tasks, settings.keep_archived, settings.keep_history
        )

    def only(self, what: tuple[str, ...]) -> Keep:
        """Return the same for some kinds; the rest is kept. What is archived is purged with the tasks."""
        names = {"tasks": ("tasks", "archived")}
        chosen = {name for word in what for name in names.get(word, (word,))}
        rest = {name: math.inf for name in ("raw", "steps", "tasks", "archived", "history") if name not in chosen}
        return replace(self, **rest)

    def in_words(self) -> str:
        said = {"tasks": self.tasks, "raw": self.raw, "steps": self.steps, "archived": self.archived}
        return ", ".join(f"{name} over {days:g} days" for name, days in said.items() if days < math.inf)


def _before(days: float) -> int:
    return 0 if math.isinf(days) else now_ms() - int(days * _DAY_MS)


def sweeps(keep: Keep) -> list[Sweep]:
    """Return the sweeps, whole tasks first: what is purged with them need not be looked at again."""
    found: list[Sweep] = []
    if keep.tasks < math.inf:
        found.append(TaskSweep(_before(keep.tasks)))
    if keep.archived < math.inf:
        found.append(TaskSweep(_before(keep.archived), archived=True))
    if keep.raw < math.inf:
        found.append(PageSweep(_before(keep.raw)))
    if keep.steps < math.inf:
        found.append(StepSweep(_before(keep.steps)))
    return found


@dataclass
class Pace:
    """How much to purge in one transaction, so that none takes long, and a rest after each for other writers."""

    limit: int = 50
    longest: float = 0.0
    is_over: Callable[[], bool] = field(default=lambda: False)

    def rest(self, n: int, held: float) -> None:
        """Rest after a transaction on n items that was held for `held` seconds, and adapt the size of the next one."""
        self.longest = max(self.longest, held)
        if n >= self.limit or held > _HOLD_SECONDS:
            self.limit = min(_LARGEST, max(_SMALLEST, int(self.limit * min(2.0, _HOLD_SECONDS / max(held, 1e-4)))))
        # SQLite's waiting writers retry at intervals: without a rest they might never find a free moment.
        time.sleep(max(0.005, held))


def plan(keep: Keep, folder: DataFolder) -> Purged:
    """Return what a purge would remove. Nothing is touched."""
    found = Purged()
    whole: set[object] = set()  # what is purged with its task is counted once
    for sweep in sweeps(keep):
        for items in _windows(sweep):
            _count(sweep, [item for item in items if item[0] not in whole], found, folder.root)
            if isinstance(sweep, TaskSweep):
                whole.update(item[0] for item in items)
    found.history = sum(_history(keep, "SELECT count(*)"))
    return found


def _windows(sweep: Sweep) -> Iterator[list[tuple[object, ...]]]:
    after = ""
    while True:
        window = sweep.look(after)
        yield window.items
        if window.next is None:
            return
        after = window.next


def _count(sweep: Sweep, items: list[tuple[object, ...]], found: Purged, root: Path) -> None:
    if sweep.name == "steps":
        found.steps += len(items)
        return
    if sweep.name == "raw":
        paths = [str(item[2]) for item in items]
    else:
        found.tasks += len(items)
        found.archived += len(items) if sweep.name == "archived" else 0
        paths = []
        for item in items:
            sql = "SELECT path FROM pages WHERE task_id = ? AND purged_at IS NULL"
            paths += [path for (path,) in all_rows(sql, item)]
            found.steps += one_row("SELECT count(*) FROM outbox WHERE task_id = ?", item)[0]
            found.results += one_row("SELECT count(*) FROM results WHERE task_id = ?", item)[0]
    found.pages += len(paths)
    found.files += len(paths)
    found.size += sum(path.stat().st_size for name in paths if (path := root / name).is_file())


@contextmanager
def alone(folder: DataFolder, patience: float = 0.0) -> Iterator[None]:
    """Keep purges and backups apart: a backup needs the files that its rows name. Wait up to `patience` seconds."""
    lock = lock_within(folder.root / "upkeep.lock", patience)
    if lock is None:
        raise BusyError(f"Another purge or a backup is at work on {folder.root}: wait until it is done.")
    with lock:
        yield


def purge(keep: Keep, folder: DataFolder, pace: Pace, *, remembering: bool = False) -> Purged:
    """Purge everything that is old and settled. `remembering` continues where the last purge was stopped."""
    purged = Purged()
    with alone(folder):
        for sweep in sweeps(keep):
            _sweep(sweep, folder, pace, purged, remembering=remembering)
        if not pace.is_over():
            _purge_history(keep, folder, purged)
        _note_end(keep, purged)
        _remove_files(folder, pace, purged)
        while not pace.is_over() and shrink_a_bit():
            time.sleep(0.02)
        checkpoint()
    return purged


def _sweep(sweep: Sweep, folder: DataFolder, pace: Pace, purged: Purged, *, remembering: bool) -> None:
    place = f"purge_{sweep.name}_place"
    after = (fact(place) or "") if remembering else ""
    while not pace.is_over():
        window = sweep.look(after)
        start = 0
        while start < len(window.items) and not pace.is_over():
            items = window.items[start : start + pace.limit]
            with write("purge"):
                began = time.perf_counter()
                sweep.remove(items, purged)
            pace.rest(len(items), time.perf_counter() - began)
            start += len(items)
            while purged.pending:
                remove_pending(folder, purged.pending.pop())
        if start < len(window.items):
            break
        after = window.next or ""
        if window.next is None:
            break
    if remembering:
        with write("purge_place"):
            set_fact(place, after)


def _remove_files(folder: DataFolder, pace: Pace, purged: Purged) -> None:
    after = ""
    while not pace.is_over():
        removal = delete_pending_files(folder, after, _FILES)
        purged.files += removal.files
        purged.size += removal.size
        if not removal.last:
            return
        after = removal.last
        time.sleep(0.005)


def _note_end(keep: Keep, purged: Purged) -> None:
    if purged.rows:
        with write("purge_audit"):
            record_action("purge", keep.in_words(), purged.rows)


def _history(keep: Keep, verb: str) -> list[int]:
    """Return or delete the audit, and imports that no task refers to."""
    if math.isinf(keep.history):
        return []
    before = rfc3339(_before(keep.history))
    parts = (
        ("FROM audit WHERE at < ?", before),
        (
            "FROM imports WHERE coalesce(finished_at, started_at) < ? AND status <> 'running'"
            " AND NOT EXISTS (SELECT 1 FROM tasks WHERE import_id = imports.id)",
            before,
        ),
    )
    counts = []
    for part, value in parts:
        cursor = execute(f"{verb} {part}", (value,))
        counts.append(cursor.rowcount if verb == "DELETE" else int(cursor.fetchone()[0]))
    return counts


def _purge_history(keep: Keep, folder: DataFolder, purged: Purged) -> None:
    if math.isinf(keep.history):
        return
    fold_counties(_before(keep.history) // 60_000)
    if not sum(_history(keep, "SELECT count(*)")):
        return
    old = rfc3339(_before(keep.history))
    sql = "SELECT rejects_path FROM imports WHERE rejects_path IS NOT NULL AND coalesce(finished_at, started_at) < ?"
    # By name: a restored folder is rarely at the same path.
    rejects = {Path(path).name for (path,) in all_rows(sql, (old,))}
    with write("purge_history"):
        purged.history += sum(_history(keep, "DELETE"))
        execute("DELETE FROM list_columns WHERE import_id <> 0 AND import_id NOT IN (SELECT id FROM imports)")
        kept = all_rows("SELECT rejects_path FROM imports WHERE rejects_path IS NOT NULL")
        rejects -= {Path(path).name for (path,) in kept}
    for path in (folder.rejects / name for name in rejects):
        if path.is_file():
            path.unlink(missing_ok=True)
