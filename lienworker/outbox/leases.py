"""Leases: who holds a row, for as long as that process lives; and turns, which one process takes at a time.

A lease is a token in a row: the id of its holder and the number of the claim. While a row carries it, only the holder
may change the row (transitions are fenced by the token), and nobody else claims it. A lease ends in one of three ways:
the holder ends the row or gives it back, the holder exits, or another process finds the holder dead and frees its rows.

A holder is one process. It proves that it lives in two ways: it keeps a file in `holders/` locked (the kernel releases
the lock when the process dies, for whatever reason), and it counts beats in its `workers` row from its own thread. A
holder whose lock is free is dead. One whose beat has not moved for LEASE_MS, by the observer's monotonic clock, is
treated as dead (stopped, swapped out). So a jump of the wall clock frees nothing, and the lease of a slow page is never
stolen. Rejected: leases that simply expire at a wall-clock time (a slow page would be fetched twice, and a clock set
forward would free everything), and process ids (they are reused, and mean nothing in another container).
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
#: How many holders may die with a row before the row is blamed for it.
MOST_CRASHES = 5
_AFTER_ACCIDENT_MS = 2_000

logger = logging.getLogger(__name__)


class WorkerLease:
    """This process as a holder of leases: its lock, its heartbeat, and the tokens that it claims rows with.

    A process enters one WorkerLease when it opens the store and leaves it when it stops; steps call `lease()` for a
    token, claim rows with it, and ask `owns()` before they store what they made. A thread beats every few seconds: it
    renews the leases of all live tokens and reaps other processes that have died. On exit the remaining rows go back to
    waiting and nobody is blamed. Where another process took this one for dead (it was stopped for long), it continues
    under a new id and holds nothing; `owns()` is then false for its old tokens.

    One object per process, not per claim: a process dies as a whole, so one lock and one beat answer for all of its
    rows.
    """

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
        self._quarantine = threading.Lock()
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
        """Continue under a new id, holding nothing, after others took this process for dead."""
        logger.warning("worker %s was taken for dead; it continues under a new id", self.id)
        if self._lock:
            self._lock.close()
        self.id = self._watch.own_id = secrets.token_hex(6)
        self._register()

    @contextmanager
    def lease(self) -> Iterator[str]:
        """Yield a token to claim rows with; rows claimed with it are renewed until the end of the block."""
        token = f"{self.id}.{next(self._numbers)}"
        self._live.add(token)
        blame = later = False
        try:
            yield token
        except Exception as problem:
            # A full disk or a locked database is no row's fault; any other error may be.
            blame, later = not isinstance(problem, (OSError, *DATABASE_TROUBLE)), True
            raise
        finally:
            self._live.discard(token)
            self._give_up(token, blame=blame, later=later)

    def _give_up(self, token: str, *, blame: bool, later: bool) -> None:
        """Free what a claim still holds; if even that fails, the next beat tries again."""
        try:
            free_token(token, blame=blame, later=later)
            self._to_free.pop(token, None)
        except DATABASE_TROUBLE as problem:
            self._to_free[token] = blame
            logger.warning("rows cannot be given back yet: %s", problem, extra={"action": "give_back"})

    def owns(self, token: str) -> bool:
        """Return whether this token is still valid; not after this process was taken for dead and came back."""
        return token.startswith(f"{self.id}.")

    @contextmanager
    def room_for_quarantined(self) -> Iterator[bool]:
        """Yield True to one caller at a time: one quarantined row per process, so that a death has one culprit."""
        is_free = self._quarantine.acquire(blocking=False)
        try:
            yield is_free
        finally:
            if is_free:
                self._quarantine.release()

    def beat(self) -> None:
        """Prove that this process lives, and renew the leases that it holds."""
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
            except Exception as problem:  # a locked database, a full disk: the next beat may succeed, and must be tried
                logger.warning("pulse failed, will try again: %s", problem, extra={"action": "beat"})
        close()


@dataclass
class Watch:
    """One process's view of the others: when it last saw each of them beat."""

    folder: DataFolder
    own_id: str
    seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    last_look: float = 0.0

    def reap_dead_workers(self) -> None:
        """Free the rows and turns of dead holders."""
        now = time.monotonic()
        if now - self.last_look > LEASE_MS / 2000:
            self.seen.clear()  # this process stood still: it watched nobody, so it judges nobody
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
                logger.warning("worker %s is dead; %d rows are free again", holder, n, extra={"action": "reap"})

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
    """Free what dead processes held, for a caller that cannot wait until a worker notices."""
    Watch(folder, own_id="").reap_dead_workers()


def living(folder: DataFolder, kind: str) -> list[dict[str, Any]]:
    """Return the holders of a kind whose processes live, by their locks; the table may still list dead ones."""
    rows = dict_rows("SELECT holder, kind, pid, slots, started_at, seen_at FROM workers WHERE kind = ?", (kind,))
    return [row for row in rows if not is_unlocked(folder, row["holder"])]


def is_unlocked(folder: DataFolder, holder: str) -> bool:
    """Return whether a holder's process is gone: the kernel has released its lock."""
    path = folder.holders / holder
    if not path.exists():
        return True
    lock = try_lock(path)
    if lock is None:
        return False
    lock.close()
    return True


def anybody_alive(folder: DataFolder) -> bool:
    """Return whether any process works on the folder, with or without a stack."""
    return any(not is_unlocked(folder, path.name) for path in folder.holders.glob("*"))


def free_token(token: str, *, blame: bool, later: bool) -> None:
    """Free what a claim still holds; after an error with a short delay, so that it does not spin."""
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
    """Remove a holder: its rows wait again, and its turns are free.

    With `blame`, each of its rows loses an attempt and is quarantined: it is claimed in isolation from now on.
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
    """Remove a holder because of one row: that row loses an attempt, the others wait as if nothing had happened."""
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
        transitions.block_results(row["id"], row["task_id"], row["generation"])
    if convicted and is_step:
        words = f"{words} That happened {MOST_CRASHES} times."
        tasks.mark_failed(row["task_id"], "worker_died", words)
        report_failure(row["task_id"], "worker_died")
        say_failed(row["task_id"], row["topic"], "worker_died")


# One at a time: a turn is taken by one living process, however many schedulers and stacks there are.


#: The turns that threads of this process are taking.
_running: set[tuple[str, str]] = set()
_taking = threading.Lock()


@contextmanager
def turn(name: str, holder_id: str) -> Iterator[bool]:
    """Yield whether the turn is ours until the end of the block. A dead holder's turn is freed with its leases."""
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
    """Give up a turn; where the database refuses (a full disk), it stays in our name, and we may take it again."""
    _running.discard((name, holder_id))
    try:
        with write("turn_end"):
            execute("DELETE FROM turns WHERE name = ? AND holder = ?", (name, holder_id))
    except DATABASE_TROUBLE as problem:
        logger.warning("the turn of %s cannot be given up yet: %s", name, problem, extra={"action": "turn"})


def is_taken(name: str, holder_id: str = "") -> bool:
    """Return whether the turn is taken: by another living process, or by a thread of this one."""
    row = one_row("SELECT holder FROM turns WHERE name = ?", (name,))
    return row is not None and (row[0] != holder_id or (name, holder_id) in _running)


def is_held_by(name: str, holder_id: str) -> bool:
    """Return whether the turn is still ours: a process that was stopped for long may have lost it."""
    return one_row("SELECT 1 FROM turns WHERE name = ? AND holder = ?", (name, holder_id)) is not None
