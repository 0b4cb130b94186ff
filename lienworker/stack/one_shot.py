"""One job from beginning to end: watch the tasks of an import until each has ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from lienworker.db.database import DATABASE_TROUBLE
from lienworker.steps.drift import held_tasks
from lienworker.store.counts import import_counts

_LOOK_SECONDS = 0.2


@dataclass
class Interrupts:
    """Ctrl-C (or a SIGTERM) asks for a stop; a second one for a stop at once."""

    count: int = 0
    at_once: Callable[[], None] = field(default=lambda: None)

    def __bool__(self) -> bool:
        return self.count > 0

    def note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            self.at_once()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Record signals instead of raising them for the block."""
    noted = Interrupts()
    before = {number: signal.signal(number, noted.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_ended(import_id: int, show: Callable[[dict[str, int]], None]) -> bool:
    counts = import_counts(import_id)
    show(counts)
    left = counts["pending"] + counts["processing"]
    return not left or left == held_tasks(import_id)  # what the drift guard holds waits for a person


def watch_import(
    import_id: int,
    stop: Interrupts,
    tend: Callable[[], None],
    endure: Callable[[Exception], None],
    show: Callable[[dict[str, int]], None],
) -> bool:
    """Return True when every task of the import has ended; False when it was stopped.

    `tend` looks after the stack meanwhile; `endure` decides what to do about a database that cannot be read now.
    """
    while not stop:
        tend()
        began = time.monotonic()
        try:
            if _has_ended(import_id, show):
                return True
        except DATABASE_TROUBLE as problem:
            endure(problem)
        # Counting a million tasks is slow: spend at most a tenth of the time on it.
        time.sleep(max(_LOOK_SECONDS, 10 * (time.monotonic() - began)))
    return False
