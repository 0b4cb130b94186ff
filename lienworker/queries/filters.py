"""Listings for people: tasks and results that match a filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import peewee

from lienworker.db.models import Result, Task, dicts, tuples
from lienworker.store.results import with_data
from lienworker.store.tasks import without_secrets


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """What to look for; a criterion that is None is ignored."""

    status: str | None = None
    queue: str | None = None
    platform: str | None = None
    state: str | None = None
    county: str | None = None
    source: str | None = None
    reason: str | None = None
    text: str | None = None
    doubtful: bool = False
    """Only results that somebody should look at."""

    @property
    def is_empty(self) -> bool:
        return self == TaskFilter()

    def in_words(self) -> str:
        names = ("status", "queue", "platform", "state", "county", "source", "reason", "text")
        words = [f"{name}={value}" for name in names if (value := getattr(self, name)) is not None]
        return " ".join(words + ["doubtful"] * self.doubtful) or "all"


def find_tasks(wanted: TaskFilter, limit: int | None = None, offset: int = 0) -> Iterator[dict[str, Any]]:
    """Yield matching tasks, in the order in which they came (the primary key is a hash and has no order)."""
    query = Task.select().where(*_conditions(Task, wanted)).order_by(peewee.SQL("rowid")).offset(offset)
    query = query.limit(limit) if limit is not None else query.limit(-1)
    yield from map(without_secrets, dicts(query))


def find_task_ids(wanted: TaskFilter, statuses: tuple[str, ...]) -> list[str]:
    query = Task.select(Task.task_id).where(Task.status.in_(statuses), *_conditions(Task, wanted))
    return [row[0] for row in tuples(query)]


def find_results(wanted: TaskFilter, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield matching results, one at a time, with `data` as an object."""
    query = Result.select().where(*_conditions(Result, wanted)).order_by(Result.scraped_at)
    query = query.limit(limit) if limit is not None else query
    yield from map(with_data, dicts(query))


def list_results(wanted: TaskFilter, limit: int, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield matching results, without their `data` except for these values of it: a record may have megabytes."""
    columns = [field for field in Result._meta.sorted_fields if field.name != "data"]
    values = [_value_of(name).alias(name) for name in names]
    query = Result.select(*columns, *values).where(*_conditions(Result, wanted)).order_by(Result.scraped_at)
    yield from dicts(query.limit(limit))


def _value_of(name: str) -> Any:
    found = peewee.fn.json_extract(Result.data, f"$.{name}")
    return peewee.Case(None, [(peewee.fn.json_valid(Result.data), found)])


def _conditions(model: Any, wanted: TaskFilter) -> list[Any]:
    names = ("status", "queue", "platform", "state", "source", "reason")
    chosen = [
        getattr(model, name) == value for name in names if (value := getattr(wanted, name)) and hasattr(model, name)
    ]
    if wanted.doubtful and hasattr(model, "doubts"):
        chosen.append(model.doubts.is_null(False))
    if wanted.county:
        chosen.append(model.county == wanted.county)
    if wanted.text:
        fields = [model.task_id, model.parcel_id, *([model.url] if hasattr(model, "url") else [])]
        found = fields[0].contains(wanted.text)
        for field in fields[1:]:
            found |= field.contains(wanted.text)
        chosen.append(found)
    return chosen or [True]
