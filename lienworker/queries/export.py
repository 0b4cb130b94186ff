"""Results as JSON, JSON lines or CSV, streamed: memory does not grow with their number."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from lienworker.intake.rows import harmless
from lienworker.text_safety import redacted, without_passwords

Results = Callable[[], Iterable[dict[str, Any]]]

#: What every export says about a result besides its data.
_ABOUT = (
    "task_id", "parcel_id", "platform", "state", "county", "scraped_at", "fetched_at", "parser_version",
    "raw_sha256", "html_path", "synced",
)  # fmt: skip
#: Pairs as the page showed them: a column for each would make thousands, so they share one.
_AS_JSON = ("fields",)


def export(results: Results, form: str, out: TextIO) -> int:
    """Write all results; return their number. `results` is called twice for a CSV, since its header comes first."""
    writers = {"json": _write_json, "jsonl": _write_jsonl, "csv": _write_csv}
    return writers[form](results, out)


def _write_json(results: Results, out: TextIO) -> int:
    out.write("[")
    n = 0
    for n, row in enumerate(results(), 1):
        out.write(("\n" if n == 1 else ",\n") + json.dumps(_item(row), ensure_ascii=False))
    out.write("\n]\n" if n else "]\n")
    return n


def _write_jsonl(results: Results, out: TextIO) -> int:
    n = 0
    for row in results():
        out.write(json.dumps(_item(row), ensure_ascii=False) + "\n")
        n += 1
    return n


def _write_csv(results: Results, out: TextIO) -> int:
    columns: dict[str, None] = {}
    for row in results():
        columns.update(dict.fromkeys(flatten(row["data"])))
    names = sorted(columns)
    writer = csv.writer(out)
    writer.writerow([*_ABOUT, *(f"data.{name}" for name in names)])
    n = 0
    for row in results():
        flat = flatten(row["data"])
        writer.writerow([_cell(row.get(name)) for name in _ABOUT] + [_cell(flat.get(name)) for name in names])
        n += 1
    return n


def _item(row: dict[str, Any]) -> dict[str, Any]:
    """Return a result without passwords, not even those in addresses on a county's page."""
    return {**{name: row.get(name) for name in _ABOUT}, "data": redacted(row["data"])}


def flatten(data: dict[str, Any]) -> dict[str, Any]:
    """Return nested data as columns: objects become `outer.inner`, plain lists join with `; `, other lists are JSON."""
    return dict(_pairs(data, ""))


def _pairs(data: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and key not in _AS_JSON:
            yield from _pairs(value, f"{name}.")
        elif isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
            yield name, "; ".join(str(item) for item in value)
        elif isinstance(value, dict | list):
            yield name, json.dumps(value, ensure_ascii=False)
        else:
            yield name, value


def _cell(value: Any) -> Any:
    """Return a cell: numbers stay numbers; text that a spreadsheet would run as a formula is made harmless."""
    if value is None:
        return ""
    return harmless(without_passwords(value)) if isinstance(value, str) else value
