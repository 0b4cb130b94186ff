"""Which page was fetched for which task: where its file is and what the site said about it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from lienworker.db.database import all_rows, execute, execute_many, one_row

_COLUMNS = (
    "task_id, generation, path, sha256, size, url, status, content_type, charset, etag, last_modified,"
    " fetched_at, fetch_ms, part, position"
)
#: The part of a task that has a single page.
PAGE = "page"


@dataclass(frozen=True, slots=True)
class PageRecord:
    """One fetched page. `path` is relative to the data folder, `sha256` is of the uncompressed bytes.

    A task may have several pages of one generation; `part` names them, and the one at position 0 is the parcel's own.
    """

    task_id: str
    generation: int
    path: str
    sha256: str
    size: int
    url: str
    status: int
    content_type: str
    charset: str | None
    etag: str | None
    last_modified: str | None
    fetched_at: str
    fetch_ms: int
    part: str = PAGE
    position: int = 0


_values = attrgetter(*(field.name for field in fields(PageRecord)))


def save_page(*pages: PageRecord) -> None:
    """Store pages whose files are on disk already. Part of a larger transaction."""
    marks = ", ".join("?" * 15)
    execute_many(f"INSERT OR REPLACE INTO pages ({_COLUMNS}) VALUES ({marks})", map(_values, pages))


def file_is_back(task_id: str, generation: int, path: str) -> None:
    """Record that a purged page came again: a file that no row names would stay forever."""
    sql = (
        "UPDATE pages SET purged_at = NULL WHERE task_id = ? AND generation = ? AND path = ? AND purged_at IS NOT NULL"
    )
    execute(sql, (task_id, generation, path))


def was_purged(page: PageRecord) -> bool:
    """Return whether the file was purged, as old and delivered."""
    sql = "SELECT 1 FROM pages WHERE task_id = ? AND generation = ? AND part = ? AND purged_at IS NOT NULL"
    return one_row(sql, (page.task_id, page.generation, page.part)) is not None


def page_of(task_id: str, generation: int) -> PageRecord | None:
    """Return the parcel's own page of a generation."""
    sql = "SELECT " + _COLUMNS + " FROM pages WHERE task_id = ? AND generation = ? AND position = 0"
    return _page(sql, task_id, generation)


def pages_of(task_id: str, generation: int) -> list[PageRecord]:
    """Return all pages of a generation in their order, the parcel's own first."""
    sql = "SELECT " + _COLUMNS + " FROM pages WHERE task_id = ? AND generation = ?"
    return sorted((PageRecord(*row) for row in all_rows(sql, (task_id, generation))), key=attrgetter("position"))


def latest_page(task_id: str) -> PageRecord | None:
    sql = "SELECT " + _COLUMNS + " FROM pages WHERE task_id = ? AND position = 0 ORDER BY generation DESC LIMIT 1"
    return _page(sql, task_id)


def page_behind_result(task_id: str) -> PageRecord | None:
    """Return the page that the stored result was made from; a refresh is compared with it."""
    sql = (
        "SELECT " + ", ".join(f"p.{name.strip()}" for name in _COLUMNS.split(",")) + " FROM results r"
        " JOIN pages p ON p.task_id = r.task_id AND p.generation = r.generation AND p.position = 0 WHERE r.task_id = ?"
    )
    return _page(sql, task_id)


def _page(sql: str, *params: Any) -> PageRecord | None:
    row = one_row(sql, params)
    return PageRecord(*row) if row else None
