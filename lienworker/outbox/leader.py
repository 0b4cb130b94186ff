"""One at a time: a turn is held by one living process, however many schedulers and stacks there are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lienworker.db.clock import rfc3339
from lienworker.db.database import DATABASE_TROUBLE, execute, one_row, write

#: The turns that threads of this process are at.
_running: set[tuple[str, str]] = set()
_taking = threading.Lock()

logger = logging.getLogger(__name__)


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
