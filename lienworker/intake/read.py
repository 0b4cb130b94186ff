"""The way in: one function that reads any file of parcels, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

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
from lienworker.intake.text import Batches, line_batches, read_text
from lienworker.intake.urllist import read_url_list

_NO_DEFAULTS = Defaults()
#: Rejects, and lines without a row, that any file may have; and how many more for each row that can be used.
_MOST_REJECTS = 100_000
_MOST_LINES = 2_000_000
_FOR_EACH_ROW = 10


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
    effort = _Effort(called)
    with open_blocks(source, called) as blocks:
        rows = _rows(blocks, called, format, maker, mapping, effort)
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
    """Stops at a file that is all work and no parcels: millions of bad rows, or of lines with nothing on them.

    A bad row costs as much as a good one and brings nothing; a list with ten bad ones for each good one is not a list.
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
    asked: str | None,
    maker: RowMaker,
    mapping: Mapping[str, str] | None,
    effort: _Effort,
) -> Iterator[ParcelRow | Reject]:
    head, pieces = read_text(blocks, name)
    kind = detect_format(name, head, asked, mapping)
    if kind == "json":
        return read_json(pieces, ObjectReader(maker, mapping), name)
    batches = effort.watch(line_batches(pieces, head))
    if kind == "jsonl":
        return read_jsonl(batches, ObjectReader(maker, mapping))
    if kind == "csv":
        return read_table(head, batches, maker, mapping, name)
    return read_url_list(batches, maker)
