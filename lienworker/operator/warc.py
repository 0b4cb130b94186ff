"""Raw pages as a standard web archive (WARC), which other tools read and which `lienworker import` takes back.

Each page is three records: `metadata` with what its task knew and the result made of it, the `request` and the
`response`. The metadata come first, so that a reader that streams knows the task when the page comes. Headers of the
site are not stored with a page, so request and response have only those that describe it.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from lienworker import __version__
from lienworker.data_folder import DataFolder, rename
from lienworker.errors import InputError, StoreError
from lienworker.intake.saved.warc import TASK_TYPE
from lienworker.store import tasks
from lienworker.store.pages import PageRecord, latest_page, page_behind_result, pages_of
from lienworker.store.raw_files import raw_place, read_page
from lienworker.store.results import result
from lienworker.store.runs import PageFilter, tasks_with_pages

_OF_TASK = ("platform", "state", "county", "parcel_id")


@dataclass(frozen=True, slots=True)
class Archived:
    """What was written, and the tasks whose pages could not be read."""

    pages: int
    unreadable: list[str]


def write_warc(folder: DataFolder, path: Path, wanted: PageFilter) -> Archived:
    """Write the pages of a selection; the file is complete or not there."""
    aside = path.with_name(f".{path.name}.part")
    pages, unreadable = 0, []
    try:
        with open(aside, "xb") as out:
            writer = WARCWriter(out, gzip=path.suffix.lower() == ".gz")
            writer.write_record(writer.create_warcinfo_record(path.name, {"software": f"lienworker {__version__}"}))
            for task, page in _pages(wanted):
                try:
                    body = read_page(raw_place(folder.root, page.path), page.sha256)
                except StoreError:
                    unreadable.append(page.task_id)
                    continue
                _write(writer, task, page, body)
                pages += 1
            out.flush()
            os.fsync(out.fileno())
        rename(aside, path, "archive")
    except FileExistsError:
        raise InputError(f"{aside} is there: an archive is being written, or was cut off; remove it") from None
    except OSError as problem:
        aside.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written ({problem.strerror}); choose another place") from None
    return Archived(pages, unreadable)


def _pages(wanted: PageFilter) -> Iterator[tuple[dict[str, Any], PageRecord]]:
    """Yield all parts of each parcel, one after the other, the parcel's own page first."""
    for task_id in tasks_with_pages(wanted):
        task = tasks.task(task_id)
        page = page_behind_result(task_id) or latest_page(task_id)
        if task and page:
            yield from ((task, part) for part in pages_of(task_id, page.generation))


def _write(writer: WARCWriter, task: dict[str, Any], page: PageRecord, body: bytes) -> None:
    address = urlsplit(page.url)
    where = (address.path or "/") + (f"?{address.query}" if address.query else "")
    response = _record(writer, page, "response", body, StatusAndHeaders("200 OK", _described(page, body), "HTTP/1.1"))
    page_id = response.rec_headers.get_header("WARC-Record-ID")
    request_line = StatusAndHeaders(f"GET {where} HTTP/1.1", [("Host", address.netloc)], is_http_request=True)
    writer.write_record(_about(writer, page, task, page_id))
    writer.write_record(_record(writer, page, "request", b"", request_line, {"WARC-Concurrent-To": page_id}))
    writer.write_record(response)


def _record(
    writer: WARCWriter,
    page: PageRecord,
    kind: str,
    body: bytes,
    headers: StatusAndHeaders,
    more: dict[str, str] | None = None,
) -> ArcWarcRecord:
    dated = {"WARC-Date": page.fetched_at, **(more or {})}
    made: ArcWarcRecord = writer.create_warc_record(
        page.url, kind, payload=io.BytesIO(body), http_headers=headers, warc_headers_dict=dated
    )
    return made


def _described(page: PageRecord, body: bytes) -> list[tuple[str, str]]:
    charset = f"; charset={page.charset}" if page.charset else ""
    return [("Content-Type", f"{page.content_type}{charset}"), ("Content-Length", str(len(body)))]


def _about(writer: WARCWriter, page: PageRecord, task: dict[str, Any], page_id: str) -> ArcWarcRecord:
    """What the task knew, from which the same result is made again, and the result itself, for other readers."""
    asked = {name: task.get(name) for name in _OF_TASK} | {"target": json.loads(task["target_json"] or "{}")}
    if task.get("platform_learned"):
        asked["platform"] = None
    found = result(page.task_id)
    about = {**asked, "task_id": page.task_id, "url": task["url"], "part": page.part, "position": page.position}
    about["result"] = found["data"] if found and page.position == 0 else None
    headers = {"WARC-Date": page.fetched_at, "WARC-Refers-To": page_id, "Content-Type": TASK_TYPE}
    payload = io.BytesIO(json.dumps(about).encode())
    made: ArcWarcRecord = writer.create_warc_record(
        page.url, "metadata", payload=payload, warc_content_type=TASK_TYPE, warc_headers_dict=headers
    )
    return made
