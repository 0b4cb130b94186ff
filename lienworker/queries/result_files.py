"""Results outside of a data folder, as people have them: a folder of files such as `pending/`, or an export."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from lienworker.errors import InputError
from lienworker.queries.export import ABOUT

_MOST_CELL = 10_000_000


def read_results(place: Path) -> Iterator[dict[str, Any]]:
    """Yield each result with what it is about and its `data`. Raise InputError where there is none."""
    found = False
    for item in _items(place):
        found = True
        yield item
    if not found:
        raise InputError(f"{place} is not a data folder (no lienworker.db), and no result is in it either.")


def _items(place: Path) -> Iterator[dict[str, Any]]:
    if place.is_dir():
        for file in sorted(place.glob("*.json")):
            yield from _read(file)
    else:
        yield from _read(place)


def _read(file: Path) -> Iterator[dict[str, Any]]:
    bare = file.name.lower().removesuffix(".gz")
    try:
        with _opened(file) as text:
            if bare.endswith(".csv"):
                yield from _of_table(text)
            elif bare.endswith(".jsonl"):
                yield from (_checked(json.loads(line), file) for line in text if line.strip())
            else:
                content = json.load(text)
                yield from (_checked(item, file) for item in (content if isinstance(content, list) else [content]))
    except (OSError, ValueError, csv.Error) as problem:
        raise InputError(f"{file} cannot be read as results: {problem}") from None


def _opened(file: Path) -> TextIO:
    if file.name.lower().endswith(".gz"):
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _checked(item: Any, file: Path) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("data"), dict):
        raise InputError(f"{file} has something in it that is no result: a result has `data`.")
    return item


def _of_table(text: TextIO) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(_MOST_CELL)
    for row in csv.DictReader(text):
        data = {name: value for name, value in row.items() if name and name not in ABOUT and value}
        yield {**{name: row.get(name) or None for name in ABOUT}, "data": data}
