"""From bytes to text and to lines.

Bytes that are no UTF-8 become half characters (surrogates), which no good text has: a row that holds one is rejected
with its line, and its neighbours are read. A file that is mostly such rows is in another encoding, and said to be.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain

from lienworker.errors import InputError
from lienworker.intake.rows import BadRowError

HEAD = 64 * 1024
MAX_LINE = 1_000_000

# Lines in lists, each with the number of its first line: a generator step for each line would cost more than the line.
Batches = Iterator[tuple[int, list[str]]]

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_FORMATS = (
    (b"PK\x03\x04", "an Excel workbook or another zip archive; save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the sheet as CSV"),
    (b"%PDF", "a PDF document; get the list as CSV or text"),
    (b"SQLite format 3\0", "an SQLite database; export the table as CSV"),
    (b"\x1f\x8b", "zipped twice; unzip it once"),
    (b"BZh", "packed with bzip2; unpack it, or pack it with gzip"),
    (b"\xfd7zXZ", "packed with xz; unpack it, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd; unpack it, or pack it with gzip"),
)


def read_text(blocks: Iterator[bytes], name: str) -> tuple[str, Iterator[str]]:
    """The beginning of the text, for judging what it is, and then all of it, the beginning included."""
    head = b""
    while len(head) < HEAD and (block := next(blocks, b"")):
        head += block
    encoding, bom = _encoding(head, name)
    pieces = _decode(chain([head[bom:]], blocks), encoding, name)
    first = next(pieces, "")
    if not first.strip():
        raise InputError(f"{name} is empty; there is nothing to read in it")
    if encoding == "utf-8":
        _check_encoding(first, name)
    return first[:HEAD], chain([first], pieces)


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
    """A stray NUL is the fault of its row; a file with many is no text, or text in two bytes a letter."""
    if sample.count(0) * 3 > len(sample):
        raise InputError(f"{name} is in UTF-16 without its mark, or no text at all; save it as UTF-8")
    odd = sum(1 for byte in sample if byte < 32 and byte not in b"\t\n\r\f\0")
    if odd * 10 > len(sample):
        raise InputError(f"{name} is not a text file; give a CSV, JSON, JSONL or TXT file")


def _decode(blocks: Iterator[bytes], encoding: str, name: str) -> Iterator[str]:
    errors = "surrogateescape" if encoding == "utf-8" else "surrogatepass"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is damaged UTF-16 ({error.reason}); save it as UTF-8") from None


def _check_encoding(first: str, name: str) -> None:
    if first.isascii() or not has_surrogates(first):
        return
    lines = first.split("\n")
    bad = [number for number, line in enumerate(lines, 1) if has_surrogates(line)]
    if len(bad) * 2 >= sum(1 for line in lines if line.strip()):
        raise InputError(f"{name} is not UTF-8: {_where(lines[bad[0] - 1], bad[0])}; save it as UTF-8")


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
    """What no row may have, in any format. Called for every row, so the cheap questions come first."""
    if len(line) > MAX_LINE:
        raise BadRowError(
            "line_too_long", f"the line is longer than {MAX_LINE:,} characters; put each row on a line of its own"
        )
    if not line.isascii() and has_surrogates(line):
        raise BadRowError("bad_encoding", "there are bytes in the row that are not UTF-8; save the file as UTF-8")
    if "\0" in line:
        raise BadRowError("nul_character", "there is a NUL character in the row; remove it")


def line_batches(pieces: Iterator[str], head: str) -> Batches:
    """Lines without their ends, in lists with the number of the first. Of a line that is too long only as much
    is kept as shows that it is.
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
