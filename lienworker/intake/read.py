"""The way in: one function that reads any file of parcels, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lienworker.errors import InputError
from lienworker.intake.detect import detect_format
from lienworker.intake.fields import RowMaker
from lienworker.intake.jsonfile import read_json
from lienworker.intake.jsonl import read_jsonl
from lienworker.intake.mapping import check_fields
from lienworker.intake.objects import ObjectReader
from lienworker.intake.rows import Defaults, ParcelRow, Reject
from lienworker.intake.source import Source, name_of, open_blocks
from lienworker.intake.tables import read_table
from lienworker.intake.text import line_batches, read_text
from lienworker.intake.urllist import read_url_list

_NO_DEFAULTS = Defaults()


def read_parcels(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002
    defaults: Defaults = _NO_DEFAULTS,
    mapping: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Iterator[ParcelRow | Reject]:
    """Reads a file of parcels in constant memory: usable rows, and a `Reject` for each that is not, in their order.

    `source` is a path, "-" for standard input, or an open binary file (which stays open). `format` is csv, json,
    jsonl or txt; without it the name decides, then the content. `mapping` says which column is which of our fields,
    for those that are not understood by themselves. `name` is what the source is called in sentences.

    Nothing is opened before the first row is asked for. A file that cannot be used as a whole raises `InputError`,
    mostly at once, but after good rows where the fault (a cut-off archive) lies behind them.
    """
    called = name or name_of(source)
    maker = RowMaker(defaults)
    check_fields(mapping or {})
    with open_blocks(source, called) as blocks:
        rows = _rows(blocks, called, format, maker, mapping)
        first = next(rows, None)
        if first is None:
            raise InputError(f"{called} has no parcels in it; add a row, or check that it is the right file")
        yield first
        yield from rows


def _rows(
    blocks: Iterator[bytes],
    name: str,
    asked: str | None,
    maker: RowMaker,
    mapping: Mapping[str, str] | None,
) -> Iterator[ParcelRow | Reject]:
    head, pieces = read_text(blocks, name)
    kind = detect_format(name, head, asked, mapping)
    if kind == "json":
        return read_json(pieces, ObjectReader(maker, mapping), name)
    batches = line_batches(pieces, head)
    if kind == "jsonl":
        return read_jsonl(batches, ObjectReader(maker, mapping))
    if kind == "csv":
        return read_table(head, batches, maker, mapping, name)
    return read_url_list(batches, maker)
