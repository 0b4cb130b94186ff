"""What the upgrade to schema 8 costs a large database: time, disk, memory, and two kills in the middle of it.

    python -m benchmarks.migration [--rows 1000000] [--keep FOLDER]

A folder of schema 7 with so many tasks, pages, results and rows of the outbox is upgraded by the product's own
`open_store`, in a process of its own: twice with a `kill -9` on the way, then to the end. What is in the tables before
and after is compared by a hash over every row, and SQLite checks the file.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from lienworker.db import migrations
from lienworker.db.database import close, files_of, open_store
from lienworker.db.migrations import known_migrations

#: Opens a folder. Dies so many seconds after it began with the one step that takes long, where a number is given.
UPGRADE = """
import os, signal, sys, threading, time
from pathlib import Path
from lienworker import failpoints as crash
from lienworker.db.database import open_store

left, seconds = int(sys.argv[2]), float(sys.argv[3])
def reached(point):
    global left
    left -= point == "migration.statement"
    if left == 1 and seconds:
        left = 0
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
crash.watch(reached)
open_store(Path(sys.argv[1]))
"""
TABLES = ("tasks", "pages", "results", "outbox", "rollups", "tally", "backlog")
MB = 1024 * 1024
#: It is killed after these shares of the time that a whole upgrade takes, counted from when its longest step begins.
KILLS = (0.25, 0.5)

FILL = (
    """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
INSERT INTO tasks (task_id, source, platform, state, county, parcel_id, url, status, created_at, received_at,
                   updated_at, completed_at)
SELECT 'p-' || lower(hex(randomblob(16))), 'local_file', 'qpublic', 'FL', 'County ' || (i % 60), printf('%09d', i),
    'https://county' || (i % 40) || '.example/parcel/' || i, 'completed', :then, :then, :then, :then
FROM n
""",
    """
INSERT INTO pages (task_id, generation, path, sha256, size, url, status, content_type, fetched_at, fetch_ms)
SELECT task_id, 1, 'raw/qpublic/FL/' || county || '/' || parcel_id || '.0123456789abcdef.html.gz',
    lower(hex(randomblob(32))), 50000, url, 200, 'text/html', :then, 300
FROM tasks
""",
    """
INSERT INTO results (task_id, generation, parcel_id, platform, state, county, data, html_path, raw_sha256, fetched_at,
                     parser_version, scraped_at, parse_duration_ms, synced)
SELECT t.task_id, 1, parcel_id, platform, state, county, json_object('parcel_id', parcel_id, 'owner_name', 'OWNER'),
    path, sha256, fetched_at, 'qpublic/1', :then, 4, 1
FROM tasks t JOIN pages p ON p.task_id = t.task_id
""",
    """
INSERT INTO outbox (topic, task_id, generation, queue, priority, state, due_at, created_at, finished_at)
SELECT 'upload_result', task_id, 1, 'default', 3, 'delivered', 0, 1767225600000, 1767225700000 FROM tasks
""",
)


@dataclass(frozen=True)
class Upgrade:
    """One run of the upgrade; `seconds` until it ended or was killed, the rest at its highest, in MB."""

    seconds: float
    disk: float
    memory: float


def fill(root: Path, rows: int) -> Path:
    """Make a folder of schema 7; return its database."""
    before = [item for item in known_migrations() if item.version < 8]
    whole, migrations.known_migrations = migrations.known_migrations, lambda: before
    try:
        path = open_store(root).database
    finally:
        migrations.known_migrations = whole
        close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = off")
        connection.execute("PRAGMA cache_size = -1000000")
        for sql in FILL:
            connection.execute(sql, {"rows": rows, "then": "2026-01-01T00:00:00.000Z"} if ":then" in sql else {})
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def upgrade(path: Path, *, kill_after: float = 0) -> Upgrade:
    """Open the folder in a process of its own, and look at it while it works."""
    steps = len(migrations._statements(known_migrations()[-1].sql))
    before, disk, memory = size_of(path), 0, 0
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", UPGRADE, str(path.parent), str(steps), str(kill_after)])
    about = psutil.Process(process.pid)
    while process.poll() is None:
        disk = max(disk, size_of(path) - before)
        with contextlib.suppress(psutil.Error):
            memory = max(memory, about.memory_info().rss)
        time.sleep(0.02)
    seconds = time.monotonic() - began
    if process.returncode != (-signal.SIGKILL if kill_after else 0):
        raise SystemExit(f"the upgrade ended with {process.returncode}")
    return Upgrade(seconds=seconds, disk=disk / MB, memory=memory / MB)


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in files_of(path) if file.exists())


def state_of(path: Path) -> tuple[int, str]:
    """Return the schema's version, and a hash over every row of the large tables but for what the upgrade adds."""
    digest = hashlib.sha256()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            names = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE name <> 'part'", (table,))
            columns = ", ".join(name for (name,) in names)
            for row in connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3"):
                digest.update(repr(row).encode())
        (version,) = connection.execute("SELECT max(version) FROM schema_versions").fetchone()
    return version, digest.hexdigest()


def restore(path: Path, copy: Path) -> None:
    """Put the file of schema 7 back; no process has it open."""
    for file in files_of(path)[1:]:
        file.unlink(missing_ok=True)
    path.write_bytes(copy.read_bytes())


def measure(root: Path, rows: int) -> bool:
    began = time.monotonic()
    path = fill(root, rows)
    size = size_of(path) / MB
    print(f"{rows:,} tasks, pages, results and outbox rows made in {time.monotonic() - began:.0f} s: {size:,.0f} MB")
    version, content = state_of(path)
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    is_well = version == 7
    whole = upgrade(path)
    told("without a kill", whole)
    is_well &= state_of(path) == (8, content)
    restore(path, copy)
    for share in KILLS:
        told(f"killed after {share:.0%}", upgrade(path, kill_after=share * whole.seconds))
        is_well &= state_of(path)[1] == content
    told("the start after that", upgrade(path))
    is_well &= state_of(path) == (8, content)
    told("opened again", upgrade(path))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        problems = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    print(f"integrity_check: {', '.join(problems)}; the rows are {'the same' if is_well else 'NOT the same'}")
    return is_well and problems == ["ok"]


def told(what: str, run: Upgrade) -> None:
    print(
        f"  {run.seconds:7.2f} s  {run.disk:7.0f} MB of disk on top  {run.memory:7.0f} MB of memory  {what}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="make the folder there and keep it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(not measure(chosen.keep or Path(folder), chosen.rows))


if __name__ == "__main__":
    main()
