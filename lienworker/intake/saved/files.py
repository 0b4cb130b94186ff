"""Saved pages by the files they are in: HTML, MHTML, HAR and WARC, one file, a folder or a zip archive of them."""

from __future__ import annotations

import email
import email.policy
import os
import re
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path, PurePath
from typing import IO

from lienworker.errors import InputError
from lienworker.intake.packed import BROKEN_ARCHIVE
from lienworker.intake.rows import BadRowError, Reject
from lienworker.intake.saved.har import read_har
from lienworker.intake.saved.page import Door, SavedPage
from lienworker.intake.saved.warc import read_warc

_HTML = (".html", ".htm", ".xhtml")
_MHTML = (".mhtml", ".mht")
_WARC = (".warc", ".warc.gz")
_ENDINGS = (*_HTML, *_MHTML, *_WARC, ".har", ".wacz")
_MOST_FILES = 1_000_000
#: Where browsers and their extensions note the address of a page that they save.
_SAVED_FROM = re.compile(rb"saved from url=\(\d{4}\)(\S{1,2000})|Page saved with SingleFile\s+url:\s*(\S{1,2000})")
_NOTED_WITHIN = 8_192


def is_saved(source: str | Path) -> bool:
    """Return whether this is a page or an archive of pages, by its name; of a zip archive, by what is in it."""
    path = Path(source)
    if str(source) == "-":
        return False
    if path.is_dir() or path.name.lower().endswith(_ENDINGS):
        return True
    if path.suffix.lower() != ".zip" or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(_is_page_file(name) for name in archive.namelist())
    except BROKEN_ARCHIVE:
        return False  # the reader of lists says what is wrong with it


def read_saved(path: Path, most_bytes: int) -> Iterator[SavedPage | Reject]:
    """Yield the pages of a file or a folder, one at a time, and a reject for each that cannot be used."""
    door = Door(most_bytes)
    if path.is_dir():
        yield from _of_folder(path, door)
        return
    try:
        with open(path, "rb") as stream:
            name = str(path)
            if path.suffix.lower() in (".zip", ".wacz"):
                yield from _of_archive(stream, name, door)
            else:
                yield from _of_file(stream, name, 1, door, _modified(os.stat(path).st_mtime))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from None


def _of_folder(folder: Path, door: Door) -> Iterator[SavedPage | Reject]:
    """Read the files below a folder in the order of their names; links are not followed out of it."""
    place = 0
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if not _is_page_file(name) or path.is_symlink():
                continue
            place += 1
            shown = str(path.relative_to(folder))
            try:
                with open(path, "rb") as stream:
                    yield from _of_file(stream, shown, place, door, _modified(path.stat().st_mtime))
            except (OSError, InputError) as problem:
                yield Reject(place, "unreadable_file", str(problem), shown)
    if not place:
        raise InputError(f"{folder} has no saved pages in it (.html, .mhtml, .har, .warc)")


def _of_archive(stream: IO[bytes], name: str, door: Door) -> Iterator[SavedPage | Reject]:
    """Read the pages of a zip archive in place: nothing is unpacked to disk, whatever its names say."""
    try:
        archive = zipfile.ZipFile(stream)
    except BROKEN_ARCHIVE as error:
        raise InputError(f"{name} is a damaged zip archive ({error}); get it again") from None
    with archive:
        members = [info for info in archive.infolist() if _is_page_file(info.filename)][:_MOST_FILES]
        if not members:
            raise InputError(f"{name} has no saved pages in it (.html, .mhtml, .har, .warc)")
        for place, info in enumerate(members, 1):
            try:
                with archive.open(info) as inside:
                    yield from _of_file(inside, info.filename, place, door, None)
            except (*BROKEN_ARCHIVE, InputError) as problem:
                yield Reject(place, "damaged_archive", f"{info.filename} cannot be read: {problem}", info.filename)


def _is_page_file(name: str) -> bool:
    path = PurePath(name)
    is_hidden = path.name.startswith(".") or "__MACOSX" in path.parts
    return name.lower().endswith(_ENDINGS) and not name.lower().endswith(".wacz") and not is_hidden


def _of_file(
    stream: IO[bytes], name: str, place: int, door: Door, modified: str | None
) -> Iterator[SavedPage | Reject]:
    lower = name.lower()
    if lower.endswith(".har"):
        yield from read_har(stream, name, door)
    elif lower.endswith(_WARC):
        yield from read_warc(stream, name, door)
    elif lower.endswith(_MHTML):
        yield _mhtml(stream, name, place, door, modified)
    else:
        yield _html(stream.read(door.most_bytes + 1), name, place, door, modified)


def _html(body: bytes, name: str, place: int, door: Door, modified: str | None) -> SavedPage | Reject:
    """A file without an address is a page all the same: its content tells whose it is."""
    noted = _SAVED_FROM.search(body[:_NOTED_WITHIN])
    url: str | None = None
    if noted:
        try:
            url = door.address((noted[1] or noted[2]).decode("ascii", "replace"))
        except BadRowError:
            url = None
    page = SavedPage(place, url, body, "text/html", None, modified, PurePath(name).name)
    return door.check(place, body, name) or page


def _mhtml(stream: IO[bytes], name: str, place: int, door: Door, modified: str | None) -> SavedPage | Reject:
    # Pictures are in it, and they are a third larger than they were.
    content = stream.read(4 * door.most_bytes + 1)
    message = email.message_from_bytes(content, policy=email.policy.default)
    part = next((part for part in message.walk() if part.get_content_type() == "text/html"), None)
    if part is None:
        return Reject(place, "no_page", "there is no page in this MHTML file; save it again", name)
    assert isinstance(part, EmailMessage)
    body = part.get_payload(decode=True)
    if not isinstance(body, bytes):
        return Reject(place, "no_page", "the page in this MHTML file cannot be decoded; save it again", name)
    told = str(message.get("Snapshot-Content-Location") or part.get("Content-Location") or "")
    try:
        url: str | None = door.address(told) if told.startswith(("http://", "https://")) else None
    except BadRowError:
        url = None
    charset = part.get_content_charset()
    page = SavedPage(place, url, body, "text/html", charset, modified, PurePath(name).name)
    return door.check(place, body, name) or page


def _modified(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
