"""Parsing a stored page in the process with limits, which reads the file itself: the worker never holds the page.

Reading a page of 16 MB takes twice its size, and the worker has to hold the pages in flight, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lienworker.errors import PageError, StoreError
from lienworker.platforms.catalog.guarded import ask_child, parse_job
from lienworker.platforms.core.base import Page, Target
from lienworker.store.raw_files import raw_place, read_page

if TYPE_CHECKING:
    from lienworker.platforms import ParsedPage, Registry
    from lienworker.store.pages import PageRecord


def parse_stored(root: Path, registry: Registry, record: PageRecord, target: Target) -> ParsedPage:
    """Return the record of a stored page. Raises as `parse_guarded` does, and PageError for a page that is damaged."""
    file = {"path": str(raw_place(root, record.path)), "sha256": record.sha256}
    page = Page(record.url, b"", record.content_type, record.charset, record.status)
    return ask_child("lienworker.steps.stored_page:parse_stored_job", registry, page, target, file)


def parse_stored_job(about: dict[str, Any], _: bytes) -> bytes:
    """Do what `parse_stored` asks for, in the child."""
    try:
        body = read_page(Path(about["path"]), about["sha256"])
    except StoreError as problem:
        raise damaged(problem) from None
    return parse_job(about, body)


def damaged(problem: StoreError) -> PageError:
    """Return the failure of a task whose stored page cannot be read; the page may be fetched again."""
    return PageError("raw_page_damaged", str(problem), retryable=True)
