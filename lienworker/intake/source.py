"""Bytes from a path, standard input or an open file, unpacked where they are packed, a bounded piece at a time."""

from __future__ import annotations

import codecs
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from lienworker.db.database import refuse_database
from lienworker.errors import InputError
from lienworker.intake.fields import RowMaker
from lienworker.intake.packed import PACKED_MARKS, open_packed
from lienworker.intake.rows import BadRowError, Layout, ParcelRow, Reject

BLOCK = 256 * 1024
#: Lists compress ten- to thirtyfold. More than this is no list, once it is larger than any real one.
_MOST_PACKED = 50
_HARMLESS = 16 << 20
#: Members of a gzip file with nothing in them: each costs time and no bytes.
_MOST_EMPTY_MEMBERS = 1_000
_GZIP = b"\x1f\x8b"
_TELLING = 8

Source = str | Path | BinaryIO


def name_of(source: Source) -> str:
    """Return what messages call the source, and what its extension is read from."""
    if isinstance(source, str | Path):
        return "standard input" if str(source) == "-" else str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the input"


@contextmanager
def open_blocks(source: Source, name: str, layout: Layout) -> Iterator[Iterator[bytes]]:
    """Yield the content in blocks of at most `BLOCK` bytes. Close what was opened here, and nothing else."""
    stream, ours = _open(source, name)
    with ExitStack() as opened:
        if ours:
            opened.callback(stream.close)
        blocks = _read(stream, name)
        first = first_block(blocks)
        whole = chain([first], blocks) if first else blocks
        if first.startswith(PACKED_MARKS):
            whole = _read(opened.enter_context(open_packed(whole, name, layout)), name)
        yield _unzipped(whole, name)


def first_block(blocks: Iterator[bytes]) -> bytes:
    """Return enough to tell what a file is: a pipe may give it byte by byte."""
    first = next(blocks, b"")
    while 0 < len(first) < _TELLING and (more := next(blocks, b"")):
        first += more
    return first


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
        raise InputError(f"{name} cannot be read ({error}); copy it again and retry") from None


def _unzipped(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Recognize gzip by its first bytes: a name says little, and standard input has none."""
    first = first_block(blocks)
    whole = chain([first], blocks) if first else blocks
    return _gunzip(whole, name) if first.startswith(_GZIP) else whole


def _gunzip(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield every member of a gzip file, at most `BLOCK` bytes at once, however well they are compressed."""
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
        raise InputError(f"{name} is a damaged gzip file ({error}); get it again") from None
    if not unzip.eof:
        raise InputError(f"{name} is a gzip file that was cut off; get it again, its end is missing")


class _Budget:
    """What a compressed file may cost: it is small, so no earlier limit has stopped it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.packed = 0
        self._unpacked = self._empty_members = 0
        self._is_empty = False

    def new_member(self) -> None:
        self._empty_members += self._is_empty
        self._is_empty = True
        if self._empty_members > _MOST_EMPTY_MEMBERS:
            raise InputError(f"{self._name} is a gzip file of thousands of empty pieces; unpack it and pack it again")

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
        # A full piece can leave output behind even when all input is used up, so the next call may get no input.
        data = unzip.decompress(unzip.unconsumed_tail, BLOCK)


# From bytes to text and to lines.
#
# Bytes that are not UTF-8 become half characters (surrogates), which no valid text has: a row that holds one is
# rejected with its line, and its neighbors are read. A file that is mostly such rows is in another encoding, and is
# reported so.


HEAD = 64 * 1024
MAX_LINE = 1_000_000

# Lines in lists, each with the number of its first line: a generator step for each line would cost more than the line.
Batches = Iterator[tuple[int, list[str]]]

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_FORMATS = (
    (b"PK\x03\x04", "an archive inside an archive; unpack it once"),
    (b"\xd0\xcf\x11\xe0", "a workbook inside an archive; unpack it first"),
    (b"SQLite format 3\0", "an SQLite database; export the table as CSV"),
    (b"\x1f\x8b", "zipped twice; unzip it once"),
    (b"BZh", "packed with bzip2; unpack it, or pack it with gzip"),
    (b"\xfd7zXZ", "packed with xz; unpack it, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd; unpack it, or pack it with gzip"),
)


def read_text(blocks: Iterator[bytes], name: str, layout: Layout) -> tuple[str, Iterator[str]]:
    """Return the beginning of the text, to detect what it is, and then all of it, including the beginning."""
    head = b""
    while len(head) < HEAD and (block := next(blocks, b"")):
        head += block
    encoding, bom = (_named(layout.encoding), 0) if layout.encoding else _encoding(head, name)
    pieces = _decode(chain([head[bom:]], blocks), encoding, name)
    first = next(pieces, "")
    if not first.strip():
        raise InputError(f"{name} is empty; there is nothing to read in it")
    if encoding == "utf-8":
        _check_encoding(first, name)
    if layout.header_row:
        first = _from_row(first, layout.header_row, name)
    return first[:HEAD], chain([first], pieces)


def _from_row(text: str, row: int, name: str) -> str:
    """Blank the lines above the header, so that the numbers of the others stay."""
    lines = text.splitlines(keepends=True)
    if row > len(lines) or not lines[row - 1].strip():
        raise InputError(f"{name} has nothing in line {row}, which is said to be its header")
    return "\n" * (row - 1) + "".join(lines[row - 1 :])


def _named(encoding: str) -> str:
    """Return the encoding that an operator named, as Python calls it."""
    try:
        info = codecs.lookup(encoding)
    except LookupError:
        raise InputError(f"there is no encoding {encoding!r}; utf-8 and windows-1252 are the usual ones") from None
    if not info._is_text_encoding:
        raise InputError(f"{encoding!r} is no encoding of text; utf-8 and windows-1252 are the usual ones")
    return info.name


def _encoding(head: bytes, name: str) -> tuple[str, int]:
    for magic, what in _FORMATS:
        if head.startswith(magic):
            raise InputError(f"{name} is {what}")
    for bom in _UTF32:
        if head.startswith(bom):
            raise InputError(f"{name} is in UTF-32; save it as UTF-8")
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding, len(bom)
    _check_binary(head[:4096], name)
    return "utf-8", 0


def _check_binary(sample: bytes, name: str) -> None:
    """Refuse a file with many NULs: it is not text, or UTF-16. A stray NUL is the fault of its row."""
    if sample.count(0) * 3 > len(sample):
        raise InputError(f"{name} is in UTF-16 without its mark, or no text at all; save it as UTF-8")
    odd = sum(1 for byte in sample if byte < 32 and byte not in b"\t\n\r\f\0")
    if odd * 10 > len(sample):
        raise InputError(f"{name} is not a text file; give a workbook, or a CSV, JSON, JSONL, TXT or PDF file")


def _decode(blocks: Iterator[bytes], encoding: str, name: str) -> Iterator[str]:
    errors = "surrogatepass" if encoding.startswith("utf-16") else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is damaged {encoding.upper()} ({error.reason}); save it as UTF-8") from None


_NOT_UTF8 = "save it as UTF-8, or name its encoding (--encoding windows-1252)"


def _check_encoding(first: str, name: str) -> None:
    if first.isascii() or not has_surrogates(first):
        return
    lines = first.split("\n")
    bad = [number for number, line in enumerate(lines, 1) if has_surrogates(line)]
    if len(bad) * 2 >= sum(1 for line in lines if line.strip()):
        raise InputError(f"{name} is not UTF-8: {_where(lines[bad[0] - 1], bad[0])}; {_NOT_UTF8}")


def _where(line: str, number: int) -> str:
    place = next(i for i, c in enumerate(line) if "\ud800" <= c <= "\udfff")
    return f"line {number} has the byte 0x{ord(line[place]) & 0xFF:02X} as its character {place + 1}"


def has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def check_line(line: str) -> None:
    """Raise for what no row may contain, in any format. Called for every row, so the cheap checks come first."""
    if len(line) > MAX_LINE:
        raise BadRowError(
            "line_too_long", f"the line is longer than {MAX_LINE:,} characters; put each row on a line of its own"
        )
    if not line.isascii() and has_surrogates(line):
        raise BadRowError("bad_encoding", f"there are bytes in the row that are not UTF-8; {_NOT_UTF8}")
    if "\0" in line:
        raise BadRowError("nul_character", "there is a NUL character in the row; remove it")


def line_batches(pieces: Iterator[str], head: str) -> Batches:
    """Yield lines without their ends, in lists with the number of the first.

    Of a line that is too long only as much is kept as shows that it is.
    """
    end = "\r" if "\r" in head and "\n" not in head else "\n"
    number, kept = 1, ""
    for piece in pieces:
        lines = piece.split(end)
        lines[0] = kept + lines[0]
        kept = lines.pop()[: MAX_LINE + 1]
        if lines:
            yield number, lines
            number += len(lines)
    if kept:
        yield number, [kept]


# TXT: one URL a line; blank lines and what follows a `#` are for people.


_NOTHING_ELSE = (None,) * 6


def read_url_list(batches: Batches, maker: RowMaker) -> Iterator[ParcelRow | Reject]:
    for start, lines in batches:
        for number, line in enumerate(lines, start):
            try:
                check_line(line)
                url = _without_comment(line.strip())
                row = maker.make(number, (url, *_NOTHING_ELSE), {}) if url else None
            except BadRowError as error:
                yield error.at(number, line)
            else:
                if row:
                    yield row


def _without_comment(line: str) -> str:
    """Remove a comment: `#` at the start or after a space begins one; a `#` inside a URL belongs to it."""
    if line.startswith("#"):
        return ""
    words = line.split(None, 1)
    return words[0] if len(words) == 2 and words[1].startswith("#") else line
