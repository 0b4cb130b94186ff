"""What there is to choose from in a filter, each with how often: from tallies, never from the tasks."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lienworker.db.database import all_rows

#: Suggestions for one field.
_MOST = 200


def known_values() -> dict[str, list[dict[str, Any]]]:
    """Return platforms, states, counties and reasons with their numbers of tasks; the most frequent first."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("platform", "state", "county", "reason")}
    for key, n in all_rows("SELECT key, sum(n) FROM rollups WHERE name = 'county' GROUP BY key"):
        platform, state, rest = key.split("|", 2)
        _add(counts, (platform, state, rest.rsplit("|", 1)[0]), n)
    for place, n in all_rows("SELECT place, sum(n) FROM waiting_since WHERE topic = 'fetch' AND n > 0 GROUP BY place"):
        _add(counts, tuple([*place.split("|", 2), "", ""][:3]), n)
    for reason, n in all_rows("SELECT reason, n FROM failed_tasks WHERE n > 0"):
        counts["reason"][reason] += n
    return {name: [{"value": one, "n": n} for one, n in found.most_common(_MOST)] for name, found in counts.items()}


def _add(counts: dict[str, Counter[str]], place: tuple[str, ...], n: int) -> None:
    for name, found in zip(("platform", "state", "county"), place, strict=True):
        if found:
            counts[name][found] += n
