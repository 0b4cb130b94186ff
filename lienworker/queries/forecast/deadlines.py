"""Deadlines of imports: which will not be kept, and what would help."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.database import dict_rows
from lienworker.queries.forecast.facts import import_part
from lienworker.queries.forecast.model import Facts, Late, late_for
from lienworker.queries.forecast.words import clock
from lienworker.queries.formatting import number, seconds
from lienworker.store.counts import import_counts

#: Imports with a deadline that are looked at, the earliest first.
_MOST = 10
_OPEN = """
SELECT id, name, auction, due_by FROM imports i WHERE due_by IS NOT NULL
AND EXISTS (SELECT 1 FROM tasks t WHERE t.import_id = i.id AND t.status IN ('pending', 'processing'))
ORDER BY due_by LIMIT ?
"""


def deadlines(facts: Facts) -> list[dict[str, Any]]:
    """Return the imports that have a deadline and are not done: how many tasks will be late, and what would help."""
    return [_deadline(row, facts) for row in dict_rows(_OPEN, (_MOST,))]


def _deadline(row: dict[str, Any], facts: Facts) -> dict[str, Any]:
    late = late_for(facts, import_part(facts, row["id"]), row["due_by"])
    n, total = sum(each.n for each in late), sum(import_counts(row["id"]).values())
    return {
        "import_id": row["id"],
        "name": row["auction"] or PurePath(row["name"]).name,
        "due_by": rfc3339(row["due_by"]),
        "late": n,
        "tasks": total,
        "words": _in_words(row, late, n, total, facts.now) if n else None,
    }


def _in_words(row: dict[str, Any], late: list[Late], n: int, total: int, now: int) -> str:
    name = row["auction"] or PurePath(row["name"]).name
    left = row["due_by"] - now
    when = f"{clock(row['due_by'], now)}, in {seconds(left / 1000)}" if left > 0 else f"{clock(row['due_by'], now)}"
    verb = "will not make" if left > 0 else "did not make"
    return f"{number(n)} of {number(total)} of {name} {verb} {when}: {_remedy(late[0])}"


def _remedy(late: Late) -> str:
    """Return which site is the longest, and what would help there."""
    site = late.site
    if site.paused:
        return f"{site.site} is paused; `lienworker hosts resume {site.site}`"
    if site.dead_since is not None:
        return f"{site.site} does not answer"
    pace = f"{site.site} has {number(late.n)} too many at {site.delay:g} s ({site.delay_from})"
    if late.helps is None:
        return f"{pace}, and no delay would do: import less of it, or with --drop-after"
    over = " --over-robots" if site.delay_from == "robots.txt" else ""
    return f"{pace}; `lienworker hosts set {site.site} --delay {late.helps:.1f}{over}` would do"
