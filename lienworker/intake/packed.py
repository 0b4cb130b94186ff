"""What is not text as it stands: workbooks, which become CSV, and zip archives with one table inside.

Both need the whole file before they can be read, so it is copied first: to memory, or to a temporary file if it is
large. A workbook is read by a process with limits, because a file of a few kilobytes can describe a sheet of billions
of cells.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, cast

from lienworker.errors import InputError, PageError
from lienworker.intake.rows import Layout
from lienworker.limited import LimitedProcess, Limits, OverLimitError

_ZIP = b"PK\x03\x04"
#: A zip archive (also .xlsx and .ods), and the older container of .xls.
PACKED_MARKS = (_ZIP, b"\xd0\xcf\x11\xe0")
_IN_MEMORY = 4 << 20
#: Bytes. A sheet with a million rows is smaller than the first; the second is for archives of text.
_LARGEST_WORKBOOK = 48 << 20
_LARGEST_ARCHIVE = 1 << 30
#: As for gzip: lists compress ten- to thirtyfold.
_MOST_PACKED = 50
_HARMLESS = 16 << 20
WORKBOOK_LIMITS = Limits(cpu_seconds=9, wall_seconds=60.0, memory_bytes=340 << 20)
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".pdf", *_WORKBOOKS)
BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


@contextmanager
def open_packed(blocks: Iterator[bytes], name: str, layout: Layout) -> Iterator[BinaryIO]:
    """Yield the text inside: a workbook's sheet as CSV (gzipped), or the only table of a zip archive."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
        is_zip = _copy(blocks, copy, name).startswith(_ZIP)
        if not is_zip:
            yield _sheet_of(copy, name, layout)
            return
        with _opened(copy, name) as archive:
            names = archive.namelist()
            if "xl/workbook.xml" in names or "xl/workbook.bin" in names or "content.xml" in names:
                yield _sheet_of(copy, name, layout)
                return
            member = _only_table(names, name)
            with _Member(archive, member, name) as inside:
                if member.lower().endswith(_WORKBOOKS):
                    yield _sheet_of(cast(IO[bytes], inside), f"{member} in {name}", layout)
                else:
                    yield cast(BinaryIO, inside)


def _copy(blocks: Iterator[bytes], copy: IO[bytes], name: str) -> bytes:
    first = b""
    for block in blocks:
        first = first or block
        copy.write(block)
        if copy.tell() > _LARGEST_ARCHIVE:
            raise InputError(f"{name} is an archive of more than {_LARGEST_ARCHIVE >> 20} MB; unpack it yourself")
    copy.seek(0)
    return first


def _opened(copy: IO[bytes], name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(copy)
    except BROKEN_ARCHIVE as error:
        raise InputError(f"{name} is a damaged zip archive or workbook ({error}); get it again") from None


def _only_table(names: list[str], name: str) -> str:
    """Return the member that is a table. Where there are several, an operator has to say which one is meant."""
    tables = [member for member in names if _is_table(member)]
    if len(tables) == 1:
        return tables[0]
    if not tables:
        inside = ", ".join(map(repr, names[:8])) or "nothing"
        raise InputError(f"{name} is a zip archive without a list of parcels; there is {inside} inside")
    several = ", ".join(map(repr, tables[:8]))
    raise InputError(f"{name} has {len(tables)} lists inside ({several}); unpack it and import each")


def _is_table(member: str) -> bool:
    path = PurePath(member)
    is_hidden = path.name.startswith(".") or "__MACOSX" in path.parts
    return member.lower().endswith(_TABLES) and not is_hidden and "readme" not in path.name.lower()


class _Member:
    """One file of an archive as a stream that stops where no list of parcels would go on."""

    def __init__(self, archive: zipfile.ZipFile, member: str, name: str) -> None:
        self._name = f"{member} in {name}"
        info = archive.getinfo(member)
        self._most = max(_HARMLESS, _MOST_PACKED * info.compress_size)
        self._given = 0
        if info.flag_bits & 1:
            raise InputError(f"{self._name} is protected with a password; unpack it yourself")
        try:
            self._stream = archive.open(info)
        except BROKEN_ARCHIVE as error:
            raise self._damaged(error) from None

    def read(self, size: int = -1) -> bytes:
        try:
            block = self._stream.read(self._most + 1 if size < 0 else size)
        except BROKEN_ARCHIVE as error:
            raise self._damaged(error) from None
        self._given += len(block)
        if self._given > self._most:
            raise InputError(
                f"{self._name} unpacks to more than {_MOST_PACKED} times its size, which no list of parcels does; "
                "unpack it yourself if it is one"
            )
        return block

    def _damaged(self, error: Exception) -> InputError:
        return InputError(f"{self._name} is damaged ({error}); get the archive again")

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def _sheet_of(file: IO[bytes], name: str, layout: Layout) -> BinaryIO:
    """Return the sheet of a workbook as CSV, gzipped, made by a process with limits."""
    body = _whole(file, name)
    about = {"sheet": layout.sheet, "header_row": layout.header_row, "columns": list(layout.columns)}
    child = LimitedProcess(WORKBOOK_LIMITS, quiet=True)
    try:
        return io.BytesIO(child.run("lienworker.intake.workbook:convert", about, body))
    except PageError as problem:
        raise InputError(f"{name} {problem.detail}") from None
    except OverLimitError:
        raise InputError(f"{name} is a workbook that takes too much memory or time; save the sheet as CSV") from None
    finally:
        child.close()


def _whole(file: IO[bytes], name: str) -> bytes:
    if hasattr(file, "seek"):
        file.seek(0)
    body = file.read(_LARGEST_WORKBOOK + 1)
    if len(body) > _LARGEST_WORKBOOK:
        raise InputError(f"{name} is a workbook of more than {_LARGEST_WORKBOOK >> 20} MB; save the sheet as CSV")
    return body
