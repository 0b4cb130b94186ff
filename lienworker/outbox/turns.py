"""One at a time: a turn is held by one living process, however many schedulers and stacks there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lienworker.store.clock import rfc3339
from lienworker.store.database import execute, one_row, write


@contextmanager
def turn(name: str, holder_id: str) -> Iterator[bool]:
    """True when the turn is ours until the end of the block. A dead holder's turn is freed with its leases."""
    mine = _take(name, holder_id)
    try:
        yield mine
    finally:
        if mine:
            with write("turn_end"):
                execute("DELETE FROM turns WHERE name = ? AND holder = ?", (name, holder_id))


def _take(name: str, holder_id: str) -> bool:
    with write("turn_start"):
        sql = "INSERT OR IGNORE INTO turns (name, holder, taken_at) VALUES (?, ?, ?)"
        return execute(sql, (name, holder_id, rfc3339())).rowcount == 1


def is_taken(name: str) -> bool:
    return one_row("SELECT 1 FROM turns WHERE name = ?", (name,)) is not None


def is_held_by(name: str, holder_id: str) -> bool:
    """Whether the turn is still ours: a process that was stopped for long may have lost it."""
    return one_row("SELECT 1 FROM turns WHERE name = ? AND holder = ?", (name, holder_id)) is not None
