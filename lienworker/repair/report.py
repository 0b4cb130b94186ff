"""The outcome of a check, and what a salvage saved, rebuilt and lost, in numbers as far as the remains tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lienworker.db.database import one_row
from lienworker.outbox.balance import balances

#: What people ask about; the rest is history and figures.
_MAIN = {"tasks": "tasks", "results": "results", "pages": "pages", "outbox": "outbox rows"}
_LOST = "database: lost "
#: Completed tasks and uploads refer to a result.
_LOST_RESULTS = """
SELECT count(*) FROM (
    SELECT task_id FROM tasks WHERE status = 'completed' UNION SELECT task_id FROM outbox WHERE topic = 'upload_result')
WHERE task_id NOT IN (SELECT task_id FROM results)
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check: its state and, where that is wrong, what a repair does about it, to how many."""

    check: str
    is_well: bool
    words: str
    remedy: str = ""
    n: int = 0
    #: None where a repair can do nothing.
    fix: Callable[[], object] | None = None

    @property
    def in_full(self) -> str:
        """What is wrong and what is done about it."""
        return f"{self.check}: {self.words}: {self.remedy}"


@dataclass(slots=True)
class Salvaged:
    """What happened to the tables: rows saved, rows rebuilt from others, and tables that lost rows."""

    rows: dict[str, int] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    #: How many tasks there were, by the old file's own count; None where that cannot be read.
    tasks_before: int | None = None
    tasks_rebuilt: int = 0
    addresses_lost: int = 0
    pages_rebuilt: int = 0

    def in_words(self) -> str:
        """Return one line for the terminal and the audit. Call it before the losses are booked."""
        lost = ", ".join(self._losses())
        saved = ", ".join(f"{self.rows.get(table, 0):,} {name}" for table, name in _MAIN.items())
        others = sum(n for table, n in self.rows.items() if table not in _MAIN)
        words = f"{_LOST}{lost}" if lost else "database: nothing was lost"
        words += f"; saved {saved} and {others:,} other rows"
        if self.tasks_rebuilt or self.pages_rebuilt:
            words += f"; rebuilt {self.tasks_rebuilt:,} tasks and {self.pages_rebuilt:,} pages"
        return words

    def _losses(self) -> Iterator[str]:
        tasks = self.tasks_before and self.tasks_before - one_row("SELECT count(*) FROM tasks")[0]
        outbox = sum(max(0, side.added - side.purged - side.there) for side in balances())
        counts = {"tasks": tasks, "results": one_row(_LOST_RESULTS)[0] or None, "outbox": outbox}
        for table in self.damaged:
            n = counts.get(table)
            if n is None:
                yield f"an unknown number of {table}"
            elif n > 0:
                yield f"{n:,} {_MAIN[table]}"
        if self.addresses_lost:
            yield f"the address of {self.addresses_lost:,} tasks"


def tells_of_losses(words: str) -> bool:
    """Return whether a line that was made of a salvage reports a loss."""
    return words.startswith(_LOST)
