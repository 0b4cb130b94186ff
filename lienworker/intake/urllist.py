"""TXT: a URL a line; blank lines and what follows a `#` are for people."""

from __future__ import annotations

from collections.abc import Iterator

from lienworker.intake.fields import RowMaker
from lienworker.intake.rows import BadRowError, ParcelRow, Reject
from lienworker.intake.text import Batches, check_line

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
    """A `#` inside a URL belongs to it; one at the start or after a blank begins a comment."""
    if line.startswith("#"):
        return ""
    words = line.split(None, 1)
    return words[0] if len(words) == 2 and words[1].startswith("#") else line
