"""Results for other programs: JSON, JSON lines, CSV and Excel, streamed: memory does not grow with their number.

An item has what a result is about (`ABOUT`), what the operator's own list said of it (`list`: case number, opening
bid, and what else its columns were), and what the page said (`data`). As JSON it is nested so; as a table it is flat,
each value under its own name, which is what people join by.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, BinaryIO, NamedTuple, TextIO

from lienworker.db.database import dict_rows
from lienworker.errors import InputError, StoreError
from lienworker.intake.rows import harmless
from lienworker.platforms.core.base import CANONICAL
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import each_result
from lienworker.store import columns
from lienworker.text_safety import redacted, without_passwords

FORMATS = ("csv", "json", "jsonl", "xlsx")
#: What every export says about a result: first whose it is, last how it came to be.
_WHOSE = ("task_id", "parcel_id", "platform", "state", "county", "url")
_HOW = (
    "queue", "import_id", "scraped_at", "fetched_at", "parser_version", "raw_sha256", "html_path", "synced",
)  # fmt: skip
ABOUT = (*_WHOSE, *_HOW)
#: What the page says of these is said about the result already; where the two differ, the page's has its own column.
_SAID_TWICE = frozenset({"parcel_id", "state", "county"})
#: Parts of a task's target that are ours, not the operator's.
_OURS = frozenset({"follow", *_WHOSE})


class Columns(NamedTuple):
    """Names of columns: those of operators' own lists as they came, and those of the records."""

    own: Sequence[str]
    found: Sequence[str]


@dataclass(frozen=True, slots=True)
class Selection:
    """Results to export, and the columns that they have as a table."""

    items: Callable[[], Iterable[dict[str, Any]]]
    columns: Callable[[], Columns]


@dataclass(frozen=True, slots=True)
class Shape:
    """How an export is to look."""

    format: str = "jsonl"
    #: Columns in this order, and no others; none means all.
    fields: tuple[str, ...] = ()
    #: A mark at the start of a CSV, by which Excel knows that it is UTF-8.
    bom: bool = False
    gzip: bool = False


def shape_of(name: str, form: str | None, fields: tuple[str, ...], *, bom: bool) -> Shape:
    """Return how a file is to be written, by its name unless a format is given."""
    bare, packed = (name[:-3], True) if name.lower().endswith(".gz") else (name, False)
    chosen = form or bare.rpartition(".")[2].lower()
    if chosen not in FORMATS:
        raise InputError(
            f"{name} does not say what to write: name it .csv, .json, .jsonl or .xlsx (.gz after it packs), or give"
            " --format."
        )
    if chosen == "xlsx" and packed:
        raise InputError(f"{name}: a workbook is packed already; leave out .gz.")
    if bom and chosen != "csv":
        raise InputError(f"--bom is for CSV, and this would be {chosen}.")
    return Shape(chosen, fields, bom, packed)


def selected(wanted: TaskFilter) -> Selection:
    """Return the results that fit."""
    return Selection(lambda: items_to_export(wanted), lambda: _columns_of(wanted))


def _columns_of(wanted: TaskFilter) -> Columns:
    """Return the columns of the places and imports that are wanted; what an older version stored is looked through."""
    if not columns.are_known():
        columns.learn(_Stored(*(row[name] for name in _Stored._fields)) for row in each_result(TaskFilter()))
    found = columns.result_columns(wanted.platform, wanted.state, wanted.county)
    return Columns(columns.list_columns(wanted.import_id), found)


class _Stored(NamedTuple):
    """A result, as far as its columns need it."""

    platform: str
    state: str | None
    county: str | None
    parcel_id: str | None
    data: dict[str, Any]


def items_to_export(wanted: TaskFilter) -> Iterator[dict[str, Any]]:
    """Every result that fits, newest first, with the address and the columns of its task."""
    sql = "SELECT url, queue, import_id, target_json FROM tasks WHERE task_id = ?"
    for found in each_result(wanted):
        task = next(dict_rows(sql, (found["task_id"],)), None)
        if task is None:
            yield found
            continue
        target: dict[str, Any] = json.loads(task.pop("target_json"))
        yield {**found, **task, "list": {name: value for name, value in target.items() if name not in _OURS}}


def export(selection: Selection, shape: Shape, out: BinaryIO) -> int:
    """Write all items; return their number."""
    if shape.format == "xlsx":
        from lienworker.queries.workbook import write_workbook

        return write_workbook(selection, shape.fields, out)
    with _text(shape, out) as text:
        return export_text(selection, shape, text)


def export_text(selection: Selection, shape: Shape, out: TextIO) -> int:
    """The same for the formats that are text."""
    if shape.format == "csv":
        return _write_csv(selection, shape.fields, out)
    chosen = table_of(selection, shape.fields) if shape.fields else None
    objects = (chosen.values(item) if chosen else _nested(item) for item in selection.items())
    return _write_json(objects, out) if shape.format == "json" else _write_jsonl(objects, out)


@contextmanager
def _text(shape: Shape, out: BinaryIO) -> Iterator[TextIO]:
    packed = gzip.GzipFile(fileobj=out, mode="wb", mtime=0) if shape.gzip else None
    encoding = "utf-8-sig" if shape.bom else "utf-8"
    text = io.TextIOWrapper(packed or out, encoding=encoding, newline="")
    try:
        yield text
        text.flush()
    finally:
        text.detach()
        if packed:
            packed.close()


def _write_json(objects: Iterable[dict[str, Any]], out: TextIO) -> int:
    out.write("[")
    n = 0
    for n, item in enumerate(objects, 1):
        out.write(("\n" if n == 1 else ",\n") + json.dumps(item, ensure_ascii=False))
    out.write("\n]\n" if n else "]\n")
    return n


def _write_jsonl(objects: Iterable[dict[str, Any]], out: TextIO) -> int:
    n = 0
    for item in objects:
        out.write(json.dumps(item, ensure_ascii=False) + "\n")
        n += 1
    return n


def _write_csv(selection: Selection, fields: tuple[str, ...], out: TextIO) -> int:
    table = table_of(selection, fields)
    writer = csv.writer(out)
    writer.writerow([harmless(name) for name in table.columns])
    n = 0
    for item in selection.items():
        n += 1
        writer.writerow([_cell(value) for value in table.values(item).values()])
    return n


def _nested(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without passwords, not even those in addresses on a county's page."""
    about = {name: redacted(item.get(name)) for name in ABOUT}
    return {**about, "list": redacted(item.get("list", {})), "data": redacted(item["data"])}


# Items as rows of a table.


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table: for each its part of the item (about, list, data) and its name there."""

    columns: dict[str, tuple[str, str]]
    #: What an item may say; None where a person chose columns, so that the rest is left out.
    allowed: dict[str, frozenset[str]] | None

    def values(self, item: Mapping[str, Any]) -> dict[str, Any]:
        parts = {"about": item, "list": item.get("list", {}), "data": flatten(item["data"])}
        if self.allowed:
            self._refuse_more(item, *(parts[part].keys() - names for part, names in self.allowed.items()))
        return {column: _plain(parts[part].get(name)) for column, (part, name) in self.columns.items()}

    def _refuse_more(self, item: Mapping[str, Any], own: Set[str], found: Set[str]) -> None:
        """Raise StoreError for a value that has no column: better no table than one that lacks it."""
        told = {name for name in found if name not in _SAID_TWICE or item["data"][name] not in (None, item.get(name))}
        if name := next(iter(sorted(own | told)), None):
            columns.doubt(f"since task {item['task_id']} was met")
            raise StoreError(f"Task {item['task_id']} has a field {name!r} that came meanwhile: export once more.")


def table_of(selection: Selection, fields: tuple[str, ...], leave_out: frozenset[str] = frozenset()) -> Table:
    """Return the columns of a selection; raise InputError for a chosen one that is nowhere."""
    known = selection.columns()
    found = [name for name in known.found if name not in leave_out]
    own = [name for name in known.own if name not in _OURS]
    table = {name: ("about", name) for name in _WHOSE}
    data = {_free(name, "page", ABOUT): ("data", name) for name in sorted(found, key=_in_order)}
    table |= {_free(name, "list", {*ABOUT, *data}): ("list", name) for name in own}
    table |= data | {name: ("about", name) for name in _HOW}
    if fields:
        return Table({name: table[_known(name, table)] for name in fields}, None)
    return Table(table, {"list": frozenset(own), "data": frozenset(known.found) | leave_out})


def _free(name: str, prefix: str, taken: Iterable[str]) -> str:
    return f"{prefix}_{name}" if name in taken else name


def _in_order(name: str) -> tuple[bool, int, str]:
    """As the canonical record has it, then by name; what is JSON comes last."""
    top = name.partition(".")[0]
    place = CANONICAL.index(top) if top in CANONICAL else len(CANONICAL)
    return top in columns.AS_JSON, place, name


def _known(name: str, table: Mapping[str, Any]) -> str:
    if name not in table:
        near = get_close_matches(name, table, n=1)
        raise InputError(f"no result has a field {name!r}.{f' Did you mean {near[0]!r}?' if near else ''}")
    return name


def flatten(data: dict[str, Any]) -> dict[str, Any]:
    """Return nested data as columns: objects become `outer.inner`, plain lists join with `; `, other lists are JSON."""
    return {name: _plain(value) for name, value in columns.leaves(data)}


def _plain(value: Any) -> Any:
    """A value of one cell."""
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return "; ".join(str(item) for item in value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return without_passwords(value) if isinstance(value, str) else value


def _cell(value: Any) -> Any:
    """Return a cell: numbers stay numbers; text that a spreadsheet would run as a formula is made harmless."""
    if value is None:
        return ""
    return harmless(without_passwords(value)) if isinstance(value, str) else value
