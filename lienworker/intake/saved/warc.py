"""WARC: web archives, read a record at a time, however large they are."""

from __future__ import annotations

import contextlib
import io
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import IO, Any

from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from lienworker.errors import InputError
from lienworker.intake.rows import BadRowError, Reject, tidy
from lienworker.intake.saved.page import Door, SavedPage, split_type

#: The content type of what we say of a page in an archive of our own; see `operator.warc`.
TASK_TYPE = "application/vnd.lienworker.task+json"
_LARGEST_TASK = 1_000_000
#: Tasks that wait for their page; it follows at once.
_MOST_TASKS = 100


def read_warc(stream: IO[bytes], name: str, door: Door) -> Iterator[SavedPage | Reject]:
    """Yield the pages of an archive. A damaged record ends the reading, with a reject that says where."""
    tasks: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
    place = 0
    records = iter(ArchiveIterator(stream))
    while True:
        place += 1
        try:
            record = _next(records)
            item = _item(record, place, door, tasks) if record is not None else None
        except Exception as error:  # the library fails in many ways on what is damaged
            if place == 1:
                raise InputError(f"{name} is not a WARC file, or is damaged ({_plain(error)}); get it again") from None
            detail = f"the archive is damaged from record {place} on ({_plain(error)}); get it again"
            yield Reject(place, "damaged_archive", detail, "")
            return
        if record is None:
            return
        if item is not None:
            yield item


def _next(records: Iterator[ArcWarcRecord]) -> ArcWarcRecord | None:
    """Return the next record. The library prints what it thinks of a damaged one; we say it in our own words."""
    with contextlib.redirect_stderr(io.StringIO()):
        record = next(records, None)
    if record is not None and record.format != "warc":
        raise ValueError("this is no WARC record")
    return record


def _item(
    record: ArcWarcRecord, place: int, door: Door, tasks: OrderedDict[str, Mapping[str, Any]]
) -> SavedPage | Reject | None:
    headers = record.rec_headers
    if record.rec_type == "metadata" and headers.get_header("Content-Type") == TASK_TYPE:
        _remember(record, headers.get_header("WARC-Refers-To") or "", tasks)
        return None
    if record.rec_type not in ("response", "resource"):
        return None
    http = record.http_headers
    if record.rec_type == "response" and http is None:
        return None
    kind, charset = split_type((http or headers).get_header("Content-Type") or "")
    status = http.get_statuscode() if http is not None else "200"
    if not door.wants(int(status) if status.isdecimal() else 0, kind):
        return None
    url = headers.get_header("WARC-Target-URI") or ""
    # One byte more than a page may have: enough to know, whatever it unpacks to.
    body = record.content_stream().read(door.most_bytes + 1)
    try:
        address = door.address(url.strip("<>"))
    except BadRowError as problem:
        return problem.at(place, url)
    task = tasks.pop(headers.get_header("WARC-Record-ID") or "", {})
    when = headers.get_header("WARC-Date")
    return door.check(place, body, url) or SavedPage(place, address, body, kind, charset, when, task=task)


def _remember(record: ArcWarcRecord, page: str, tasks: OrderedDict[str, Mapping[str, Any]]) -> None:
    """Keep what an archive of ours says of the page that follows."""
    try:
        told = json.loads(record.content_stream().read(_LARGEST_TASK))
    except (ValueError, RecursionError):
        return
    if isinstance(told, dict):
        tasks[page] = told
    while len(tasks) > _MOST_TASKS:
        tasks.popitem(last=False)


def _plain(error: Exception) -> str:
    return " ".join(tidy(str(error)).split())[:120] or type(error).__name__
