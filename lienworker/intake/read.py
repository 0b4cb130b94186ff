"""The entry point: one function that reads any file of parcels, row by row."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath

from lienworker.errors import InputError
from lienworker.intake.fields import RowMaker, check_fields, propose_mapping
from lienworker.intake.jsonfile import ObjectReader, names_a_parcel, read_json, read_jsonl
from lienworker.intake.pdf import PDF, pdf_header, read_pdf
from lienworker.intake.rows import Defaults, Layout, ParcelRow, Reject
from lienworker.intake.source import (
    Batches,
    Source,
    first_block,
    line_batches,
    name_of,
    open_blocks,
    read_text,
    read_url_list,
)
from lienworker.intake.tables import choose_delimiter, looks_like_table, read_table

_NO_DEFAULTS = Defaults()
_BY_CONTENT = Layout()
#: Rejects, and lines without a row, that any file may have; and how many more for each row that can be used.
_MOST_REJECTS = 100_000
_MOST_LINES = 2_000_000
_FOR_EACH_ROW = 10


def read_parcels(
    source: Source,
    *,
    layout: Layout = _BY_CONTENT,
    defaults: Defaults = _NO_DEFAULTS,
    mapping: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Iterator[ParcelRow | Reject]:
    """Read a file of parcels in constant memory: usable rows, and a `Reject` for each other one, in their order.

    `source` is a path, "-" for standard input, or an open binary file (which stays open). `layout` says what neither
    the name nor the content tells. `mapping` says which column is which of our fields,
    for those that are not recognized. `name` is what messages call the source.

    Nothing is opened before the first row is asked for. A file that cannot be used as a whole raises `InputError`,
    mostly at once, but after good rows where the fault (a truncated archive) comes after them.
    """
    called = name or name_of(source)
    maker = RowMaker(defaults)
    check_fields(mapping or {})
    effort = _Effort(called)
    layout = replace(layout, columns=tuple((mapping or {}).values()))
    with open_blocks(source, called, layout) as blocks:
        rows = _rows(blocks, called, layout, maker, mapping, effort)
        first = next(rows, None)
        if first is None:
            raise InputError(f"{called} has no parcels in it; add a row, or check that it is the right file")
        for row in chain([first], rows):
            if row.__class__ is ParcelRow:
                effort.rows += 1
            else:
                effort.rejected()
            yield row


class _Effort:
    """Stops reading a file that is all work and no parcels: millions of bad rows, or of lines with nothing on them.

    A bad row costs as much as a good one and yields nothing; ten bad ones for each good one do not make a list.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.rows = self._rejects = self._lines = 0

    def rejected(self) -> None:
        self._rejects += 1
        if self._rejects > _MOST_REJECTS + _FOR_EACH_ROW * self.rows:
            raise self._useless(f"{self._rejects:,} of its first {self._rejects + self.rows:,} rows cannot be used")

    def watch(self, batches: Batches) -> Batches:
        for start, lines in batches:
            self._lines += len(lines)
            if self._lines > _MOST_LINES + _FOR_EACH_ROW * self.rows:
                raise self._useless(f"there are {self.rows:,} parcels on its first {self._lines:,} lines")
            yield start, lines

    def _useless(self, why: str) -> InputError:
        return InputError(f"{self._name} is no list of parcels: {why}; what was read before is kept. Check the file")


def _rows(
    blocks: Iterator[bytes],
    name: str,
    layout: Layout,
    maker: RowMaker,
    mapping: Mapping[str, str] | None,
    effort: _Effort,
) -> Iterator[ParcelRow | Reject]:
    first = first_block(blocks)
    blocks = chain([first], blocks)
    if first.startswith(PDF):
        return read_pdf(blocks, name, layout, maker, mapping)
    head, pieces = read_text(blocks, name, layout)
    kind = detect_format(name, head, layout.format, mapping)
    if kind == "json":
        return read_json(pieces, ObjectReader(maker, mapping), name)
    batches = effort.watch(line_batches(pieces, head))
    if kind == "jsonl":
        return read_jsonl(batches, ObjectReader(maker, mapping))
    if kind == "csv":
        return read_table(head, batches, maker, mapping, name)
    return read_url_list(batches, maker)


# The names of a file's columns, before anything else of it is read: to show how they would be mapped.


def header_of(source: str | Path, layout: Layout, chosen: Mapping[str, str]) -> list[str] | None:
    """Return the header of a table or the keys of the first JSON line; None where a file has neither."""
    name = name_of(source)
    layout = replace(layout, columns=tuple(chosen.values()))
    with open_blocks(source, name, layout) as blocks:
        first = first_block(blocks)
        blocks = chain([first], blocks)
        if first.startswith(PDF):
            return pdf_header(blocks, name, layout)
        head, _ = read_text(blocks, name, layout)
        kind = detect_format(name, head, layout.format, chosen or None)
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


# What kind of file is it? Its name says so, and its first lines must agree.


_ENDINGS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl", "txt": "txt"}
#: The sheet of a workbook arrives here as CSV.
_SHEETS = frozenset({".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"})
_SPOKEN = {
    "csv": "a CSV table",
    "json": "JSON",
    "jsonl": "JSONL, with one JSON object a line",
    "txt": "a list of URLs, one a line",
}
_SAMPLE = 20


def detect_format(name: str, head: str, asked: str | None, chosen: Mapping[str, str] | None = None) -> str:
    """Return csv, json, jsonl or txt; raise `InputError` where the content contradicts the name or the operator."""
    lines = _telling_lines(head)
    if lines[0].startswith("<"):
        raise InputError(f"{name} is a web page (HTML or XML), not a list of parcels; download the list itself")
    said = _asked(asked) or _by_ending(name)
    if said is None:
        return sniff(head)
    if said == "txt" and not asked and looks_like_table(head, chosen):
        return "csv"  # auction lists come as .txt with tabs or pipes
    if not _fits(said, lines):
        raise InputError(
            f"{name} is not {_SPOKEN[said]}; its first line begins {lines[0][:40]!r}; {_remedy(said, head)}"
        )
    return said


def sniff(head: str) -> str:
    """Return what the content alone looks like."""
    lines = _telling_lines(head)
    first = lines[0]
    if first.startswith("{"):
        return "jsonl" if _is_row(first) or (len(lines) > 1 and lines[1].startswith("{")) else "json"
    if first.startswith("["):
        return "json"
    return "txt" if first.lower().startswith(("http://", "https://", "#")) else "csv"


def _remedy(said: str, head: str) -> str:
    found = sniff(head)
    if found == said or (found == "csv" and not looks_like_table(head)):
        return "check that it is the right file"
    return f"it looks like {_SPOKEN[found]}: rename it, or say which format it is"


def _fits(said: str, lines: list[str]) -> bool:
    """Return whether the lines fit the format; this finds faults of the whole file, a bad row is a reject."""
    first = lines[0]
    if said == "json":
        return first[0] in "[{"
    if said == "jsonl":
        return first != "{" and first[0] != "[" and any(line.startswith("{") for line in lines)
    if said == "txt":
        return first[0] not in "[{" and any("://" in line or line.lower().startswith(("www.", "#")) for line in lines)
    return first[0] not in "[{"


def _telling_lines(head: str) -> list[str]:
    """Return the first lines with content; never empty, since an empty file does not get this far."""
    lines = [line.strip() for line in head.splitlines()]
    return [line for line in lines if line and not line.startswith("#")][:_SAMPLE] or [head.strip()]


def _is_row(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return names_a_parcel(value, propose_mapping(list(value)))


def _asked(asked: str | None) -> str | None:
    if asked is None:
        return None
    if asked.lower() not in _ENDINGS:
        raise InputError(f"there is no format {asked!r}; use csv, json, jsonl or txt")
    return _ENDINGS[asked.lower()]


def _by_ending(name: str) -> str | None:
    path = PurePath(name.lower())
    ending = PurePath(path.stem).suffix if path.suffix in (".gz", ".gzip") else path.suffix
    if ending in _SHEETS:
        return "csv"
    return _ENDINGS.get(ending[1:])
