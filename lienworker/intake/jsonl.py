"""JSONL: an object a line."""

from __future__ import annotations

from collections.abc import Iterator

from lienworker.intake.objects import ObjectReader, decoder, explain
from lienworker.intake.rows import BadRowError, ParcelRow, Reject
from lienworker.intake.text import MAX_LINE, Batches, check_line


def read_jsonl(batches: Batches, objects: ObjectReader) -> Iterator[ParcelRow | Reject]:
    decode = decoder.raw_decode
    for start, lines in batches:
        for number, line in enumerate(lines, start):
            text = line.strip()
            if not text:
                continue
            try:
                value, end = decode(text)
                if end != len(text) or end > MAX_LINE or not text.isascii():
                    _check(text, end)
                row = objects.row(number, value, text)
            except (BadRowError, ValueError, RecursionError) as error:
                yield explain(error, text).at(number, text)
            else:
                yield row


def _check(text: str, end: int) -> None:
    check_line(text)
    if end != len(text):
        raise BadRowError("bad_json", "there is more on the line after the object; write one object a line")
