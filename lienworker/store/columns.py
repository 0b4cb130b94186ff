"""The columns that results have as a table: known before the first row is written, however many there are.

Whoever stores tasks or results notes names that are new, in the same transaction: the columns of an operator's own list
by its import, those of records by their place. What an earlier version stored is looked through once, by `learn`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from lienworker.db.database import all_rows, execute, execute_many, fact, set_fact, storable, write

#: Pairs as the page showed them: a column for each would make thousands, so they share one.
AS_JSON = ("fields",)
#: A fact that is there while some are not noted: after an upgrade, or a repair.
_UNKNOWN = "columns_unknown"
_NOTE_OF_LIST = "INSERT OR IGNORE INTO list_columns (import_id, name) VALUES (?, ?)"
_NOTE_OF_RESULT = "INSERT OR IGNORE INTO result_columns (platform, state, county, name) VALUES (?, ?, ?, ?)"
#: A place without a state or a county may have got one since its columns were noted.
_OF_PLACE = """
SELECT DISTINCT name FROM result_columns WHERE (?1 IS NULL OR platform = ?1)
    AND (?2 IS NULL OR state = '' OR state = ?2 COLLATE NOCASE)
    AND (?3 IS NULL OR county = '' OR county = ?3 COLLATE NOCASE)
"""
_OF_TASKS = """
INSERT OR IGNORE INTO list_columns (import_id, name)
SELECT DISTINCT coalesce(import_id, 0), key
FROM tasks, json_each(CASE WHEN json_valid(target_json) THEN target_json ELSE '{}' END) WHERE target_json <> '{}'
"""
_SHARE = """
INSERT OR IGNORE INTO list_columns (import_id, name)
SELECT ?1, name FROM list_columns WHERE import_id IN (
    SELECT DISTINCT coalesce(import_id, 0) FROM tasks WHERE task_id IN (SELECT value FROM json_each(?2))
) ORDER BY id
"""


class Record(Protocol):
    """What a page said, and whose it is."""

    @property
    def platform(self) -> str: ...
    @property
    def state(self) -> str | None: ...
    @property
    def county(self) -> str | None: ...
    @property
    def parcel_id(self) -> str | None: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


def leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a record by their columns: those of objects as `outer.inner`."""
    for key, value in data.items():
        if isinstance(value, dict) and key not in AS_JSON:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def columns_of(data: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    """Return the columns of a record; what `about` says of its result already has none where the two agree."""
    return [name for name, value in leaves(data) if name not in about or value not in (None, about[name])]


def note_columns(records: Iterable[Record]) -> None:
    """Note which columns results have. Part of the transaction that stores them."""
    execute_many(_NOTE_OF_RESULT, {row for record in records for row in _rows_of(record)})


def _rows_of(record: Record) -> Iterator[tuple[str, str, str, str]]:
    about = {"parcel_id": record.parcel_id, "state": record.state, "county": record.county}
    for name in columns_of(record.data, about):
        yield record.platform, record.state or "", record.county or "", storable(name)


def note_list_columns(targets: Iterable[tuple[int | None, Mapping[str, Any]]]) -> None:
    """Note which columns of their own tasks have, by import. Part of the transaction that stores them."""
    found = ((import_id or 0, storable(name)) for import_id, target in targets for name in target)
    execute_many(_NOTE_OF_LIST, dict.fromkeys(found))


def share_list_columns(task_ids: Sequence[str], import_id: int) -> None:
    """Let an import have the columns of tasks that it takes over. Part of the transaction that does so."""
    execute(_SHARE, (import_id, json.dumps(task_ids)))


def result_columns(platform: str | None, state: str | None, county: str | None) -> list[str]:
    """Return the columns of the records of a place, or of all."""
    return [name for (name,) in all_rows(_OF_PLACE, (platform, state, county))]


def list_columns(import_id: int | None) -> list[str]:
    """Return the columns of one import's list, or of all tasks, in the order in which they came."""
    sql = "SELECT name FROM list_columns WHERE ?1 IS NULL OR import_id = ?1 GROUP BY name ORDER BY min(id)"
    return [name for (name,) in all_rows(sql, (import_id,))]


def are_known() -> bool:
    """Return whether every task and every result has its columns noted."""
    return fact(_UNKNOWN) is None


def learn(records: Iterable[Record]) -> None:
    """Note the columns of everything that is there; `records` are all results."""
    found = {row for record in records for row in _rows_of(record)}
    with write("columns"):
        execute(_OF_TASKS)
        execute_many(_NOTE_OF_RESULT, found)
        execute("DELETE FROM facts WHERE name = ?", (_UNKNOWN,))


def forget(why: str) -> None:
    """Have everything looked through again by the next export. Part of a larger transaction."""
    set_fact(_UNKNOWN, why)


def doubt(why: str) -> None:
    """The same, for somebody who has met a column that is not noted."""
    with write("columns_unknown"):
        forget(why)
