"""Leases live as long as their holder.

Each process that takes rows is a holder: it keeps a locked file (the kernel frees the lock when it dies, whatever the
reason) and counts beats in its `workers` row from a thread of its own. A holder whose lock is free is dead; one whose
beat stands still for LEASE_MS by the watcher's own steady clock is as good as dead (stopped, swapped out). So a jump
of the wall clock frees nothing, and a slow page's lease is never stolen.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from lienworker.data_folder import DataFolder, try_lock
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import DATABASE_TROUBLE, all_rows, close, dict_rows, execute, one_row, write
from lienworker.outbox import transitions
from lienworker.outbox.claims import LEASE_MS
from lienworker.outbox.outcomes import record_try, report_failure, say_failed
from lienworker.outbox.states import STEPS, State, Topic
from lienworker.store import tasks

PULSE_SECONDS = 3.0
#: Holders that a row may outlive before it is found guilty.
MOST_CRASHES = 5
_AFTER_ACCIDENT_MS = 2_000

logger = logging.getLogger(__name__)


class WorkerLease:
    """This process as a holder of leases. Use as a context manager; one a process."""

    def __init__(
        self, folder: DataFolder, kind: str, slots: int, after_beat: Callable[[], None] = lambda: None
    ) -> None:
        self.folder = folder
        self.kind = kind
        self.slots = slots
        self._after_beat = after_beat
        self.id = secrets.token_hex(6)
        self._numbers = iter(range(1, 10**12))
        self._live: set[str] = set()
        self._to_free: dict[str, bool] = {}
        self._beating = threading.Lock()
        self._lock: IO[str] | None = None
        self._suspect = threading.Lock()
        self._stop = threading.Event()
        self._watch = Watch(folder, self.id)
        self._thread = threading.Thread(target=self._pulse, name="pulse", daemon=True)

    def __enter__(self) -> WorkerLease:
        self._register()
        self._watch.reap_dead_workers()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        free(self.id, blame=False)
        if self._lock:
            (self.folder.holders / self.id).unlink(missing_ok=True)
            self._lock.close()

    def _register(self) -> None:
        self._lock = try_lock(self.folder.holders / self.id)
        now = rfc3339()
        with write("holder_start"):
            execute(
                "INSERT INTO workers (holder, kind, pid, slots, started_at, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
                (self.id, self.kind, os.getpid(), self.slots, now, now),
            )

    def _come_back(self) -> None:
        """Others took us for dead (the process was stopped for long): we go on under a new name, with nothing."""
        logger.warning("holder %s was taken for dead, it comes back under another name", self.id)
        if self._lock:
            self._lock.close()
        self.id = self._watch.own_id = secrets.token_hex(6)
        self._register()

    @contextmanager
    def lease(self) -> Iterator[str]:
        """A token to claim rows with; rows claimed with it are renewed until the end of the block."""
        token = f"{self.id}.{next(self._numbers)}"
        self._live.add(token)
        blame = later = False
        try:
            yield token
        except Exception as problem:
            # A full disk or a locked database is no row's fault; what else goes wrong may be.
            blame, later = not isinstance(problem, (OSError, *DATABASE_TROUBLE)), True
            raise
        finally:
            self._live.discard(token)
            self._give_up(token, blame=blame, later=later)

    def _give_up(self, token: str, *, blame: bool, later: bool) -> None:
        """Frees what a claim still holds; if not even that works now, the next beat tries again."""
        try:
            free_token(token, blame=blame, later=later)
            self._to_free.pop(token, None)
        except DATABASE_TROUBLE as problem:
            self._to_free[token] = blame
            logger.warning("rows cannot be given back yet: %s", problem, extra={"action": "give_back"})

    def owns(self, token: str) -> bool:
        """Whether claims with this token still count; not after we were taken for dead and came back."""
        return token.startswith(f"{self.id}.")

    @contextmanager
    def room_for_quarantined(self) -> Iterator[bool]:
        """True for one caller at a time: one suspect travels in a process, so that its death names the guilty."""
        free_place = self._suspect.acquire(blocking=False)
        try:
            yield free_place
        finally:
            if free_place:
                self._suspect.release()

    def beat(self) -> None:
        """A sign of life, and new time for the leases in hand."""
        with self._beating:
            self._beat()
        for token, blame in list(self._to_free.items()):
            self._give_up(token, blame=blame, later=False)

    def _beat(self) -> None:
        live = list(self._live)
        with write("beat"):
            sql = "UPDATE workers SET beat = beat + 1, seen_at = ? WHERE holder = ?"
            is_known = execute(sql, (rfc3339(), self.id)).rowcount == 1
            transitions.renew_leases(live, now_ms() + LEASE_MS)
        if not is_known:
            self._come_back()

    def _pulse(self) -> None:
        while not self._stop.wait(PULSE_SECONDS):
            try:
                self.beat()
                self._watch.reap_dead_workers()
                self._after_beat()
            except Exception as problem:  # a locked database, a full disk: the next beat may do, and must be tried
                logger.warning("pulse failed, will try again: %s", problem, extra={"action": "beat"})
        close()


@dataclass
class Watch:
    """One process's view of the others: when did it last see each of them move."""

    folder: DataFolder
    own_id: str
    seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    last_look: float = 0.0

    def reap_dead_workers(self) -> None:
        """Frees what dead holders held."""
        now = time.monotonic()
        if now - self.last_look > LEASE_MS / 2000:
            self.seen.clear()  # we stood still ourselves: nobody was watched meanwhile, so nobody is judged by it
        self.last_look = now
        beats = dict(all_rows("SELECT holder, beat FROM workers"))
        for (holder,) in all_rows("SELECT holder FROM turns"):
            beats.setdefault(holder, -1)
        for (token,) in all_rows("SELECT DISTINCT lease_token FROM outbox WHERE state = 'leased'"):
            beats.setdefault(token.partition(".")[0], -1)
        self.seen = {holder: seen for holder, seen in self.seen.items() if holder in beats}
        for holder, beat in beats.items():
            if holder != self.own_id and self._is_dead(holder, beat):
                n = free(holder, blame=True)
                self.seen.pop(holder, None)
                (self.folder.holders / holder).unlink(missing_ok=True)
                logger.warning("holder %s is dead; %d rows are free again", holder, n, extra={"action": "reap"})

    def _is_dead(self, holder: str, beat: int) -> bool:
        if is_unlocked(self.folder, holder):
            return True
        last_beat, last_move = self.seen.get(holder, (None, 0.0))
        now = time.monotonic()
        if beat != last_beat:
            self.seen[holder] = (beat, now)
            return False
        return now - last_move > LEASE_MS / 1000


def reap_dead_workers(folder: DataFolder) -> None:
    """Frees what processes that are gone had in hand, for somebody who cannot wait until a worker notices."""
    Watch(folder, own_id="").reap_dead_workers()


def living(folder: DataFolder, kind: str) -> list[dict[str, Any]]:
    """The holders of a kind whose processes live, by their locks; rows of dead ones may still be there."""
    rows = dict_rows("SELECT holder, kind, pid, slots, started_at, seen_at FROM workers WHERE kind = ?", (kind,))
    return [row for row in rows if not is_unlocked(folder, row["holder"])]


def is_unlocked(folder: DataFolder, holder: str) -> bool:
    """Whether the process behind a holder is gone: the kernel has freed its lock."""
    path = folder.holders / holder
    if not path.exists():
        return True
    lock = try_lock(path)
    if lock is None:
        return False
    lock.close()
    return True


def anybody_alive(folder: DataFolder) -> bool:
    """Whether any process works on the folder, with or without a stack around it."""
    return any(not is_unlocked(folder, path.name) for path in folder.holders.glob("*"))


def free_token(token: str, *, blame: bool, later: bool) -> None:
    """Gives back what a claim still holds; after an accident for later, so that it does not turn in circles."""
    if not _leased("lease_token = ?", token):
        return
    with write("free_token"):
        rows = _leased("lease_token = ?", token)
        for row in rows:
            _free_row(row, guilty=blame)
        tasks.mark_pending([row["task_id"] for row in rows if row["topic"] == Topic.FETCH])
        if later:
            transitions.postpone([row["id"] for row in rows], now_ms() + _AFTER_ACCIDENT_MS)


def _leased(condition: str, *values: str | int) -> list[dict[str, Any]]:
    sql = f"SELECT id, task_id, topic, generation, attempts, alone FROM outbox WHERE state = 'leased' AND {condition}"
    return list(dict_rows(sql, values))


def free(holder: str, *, blame: bool) -> int:
    """Ends a holder: its rows wait again, its turns are open, its sign of life goes.

    With blame, each of its rows has lost an attempt and is a suspect from now on: it travels alone.
    """
    with write("reap"):
        rows = _leased("lease_token > ? AND lease_token < ?", f"{holder}.", f"{holder}/")  # '/' comes after '.'
        for row in rows:
            _free_row(row, guilty=blame)
        tasks.mark_pending([row["task_id"] for row in rows if row["topic"] == Topic.FETCH])
        execute("DELETE FROM turns WHERE holder = ?", (holder,))
        execute("DELETE FROM workers WHERE holder = ?", (holder,))
    return len(rows)


def free_for(holder: str, guilty: int, words: str) -> None:
    """Ends a holder on account of one row: that one has lost an attempt, the others wait as if nothing had been."""
    with write("hang"):
        for row in _leased("id = ?", guilty):
            _free_row(row, guilty=True, words=words)
    free(holder, blame=False)


def _free_row(row: dict[str, Any], *, guilty: bool, words: str = "The worker died while it had this row.") -> None:
    if not guilty:
        transitions.free_lease(row["id"])
        return
    record_try(row["id"], row["task_id"], row["topic"], "worker_died", words)
    convicted = row["alone"] + 1 >= MOST_CRASHES
    is_step = row["topic"] in STEPS
    state = (State.DELIVERED if is_step else State.PARKED) if convicted else State.WAITING
    transitions.blame_for_death(row["id"], state)
    if convicted and row["topic"] == Topic.UPLOAD_RAW:
        transitions.block_result(row["task_id"], row["generation"])
    if convicted and is_step:
        words = f"{words} That happened {MOST_CRASHES} times."
        tasks.mark_failed(row["task_id"], "worker_died", words)
        report_failure(row["task_id"], "worker_died")
        say_failed(row["task_id"], row["topic"], "worker_died")


# One at a time: a turn is held by one living process, however many schedulers and stacks there are.


#: The turns that threads of this process are at.
_running: set[tuple[str, str]] = set()
_taking = threading.Lock()


@contextmanager
def turn(name: str, holder_id: str) -> Iterator[bool]:
    """True when the turn is ours until the end of the block. A dead holder's turn is freed with its leases."""
    mine = _take(name, holder_id)
    try:
        yield mine
    finally:
        if mine:
            _give_up(name, holder_id)


def _take(name: str, holder_id: str) -> bool:
    with _taking:
        with write("turn_start"):
            sql = "INSERT OR IGNORE INTO turns (name, holder, taken_at) VALUES (?, ?, ?)"
            execute(sql, (name, holder_id, rfc3339()))
            mine = is_held_by(name, holder_id) and (name, holder_id) not in _running
        if mine:
            _running.add((name, holder_id))
    return mine


def _give_up(name: str, holder_id: str) -> None:
    """Where the database does not take it (a full disk), the turn stays in our name, and we may take it up again."""
    _running.discard((name, holder_id))
    try:
        with write("turn_end"):
            execute("DELETE FROM turns WHERE name = ? AND holder = ?", (name, holder_id))
    except DATABASE_TROUBLE as problem:
        logger.warning("the turn of %s cannot be given up yet: %s", name, problem, extra={"action": "turn"})


def is_taken(name: str, holder_id: str = "") -> bool:
    """Whether somebody is at it: a living other, or a thread of this process."""
    row = one_row("SELECT holder FROM turns WHERE name = ?", (name,))
    return row is not None and (row[0] != holder_id or (name, holder_id) in _running)


def is_held_by(name: str, holder_id: str) -> bool:
    """Whether the turn is still ours: a process that was stopped for long may have lost it."""
    return one_row("SELECT 1 FROM turns WHERE name = ? AND holder = ?", (name, holder_id)) is not None
