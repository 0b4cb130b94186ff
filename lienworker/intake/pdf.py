"""PDF documents with a list of parcels: read by a process with limits, row by row; what is not certain is a reject."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from lienworker.errors import InputError, PageError
from lienworker.intake.fields import RowMaker
from lienworker.intake.rows import BadRowError, Layout, ParcelRow, Reject
from lienworker.intake.tables import Columns
from lienworker.limited import LimitedProcess, Limits, OverLimitError

PDF = b"%PDF"
#: Bytes of a document: a list of ten thousand rows has two million.
_LARGEST = 32 << 20
PDF_LIMITS = Limits(cpu_seconds=90, wall_seconds=240.0, memory_bytes=700 << 20)


def read_pdf(
    blocks: Iterator[bytes], name: str, layout: Layout, maker: RowMaker, mapping: Mapping[str, str] | None
) -> Iterator[ParcelRow | Reject]:
    """Yield the rows of a document; the number of a row is its place in the list, its sentence has page and line."""
    items = _items(blocks, name, layout)
    columns = Columns(next(items)["header"], mapping, name)
    columns.check(maker, name)
    for number, item in enumerate(items, 1):
        try:
            yield _row(number, item, columns, maker)
        except BadRowError as error:
            where = f"page {item['page']}, line {item['line']}: "
            text = item.get("text") or " | ".join(item.get("cells", []))
            yield BadRowError(error.reason, where + error.detail).at(number, text)


def pdf_header(blocks: Iterator[bytes], name: str, layout: Layout) -> list[str]:
    header: list[str] = next(_items(blocks, name, layout))["header"]
    return header


def _row(number: int, item: Mapping[str, Any], columns: Columns, maker: RowMaker) -> ParcelRow:
    if problem := item.get("problem"):
        raise BadRowError("uncertain_row", f"{problem}; enter it by hand")
    return maker.make(number, *columns.sort(list(item["cells"])))


def _items(blocks: Iterator[bytes], name: str, layout: Layout) -> Iterator[dict[str, Any]]:
    body = b""
    for block in blocks:
        body += block
        if len(body) > _LARGEST:
            raise InputError(f"{name} is a PDF document of more than {_LARGEST >> 20} MB; get the list as CSV")
    child = LimitedProcess(PDF_LIMITS, quiet=True)
    try:
        packed = child.run("lienworker.intake.pdf_table:convert", {"columns": list(layout.columns)}, body)
    except PageError as problem:
        raise InputError(f"{name} {problem.detail}") from None
    except OverLimitError:
        raise InputError(f"{name} is a PDF document that takes too much memory or time; get the list as CSV") from None
    finally:
        child.close()
    with gzip.open(io.BytesIO(packed), "rb") as lines:
        yield from map(json.loads, lines)
