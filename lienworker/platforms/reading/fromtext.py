"""Plain text read as pairs and grids: delimited files, and pages of which only the text is left."""

from __future__ import annotations

import csv
import re

from lienworker.platforms.core import clean
from lienworker.platforms.core.bounds import check_cells
from lienworker.platforms.reading.grids import Grid
from lienworker.platforms.reading.labels import MAX_LABEL, is_known, looks_like_label
from lienworker.platforms.reading.pairs import Pair

_NUMBER_SIGN = re.compile(r"(?<=Account) #\s?(?=\d)")


def plain_reading(text: str) -> tuple[list[Pair], list[Grid]]:
    if table := delimited(text):
        return [], [table]
    return list(_pairs([line for raw in text.splitlines() if (line := clean.text(raw))])), []


def delimited(text: str) -> Grid | None:
    """The table of a comma, tab, pipe or semicolon separated file, or None where the text is no such file."""
    lines = text.lstrip("\ufeff").splitlines()
    head = next((line for line in lines if line.strip()), "")
    delimiter = max("\t|,;", key=head.count)
    if head.count(delimiter) < 2:
        return None
    rows = [[clean.text(cell) or "" for cell in row] for row in csv.reader(lines, delimiter=delimiter) if any(row)]
    names = rows[0]
    if sum(map(is_known, names)) < 2:
        return None
    check_cells(len(names), len(rows))
    return Grid(names, [(row + [""] * len(names))[: len(names)] for row in rows[1:]])


def _pairs(lines: list[str]) -> list[Pair]:
    """`Label: value` in a line, or a label alone in its line and its value in the next."""
    pairs: list[Pair] = []
    for here, below in zip(lines, [*lines[1:], ""], strict=False):
        label, colon, value = _NUMBER_SIGN.sub(": ", here, count=1).partition(":")
        if looks_like_label(here) and below and not looks_like_label(below):
            pairs.append(Pair(here.rstrip(" :"), (below,)))
        elif colon and value.strip() and len(label) <= MAX_LABEL and not value.startswith("//"):
            pairs.append(Pair(label.strip(), (value.strip(),)))
    return pairs
