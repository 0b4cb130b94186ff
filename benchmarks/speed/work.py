"""The unit of work that the bare loop and the peers share, written once so that nobody gets another one.

Twelve fields with parsel, the raw page gzipped into a file of its own, a row in SQLite in WAL mode with
`synchronous=FULL`. What lienworker does beyond it (tasks, leases, politeness, a file flushed before a row names it,
the file in pending/, the rows that will bring it to the Gateway) is on top, and on its own bill.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from pathlib import Path

from parsel import Selector

from benchmarks.speed.page import PATHS

#: Python's own default, as anybody would write it. `--gzip 3` asks for what lienworker's library packs as well as.
LEVEL = int(os.environ.get("BENCHMARK_GZIP", "9"))
#: Rows in a commit where a contender can group them: as many as lienworker claims at a time.
GROUP = 16


def open_rows(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "rows.db", timeout=60, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS results (url TEXT PRIMARY KEY, path TEXT, data TEXT)")
    return connection


def keep_page(folder: Path, url: str, body: bytes) -> str:
    path = folder / "raw" / f"{url.rpartition('/')[2]}.html.gz"
    path.write_bytes(gzip.compress(body, LEVEL, mtime=0))
    return path.name


def parse(body: bytes) -> dict[str, str | None]:
    page = Selector(text=body.decode("utf-8"))
    return {name: page.xpath(path).get() for name, path in PATHS.items()}


def keep_rows(connection: sqlite3.Connection, rows: list[tuple[str, str, dict[str, str | None]]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    values = [(url, path, json.dumps(data)) for url, path, data in rows]
    connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", values)
    connection.execute("COMMIT")
