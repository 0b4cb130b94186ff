"""Bytes from a path, standard input or an open file, unzipped where they are zipped, a bounded piece at a time."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from lienworker.db.database import refuse_database
from lienworker.errors import InputError

BLOCK = 256 * 1024
#: Lists are packed ten- to thirtyfold. More than this is no list, once it is larger than any that matters.
_MOST_PACKED = 50
_HARMLESS = 16 << 20
#: Members of a gzip file with nothing in them: each costs time and no bytes.
_MOST_EMPTY_MEMBERS = 1_000
_GZIP = b"\x1f\x8b"

Source = str | Path | BinaryIO


def name_of(source: Source) -> str:
    """What we call the source in sentences, and what its ending is read from."""
    if isinstance(source, str | Path):
        return "standard input" if str(source) == "-" else str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the input"


@contextmanager
def open_blocks(source: Source, name: str) -> Iterator[Iterator[bytes]]:
    """The content in blocks of at most `BLOCK` bytes. Closes what it opened, and nothing else."""
    stream, ours = _open(source, name)
    try:
        yield _unzipped(_read(stream, name), name)
    finally:
        if ours:
            stream.close()


def _open(source: Source, name: str) -> tuple[BinaryIO, bool]:
    if not isinstance(source, str | Path):
        return source, False
    if str(source) == "-":
        return sys.stdin.buffer, False
    refuse_database(Path(source))
    try:
        return open(source, "rb"), True
    except FileNotFoundError:
        raise InputError(f"{name} does not exist; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{name} is a folder; name the file in it") from None
    except PermissionError:
        raise InputError(f"{name} may not be read; check its permissions") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be opened ({error}); check the path") from None


def _read(stream: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        while block := stream.read(BLOCK):
            yield block
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error}); copy it anew and try again") from None


def _unzipped(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Tells gzip by its first bytes: a name says little, and standard input has none."""
    first = next(blocks, b"")
    while 0 < len(first) < len(_GZIP) and (more := next(blocks, b"")):
        first += more
    whole = chain([first], blocks) if first else blocks
    return _gunzip(whole, name) if first.startswith(_GZIP) else whole


def _gunzip(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Every member of a gzip file, never more than `BLOCK` bytes at once, however well they were packed."""
    unzip = zlib.decompressobj(wbits=31)
    budget = _Budget(name)
    try:
        for block in blocks:
            budget.packed += len(block)
            while block:
                if unzip.eof:
                    if not block.strip(b"\0"):
                        break  # padding after the last member
                    unzip = zlib.decompressobj(wbits=31)
                    budget.new_member()
                for piece in _inflate(unzip, block):
                    budget.spend(len(piece))
                    yield piece
                block = unzip.unused_data if unzip.eof else b""
    except zlib.error as error:
        raise InputError(f"{name} is a damaged gzip file ({error}); get it anew") from None
    if not unzip.eof:
        raise InputError(f"{name} is a gzip file that was cut off; get it anew, the end of it is missing")


class _Budget:
    """What a packed file may cost: it is small, so nobody else has asked yet whether it may be read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.packed = 0
        self._unpacked = self._empty_members = 0
        self._is_empty = False

    def new_member(self) -> None:
        self._empty_members += self._is_empty
        self._is_empty = True
        if self._empty_members > _MOST_EMPTY_MEMBERS:
            raise InputError(f"{self._name} is a gzip file of thousands of empty pieces; unpack it and pack it anew")

    def spend(self, n: int) -> None:
        self._is_empty = False
        self._unpacked += n
        if self._unpacked > max(_HARMLESS, _MOST_PACKED * self.packed):
            raise InputError(
                f"{self._name} unpacks to more than {_MOST_PACKED} times its size, which no list of parcels does; "
                "unpack it yourself if it is one"
            )


def _inflate(unzip: zlib._Decompress, block: bytes) -> Iterator[bytes]:
    data = unzip.decompress(block, BLOCK)
    while data:
        yield data
        # A full piece can leave output behind also when all input is used up, so the next call may come empty.
        data = unzip.decompress(unzip.unconsumed_tail, BLOCK)
