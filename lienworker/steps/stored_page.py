"""Stored pages for the parsers: all parts of a parcel as one page with its others, read here or where there are limits.

A large page is parsed in the process with limits, which reads the file itself: the worker never holds the page. Reading
a page of 16 MB takes twice its size, and the worker has to hold the pages in flight, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lienworker.errors import PageError, StoreError
from lienworker.platforms.catalog.guarded import ask_child, page_under_limits, parse_page_job
from lienworker.platforms.core.base import Page, Target
from lienworker.store.raw_files import raw_place, read_page

if TYPE_CHECKING:
    from lienworker.platforms import ParsedPage, Registry
    from lienworker.store.pages import PageRecord


def page_of_parts(parts: Iterable[tuple[PageRecord, bytes]]) -> Page:
    """Return the parcel's own page, which has its others with it."""
    return _joined([(record.part, _page(record, body)) for record, body in parts])


def stored_parts(root: Path, records: Sequence[PageRecord]) -> Page:
    """Return the page from its files. Raises StoreError for one that is missing or damaged."""
    return page_of_parts((record, read_page(raw_place(root, record.path), record.sha256)) for record in records)


def _page(record: PageRecord, body: bytes) -> Page:
    return Page(record.url, body, record.content_type, record.charset, record.status)


def _joined(parts: list[tuple[str, Page]]) -> Page:
    name, page = parts[0]
    page.part = name
    if len(parts) > 1:
        page.more = dict(parts[1:])
    return page


def parse_stored(root: Path, registry: Registry, records: Sequence[PageRecord], target: Target) -> ParsedPage:
    """Return the record of stored pages. Raises as `parse_guarded` does, and PageError for a page that is damaged."""
    files = [
        {
            "part": record.part,
            "path": str(raw_place(root, record.path)),
            "sha256": record.sha256,
            "page": [record.url, record.content_type, record.charset, record.status],
        }
        for record in records
    ]
    job = "lienworker.steps.stored_page:parse_stored_job"
    return ask_child(job, registry, _page(records[0], b""), target, {"files": files})


def parse_stored_job(about: dict[str, Any], _: bytes) -> bytes:
    """Do what `parse_stored` asks for, in the child."""
    try:
        pages = [
            (file["part"], page_under_limits(file["page"], read_page(Path(file["path"]), file["sha256"])))
            for file in about["files"]
        ]
    except StoreError as problem:
        raise damaged(problem) from None
    return parse_page_job(about, _joined(pages))


def damaged(problem: StoreError) -> PageError:
    """Return the failure of a task whose stored page cannot be read; the page may be fetched again."""
    return PageError("raw_page_damaged", str(problem), retryable=True)
