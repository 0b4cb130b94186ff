"""Import of a JSONL file against plain `sqlite3`: the same rows into both tables with the same indexes.

The plain side reads no file, checks nothing, keeps no tallies and knows nothing of duplicates: it is given finished
tuples and inserts them with `executemany`, in transactions of the same size, as durable as ours. It is the limit.

    python -m benchmarks.importing [--rows 1000000] [--batch-size 1000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lienworker.db.migrations import _statements, known_migrations
from lienworker.store.tasks import local_task_id

NOW = "2026-01-01T00:00:00.000Z"
TASK_SQL = (
    "INSERT INTO tasks (task_id, source, platform, state, county, parcel_id, url, target_json, queue, priority,"
    " import_id, created_at, received_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
OUTBOX_SQL = (
    "INSERT INTO outbox (topic, task_id, generation, host, queue, priority, payload, state, due_at, reason, created_at)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?)"
)


def parcels(rows: int) -> Iterator[dict[str, Any]]:
    for n in range(rows):
        yield {
            "url": f"https://county{n % 20}.example/parcel/{n:09d}",
            "platform": "generic",
            "state": "FL",
            "county": f"County{n % 20}",
            "parcel_id": f"{n:09d}",
        }


def write_file(path: Path, rows: int) -> None:
    with path.open("w") as out:
        out.writelines(json.dumps(parcel) + "\n" for parcel in parcels(rows))


def plain_seconds(folder: Path, rows: int, batch_size: int) -> float:
    connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = full")
    for statement in _statements(known_migrations()[0].sql):
        if "TRIGGER" not in statement:
            connection.execute(statement)
    spent = 0.0
    for tasks, entries in _tuples(rows, batch_size):
        began = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(TASK_SQL, tasks)
        connection.executemany(OUTBOX_SQL, entries)
        connection.execute("COMMIT")
        spent += time.perf_counter() - began
    return spent


def _tuples(rows: int, batch_size: int) -> Iterator[tuple[list[Any], list[Any]]]:
    tasks: list[Any] = []
    entries: list[Any] = []
    for parcel in parcels(rows):
        task_id = local_task_id(parcel["url"])
        host = parcel["url"].split("/")[2]
        tasks.append(
            (task_id, "local_file", "generic", "FL", parcel["county"], parcel["parcel_id"], parcel["url"], "{}",
             "default", 3, 1, NOW, NOW, NOW)
        )  # fmt: skip
        entries.append(("fetch", task_id, 1, host, "default", 3, None, "waiting", 1, None, 1))
        if len(tasks) >= batch_size:
            yield tasks, entries
            tasks, entries = [], []
    if tasks:
        yield tasks, entries


def import_seconds(folder: Path, file: Path, batch_size: int) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "lienworker", "import", str(file), "--batch-size", str(batch_size)],
        env={**os.environ, "LIENWORKER_DATA_DIR": str(folder / "data")},
        check=True,
    )
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch-size", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "parcels.jsonl"
        write_file(file, chosen.rows)
        ours = import_seconds(folder, file, chosen.batch_size)
        peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        plain = plain_seconds(folder, chosen.rows, chosen.batch_size)
    print(f"rows                 {chosen.rows:,}")
    print(f"plain executemany    {chosen.rows / plain:,.0f} rows/s")
    print(f"lienworker import    {chosen.rows / ours:,.0f} rows/s")
    print(f"ratio                {plain / ours:.2f}   (bar: 0.30)")
    print(f"peak memory          {peak_mb:.0f} MB   (bar: 150)")
    sys.exit(0 if plain / ours >= 0.3 and peak_mb < 150 else 1)


if __name__ == "__main__":
    main()
