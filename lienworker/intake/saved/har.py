"""HAR: what a browser's network recorder keeps of a session, as one JSON document."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import IO, Any

from lienworker.errors import InputError
from lienworker.intake.rows import BadRowError, Reject, tidy
from lienworker.intake.saved.page import Door, SavedPage, split_type

#: Bytes. It is one JSON document, and takes several times its size in memory.
_LARGEST = 64_000_000


def read_har(stream: IO[bytes], name: str, door: Door) -> Iterator[SavedPage | Reject]:
    """Yield the pages of a recorded session; requests, cookies and headers are not looked at."""
    for place, entry in enumerate(_entries(stream, name), 1):
        request, response = _of(entry, "request"), _of(entry, "response")
        content = _of(response, "content")
        kind, charset = split_type(_text(content, "mimeType"))
        url = _text(request, "url")
        status = response.get("status")
        if not door.wants(status if isinstance(status, int) else 0, kind):
            continue
        try:
            body = _body(content)
            address = door.address(url)
        except BadRowError as problem:
            yield problem.at(place, url)
            continue
        # The text of a HAR is decoded already, whatever the site sent it as.
        charset = "utf-8" if content.get("encoding") != "base64" else charset
        yield door.check(place, body, url) or SavedPage(place, address, body, kind, charset, _when(entry))


def _entries(stream: IO[bytes], name: str) -> list[Any]:
    content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise InputError(f"{name} is larger than {_LARGEST // 1_000_000} MB; save fewer pages in one file, or as WARC")
    try:
        log = _of(json.loads(content), "log")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not a HAR file, or is cut off ({error}); save it again") from None
    entries = log.get("entries")
    if not isinstance(entries, list):
        raise InputError(f"{name} is not a HAR file: it has no entries; save it with the browser's network recorder")
    return entries


def _body(content: dict[str, Any]) -> bytes:
    text = content.get("text")
    if not isinstance(text, str):
        raise BadRowError("no_body", "the recorder did not keep the page; open it again with the recorder running")
    if content.get("encoding") != "base64":
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadRowError("no_body", "the page's text cannot be decoded; save it again") from None


def _of(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return tidy(found) if isinstance(found, str) else ""


def _when(entry: Any) -> str | None:
    found = entry.get("startedDateTime") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else None
