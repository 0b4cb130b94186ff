"""The columns of an auction file that has no head, where its cells leave no doubt.

A column that counts the rows, one of ids that are all different, and one of amounts: then it is a list of liens. Names
are left as they are shown, for nothing says whether they are owners or bidders.
"""

from __future__ import annotations

import csv
import re
from itertools import pairwise

_LOOKED_AT = 50  # rows
_FEWEST = 5
_ID = re.compile(r"(?=.*\d.*\d.*\d)[A-Z0-9][A-Z0-9 ./-]{5,39}", re.I)
_AMOUNT = re.compile(r"\$?\d[\d,]*\.\d\d")
_HIGHEST_RATE = 18.0


def delimiter_of(head: str) -> str:
    return max("|\t,;", key=head.count)


def columns_without_head(text: str) -> list[str | None] | None:
    """What each column holds (`adv_number`, `parcel_id`, `face`, or nothing); None where it is no such file."""
    lines = [line for line in text[:65536].lstrip("\ufeff").splitlines()[:_LOOKED_AT] if line.strip()]
    if len(lines) < _FEWEST:
        return None
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter_of(lines[0]))]
    if len(text) > 65536:
        rows.pop()  # it may be cut
    width = len(rows[0])
    if width < 3 or any(len(row) != width for row in rows):
        return None
    names = [_name(column) for column in zip(*rows, strict=True)]
    return names if all(names.count(name) == 1 for name in ("adv_number", "parcel_id", "face")) else None


def _name(column: tuple[str, ...]) -> str | None:
    if all(cell.isdecimal() for cell in column):
        numbers = [int(cell) for cell in column]
        if all(0 < after - before < 100 for before, after in pairwise(numbers)):
            return "adv_number"
    if all(map(_AMOUNT.fullmatch, column)):
        dearest = max(float(cell.strip("$").replace(",", "")) for cell in column)
        return "face" if dearest > _HIGHEST_RATE else None  # else they may be rates
    is_id = all(map(_ID.fullmatch, column)) and len(set(column)) == len(column)
    return "parcel_id" if is_id else None
