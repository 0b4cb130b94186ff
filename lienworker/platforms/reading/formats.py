"""Pages that are not HTML read as pairs and grids: JSON, delimited files, and pages of which only the text is left."""

from __future__ import annotations

import csv
import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.bounds import check_cells
from lienworker.platforms.reading.grids import Grid
from lienworker.platforms.reading.groups import is_elsewhere
from lienworker.platforms.reading.labels import FIELD_OF, MAX_LABEL, is_known, looks_like_label, normalise
from lienworker.platforms.reading.pairs import Pair

_MAX_DEPTH = 12
# Shapes are long, and no fact about a parcel.
_SHAPES = frozenset({"geometry", "rings", "paths", "coordinates", "spatialReference", "fieldAliases", "bbox"})
# Objects that stand for one text, and the names of that text in them.
_TOLD_BY_OBJECTS = frozenset({"owner_name", "owner_address", "property_address", "legal_description", "property_use"})
_WHOLE_WORDS = ("full address", "address", "description", "full name", "name", "text", "value")
_ADDRESS_PART = re.compile(r"(?:addr(?:ess)?(?: line)?|line|street) ?[1-4]?|city|state|zip(?: ?code)?|postal code")
_NUMBER_SIGN = re.compile(r"(?<=Account) #\s?(?=\d)")


def json_reading(data: Any) -> tuple[list[Pair], list[Grid]]:
    pairs: list[Pair] = []
    grids: list[Grid] = []
    _walk(data, "", pairs, grids, 0)
    return pairs, grids


def _walk(data: Any, title: str, pairs: list[Pair], grids: list[Grid], depth: int) -> None:
    """The name of what is around a value is the title it stands under."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(data, list):
        _walk_list(data, title, pairs, grids, depth)
    elif isinstance(data, dict):
        if whole := _whole(data, title):
            pairs.append(whole)
        for name, value in data.items():
            if isinstance(value, (dict, list)):
                if name not in _SHAPES:
                    _walk(value, title if is_elsewhere(title) else str(name), pairs, grids, depth + 1)
            elif shown := _shown(value):
                pairs.append(Pair(str(name), (shown,), title))


def _whole(data: dict[str, Any], title: str) -> Pair | None:
    """What an object says by its own name: `siteAddress: {address: …}`, `mailingAddress: {addr1: …, city: …}`."""
    field = FIELD_OF.get(normalise(title), "")
    if field not in _TOLD_BY_OBJECTS:
        return None
    words = {normalise(str(name)): shown for name, value in data.items() if (shown := _shown(value))}
    line = next((words[word] for word in _WHOLE_WORDS if word in words), None)
    if line is None and field.endswith("_address"):
        lines = [shown for word, shown in words.items() if _ADDRESS_PART.fullmatch(word)]
        line = " ".join(lines) if len(lines) > 1 else None
    return Pair(title, (line,)) if line else None


def _walk_list(items: list[Any], title: str, pairs: list[Pair], grids: list[Grid], depth: int) -> None:
    objects = [item for item in items if isinstance(item, dict)]
    if len(objects) == 1:
        _walk(objects[0], title, pairs, grids, depth + 1)
    elif objects:
        grids.append(_grid([_flat(item, depth) for item in objects], title))
        for item in objects:
            # What is nested in an item (the certificate of a bill) is a grid of its own, never the page's own facts.
            for name, part in item.items():
                if isinstance(part, list):
                    _walk(part, str(name), [], grids, depth + 2)


def _flat(item: dict[str, Any], depth: int) -> dict[str, str]:
    """The scalars of an object and of the objects inside it (ArcGIS keeps a feature's facts in `attributes`)."""
    row: dict[str, str] = {}
    for name, value in item.items():
        if isinstance(value, dict) and name not in _SHAPES:
            for inner, shown in _flat(value, depth + 1).items() if depth < _MAX_DEPTH else ():
                row.setdefault(inner, shown)
        elif not isinstance(value, (dict, list)) and (text := _shown(value)):
            row[str(name)] = text
    return row


def _grid(rows: list[dict[str, str]], title: str) -> Grid:
    head = list(dict.fromkeys(name for row in rows for name in row))
    check_cells(len(head), len(rows))
    return Grid(head, [[row.get(name, "") for name in head] for row in rows], title=title)


def _shown(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean.text(value)


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
