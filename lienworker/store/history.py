"""How often each field was present, by platform and county: the evidence of the drift guard."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lienworker.db.database import execute, one_row
from lienworker.db.models import FieldHistory, dicts

_COLUMNS = "recent, pages, counts, ranges, paused_at, words, sample_task, sample_path"


@dataclass(frozen=True, slots=True)
class Place:
    """A platform in a county, as the tasks name it; an unknown county is named by its host."""

    platform: str
    state: str | None
    county: str | None
    host: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.platform, self.state or "", self.county or f"({self.host})"

    def in_words(self) -> str:
        return f"{self.platform}, {self.county or self.host}" + (f" {self.state}" if self.state else "")


@dataclass(slots=True)
class History:
    """The newest pages one by one, as numbers whose bits say which fields were present, and the pages before them."""

    recent: list[int] = field(default_factory=list)
    pages: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, list[float]] = field(default_factory=dict)
    """How large areas and values are there; see `steps.ranges`."""
    paused_at: str | None = None
    words: str | None = None
    sample_task: str | None = None
    sample_path: str | None = None


def history_of(place: Place) -> History:
    """Return what a county's pages had; nothing where a damaged database has lost it: it is learned again."""
    sql = f"SELECT {_COLUMNS} FROM field_history WHERE platform = ? AND state = ? AND county = ?"
    row = one_row(sql, place.key)
    if row is None:
        return History()
    try:
        recent, counts, ranges = (json.loads(row[at]) for at in (0, 2, 3))
    except ValueError:
        return History()
    return History(recent, row[1], counts, ranges, *row[4:])


def ranges_of(place: Place) -> dict[str, list[float]]:
    """How large areas and values are there, alone."""
    row = one_row("SELECT ranges FROM field_history WHERE platform = ? AND state = ? AND county = ?", place.key)
    try:
        ranges: dict[str, list[float]] = json.loads(row[0]) if row else {}
    except ValueError:
        return {}
    return ranges


def save_history(place: Place, history: History) -> None:
    """Store the history of a place. Part of the transaction that stores the pages."""
    execute(
        f"INSERT OR REPLACE INTO field_history (platform, state, county, {_COLUMNS})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *place.key, json.dumps(history.recent), history.pages, json.dumps(history.counts),
            json.dumps(history.ranges), history.paused_at, history.words, history.sample_task, history.sample_path,
        ),
    )  # fmt: skip


def likely_platform(state: str | None, county: str | None, host: str) -> str | None:
    """Return the platform that most pages of a county come from, for a page that does not say."""
    key = Place("", state, county, host).key[1:]
    sql = "SELECT platform FROM field_history WHERE state = ? AND county = ? ORDER BY pages DESC LIMIT 1"
    row = one_row(sql, key)
    return str(row[0]) if row else None


def paused_places() -> list[dict[str, Any]]:
    """Return the counties that the drift guard holds, with its reasons."""
    it = FieldHistory
    columns = (it.platform, it.state, it.county, it.paused_at, it.words, it.sample_task, it.sample_path)
    return list(dicts(it.select(*columns).where(it.paused_at.is_null(False)).order_by(it.paused_at)))
