"""What a salvage has saved and what it has lost, in numbers, as far as what is left can tell."""

from __future__ import annotations

from collections.abc import Iterator

from lienworker.outbox.balance import balances
from lienworker.repair.salvage import Salvaged
from lienworker.store.database import one_row

#: What a person asks for; the rest is history and figures.
_MAIN = ("tasks", "results", "pages", "outbox")
_NAMES = {"outbox": "outbox rows"}
_LOST = "database: lost "
#: Completed tasks and uploads speak of a result.
_LOST_RESULTS = """
SELECT count(*) FROM (
    SELECT task_id FROM tasks WHERE status = 'completed' UNION SELECT task_id FROM outbox WHERE topic = 'upload_result')
WHERE task_id NOT IN (SELECT task_id FROM results)
"""


def account(saved: Salvaged) -> str:
    """One line for the terminal and for the audit. To be asked before the losses are booked."""
    lost = ", ".join(_losses(saved))
    return f"{_LOST}{lost}; {_kept(saved)}" if lost else f"database: nothing was lost; {_kept(saved)}"


def tells_of_losses(words: str) -> bool:
    return words.startswith(_LOST)


def _kept(saved: Salvaged) -> str:
    main = [f"{saved.rows.get(table, 0):,} {_NAMES.get(table, table)}" for table in _MAIN]
    others = sum(n for table, n in saved.rows.items() if table not in _MAIN)
    made = saved.made_again
    again = f"; made again {made.tasks:,} tasks and {made.pages:,} pages" if made.tasks or made.pages else ""
    return f"saved {', '.join(main)} and {others:,} other rows{again}"


def _losses(saved: Salvaged) -> Iterator[str]:
    counts = {
        "tasks": None if saved.tasks_before is None else saved.tasks_before - _count("SELECT count(*) FROM tasks"),
        "results": _count(_LOST_RESULTS) or None,
        "outbox": sum(max(0, side.added - side.purged - side.there) for side in balances()),
    }
    for table in saved.damaged:
        n = counts.get(table)
        if n is None:
            yield f"an unknown number of {table}"
        elif n > 0:
            yield f"{n:,} {_NAMES.get(table, table)}"
    if saved.made_again.without_address:
        yield f"the address of {saved.made_again.without_address:,} tasks"


def _count(sql: str) -> int:
    return int(one_row(sql)[0])
