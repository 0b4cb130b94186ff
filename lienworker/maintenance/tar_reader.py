"""A reader for the archives that we write: plain files in a tar, gzipped or not, in constant memory.

`tarfile` reads whatever was ever called tar: xz with a dictionary of gigabytes, sparse files of exabytes, headers of
any length read at once. An archive may come from a stranger, so only what our own writer makes is read: regular files,
and PAX headers of a bounded length. Everything else is refused by name.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lienworker.errors import StoreError

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
#: A path and a size, and what `tarfile` adds itself; no file system accepts a longer path.
_LONGEST_HEADER = 16 * 1024
#: No backup compresses better than this: raw pages are compressed already, and a database has few zeros. gzip can do
#: 1,000.
_MOST_PACKED = 200
#: Up to this size the ratio does not matter.
_HARMLESS = 64 << 20


class ArchiveError(StoreError):
    """The archive is truncated, damaged, or holds what none of ours does."""


class _Unpacked:
    """The bytes of a file, decompressed if necessary, never more than asked for at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        start = file.read(2)
        file.seek(0)
        self._unzip = zlib.decompressobj(wbits=31) if start == b"\x1f\x8b" else None
        self._packed = self._given = 0
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return as many bytes as asked for; fewer only at the end."""
        pieces, missing = [], size
        while missing and (piece := self._some(min(missing, _CHUNK))):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _some(self, most: int) -> bytes:
        try:
            return self._file.read(most) if self._unzip is None else self._unpack(self._unzip, most)
        except (OSError, zlib.error) as problem:
            raise ArchiveError(f"it cannot be read: {problem}") from None

    def _unpack(self, unzip: zlib._Decompress, most: int) -> bytes:
        while not unzip.eof:
            packed = self._rest or self._file.read(_CHUNK)
            self._packed += 0 if self._rest else len(packed)
            piece = unzip.decompress(packed, most)
            self._rest = unzip.unconsumed_tail
            self._given += len(piece)
            if self._given > _HARMLESS and self._given > _MOST_PACKED * self._packed:
                raise ArchiveError(
                    f"it unpacks to more than {_MOST_PACKED} times its size, which no archive of ours does"
                )
            if piece or not packed:
                return piece
        return b""


class Member:
    """The content of one file of an archive, to be read before the next one is asked for."""

    def __init__(self, stream: _Unpacked, size: int) -> None:
        self._stream = stream
        self.left = self.size = size

    def read(self, size: int = -1) -> bytes:
        wanted = self.left if size < 0 else min(size, self.left)
        piece = self._stream.read(wanted)
        if len(piece) < wanted:
            raise ArchiveError("it is cut off")
        self.left -= wanted
        return piece

    def read_all(self, most: int) -> bytes:
        """Return the whole content, if it is no longer than `most`."""
        if self.size > most:
            raise ArchiveError(f"a file in it has {self.size:,} bytes where {most:,} are allowed")
        return self.read()


def tar_members(path: Path) -> Iterator[tuple[str, Member]]:
    """Yield every file of an archive with its name, in order. Raise ArchiveError for anything that none of ours has."""
    try:
        with path.open("rb") as file:
            yield from _members(_Unpacked(file))
    except (OSError, ValueError, tarfile.TarError) as problem:
        raise ArchiveError(f"it cannot be read: {problem}") from None


def _members(stream: _Unpacked) -> Iterator[tuple[str, Member]]:
    headers: dict[str, str] | None = None
    while block := _header_block(stream):
        about = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if about.type == tarfile.XHDTYPE and headers is None:
            headers = _pax_headers(Member(stream, _checked_size(about.size)).read_all(_LONGEST_HEADER))
            _skip(stream, -about.size % _BLOCK)
            continue
        name = (headers or {}).get("path", about.name)
        if about.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or any("sparse" in key for key in headers or {}):
            raise ArchiveError(f"it holds {name!r}, which is not a plain file")
        member = Member(stream, _checked_size(int((headers or {}).get("size", about.size))))
        headers = None
        yield name, member
        while member.left:
            member.read(_CHUNK)
        _skip(stream, -member.size % _BLOCK)


def _header_block(stream: _Unpacked) -> bytes:
    """Return the next header; empty where the archive says that it ends."""
    block = stream.read(_BLOCK)
    if len(block) < _BLOCK:
        raise ArchiveError("it is cut off")
    return b"" if not block.strip(b"\0") else block


def _checked_size(size: int) -> int:
    if size < 0:
        raise ArchiveError("a file in it has a size below zero")
    return size


def _skip(stream: _Unpacked, n: int) -> None:
    if len(stream.read(n)) < n:
        raise ArchiveError("it is cut off")


def _pax_headers(content: bytes) -> dict[str, str]:
    """Parse lines such as `30 path=raw/…`, each preceded by its own length."""
    headers, place = {}, 0
    while content[place : place + 1].strip(b"\0"):
        length = int(content[place : content.index(b" ", place)])
        name, mark, value = content[content.index(b" ", place) + 1 : place + length].partition(b"=")
        if not mark or length <= 0 or not value.endswith(b"\n"):
            raise ArchiveError("a header in it is damaged")
        headers[name.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
        place += length
    return headers
