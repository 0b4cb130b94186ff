"""The names of a file's columns, before anything else of it is read: for showing what would be taken for what."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

from lienworker.intake.detect import detect_format
from lienworker.intake.source import name_of, open_blocks
from lienworker.intake.tables import choose_delimiter
from lienworker.intake.text import read_text


def header_of(source: str | Path, asked: str | None, chosen: Mapping[str, str]) -> list[str] | None:
    """The header of a table or the keys of the first JSON line; None where a file has neither."""
    name = name_of(source)
    with open_blocks(source, name) as blocks:
        head, _ = read_text(blocks, name)
        kind = detect_format(name, head, asked, chosen or None)
    lines = (line.strip("\r\n ") for line in head.splitlines())
    line = next((line for line in lines if line and not line.lower().startswith("sep=")), "")
    if kind == "csv":
        cells = next(csv.reader([line], delimiter=choose_delimiter(line, chosen or None)), [])
        return [cell.strip() for cell in cells]
    return _keys(line) if kind == "jsonl" else None


def _keys(line: str) -> list[str] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return list(row) if isinstance(row, dict) else None
