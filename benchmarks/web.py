"""The monitor at a million tasks and a million outbox rows: every view at the server, and the stream when idle.

python -m benchmarks.web [--rows 1000000] [--keep FOLDER [--fill-only]]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import aiohttp
import psutil

from lienworker.data_folder import DataFolder
from lienworker.db.database import close, open_store
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import TOP, list_results, list_tasks
from lienworker.queries.outbox import list_rows

PORT = 5629
#: Asked while somebody types into the search box.
SUGGESTIONS = (
    "/api/search?brief=1&q=00-0999", "/api/search?brief=1&q=task-99", "/api/search?brief=1&q=OWNER 77",
    "/api/search?brief=1&q=1 main", "/api/search?brief=1&q=nothing",
)  # fmt: skip
VIEWS = (
    "/", "/tasks", "/tasks?status=failed", "/tasks?status=failed&reason=http_503&county=County 7",
    "/tasks?text=00-0999", "/tasks?text=nothing-like-this", "/tasks?platform=taxsys&below=500000",
    "/tasks?queue=urgent&source=local_file", "/tasks/task-500000", "/results", "/results?county=County 3",
    "/results?text=OWNER 77", "/outbox", "/outbox?state=parked", "/outbox?state=held", "/outbox?state=waiting",
    "/outbox?state=discarded", "/outbox/900000", "/counties", "/county?platform=tyler&state=FL&county=County 3",
    "/imports", "/imports/1", "/audit", "/tasks?top=500000", "/tasks?sort=oldest", "/results?sort=oldest",
    "/counties?sort=waiting", "/search?q=1 main",
    "/tasks?county=county 7&since=2026-01-01", "/tasks?import_id=1",
    "/results?import_id=1&since=2026-01-01", "/search?q=00-0999", "/search?q=OWNER 77",
    "/search?q=nothing-like-this", "/metrics", "/readyz", "/api/overview", "/api/tasks?status=pending",
)  # fmt: skip

TASKS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
INSERT INTO tasks (task_id, source, import_id, platform, state, county, parcel_id, url, queue, priority, status,
                   attempts, reason, last_error, created_at, received_at, updated_at, completed_at)
SELECT 'task-' || i, CASE i % 3 WHEN 0 THEN 'gateway' ELSE 'local_file' END, 1,
    CASE i % 4 WHEN 0 THEN 'qpublic' WHEN 1 THEN 'taxsys' WHEN 2 THEN 'vgsi' ELSE 'tyler' END, 'FL',
    'County ' || (i % 60), printf('%02d-%07d', i % 100, i), 'https://county' || (i % 40) || '.example/parcel/' || i,
    CASE WHEN i % 50 = 0 THEN 'urgent' ELSE 'default' END, 1 + i % 4,
    CASE WHEN i % 10 < 6 THEN 'completed' WHEN i % 10 < 7 THEN 'failed' ELSE 'pending' END, 1,
    CASE WHEN i % 10 = 6 THEN 'http_' || (500 + i / 10 % 8) END, CASE WHEN i % 10 = 6 THEN 'The site answered so.' END,
    :then, :then, :then,
    CASE WHEN i % 10 < 7 THEN strftime('%Y-%m-%dT%H:%M:%S.000Z', 'now', '-' || (i % 86400) || ' seconds') END
FROM n
"""
OUTBOX = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
INSERT INTO outbox (topic, task_id, generation, host, queue, priority, state, due_at, reason, fingerprint, created_at,
                    finished_at)
SELECT CASE WHEN i % 10 < 3 THEN 'fetch' WHEN i % 10 < 7 THEN 'upload_raw' ELSE 'upload_result' END,
    'task-' || i, 1, CASE WHEN i % 10 < 3 THEN 'county' || (i % 40) || '.example' ELSE '' END, 'default', 1 + i % 4,
    CASE WHEN i % 10 < 5 THEN 'waiting' WHEN i % 10 < 7 THEN 'parked' WHEN i % 10 < 8 THEN 'held' ELSE 'delivered' END,
    :now, CASE WHEN i % 10 IN (5, 6) THEN 'gateway_refused' WHEN i % 10 = 7 THEN 'standalone' END,
    CASE WHEN i % 10 IN (5, 6) THEN 'f' || (i / 10 % 20) END, :now - (i / 10 % 4000) * 60000,
    CASE WHEN i % 10 IN (5, 6, 8, 9) THEN :now END
FROM n
"""
RESULTS = """
INSERT INTO results (task_id, generation, parcel_id, platform, state, county, data, html_path, raw_sha256, fetched_at,
                     parser_version, scraped_at, parse_duration_ms)
SELECT task_id, 1, parcel_id, platform, state, county,
    '{"owner_name": "OWNER ' || substr(task_id, 6) || '", "property_address": "1 MAIN ST", "total_due": 12.5}',
    'raw/x', 'x', received_at, '1', received_at, 4 FROM tasks WHERE status = 'completed'
"""
ROLLUPS = (
    "INSERT INTO rollups SELECT 'task', status, strftime('%s', completed_at) / 60, count(*), 0 FROM tasks"
    " WHERE completed_at IS NOT NULL GROUP BY 2, 3",
    "INSERT INTO rollups SELECT 'county', platform || '|' || state || '|' || county || '|' || status,"
    " strftime('%s', completed_at) / 86400 * 1440, count(*), 0 FROM tasks WHERE completed_at IS NOT NULL GROUP BY 2, 3",
)
IMPORT = "INSERT INTO imports (id, name, status, rows, added, started_at) VALUES (1, 'all.csv', 'done', 1, 1, :then)"
HISTORY = """
INSERT INTO field_history (platform, state, county, recent, pages, counts)
SELECT DISTINCT platform, state, county, '[7, 7, 3, 7, 7, 3, 7, 7, 7, 7, 7, 7, 3, 7, 7, 7, 7, 7, 7, 7]', 900,
    '{"parcel_id": 900, "owner_name": 890, "owner_address": 700}' FROM tasks
"""


def fill(root: Path, rows: int) -> None:
    folder = open_store(root)
    close()
    began = time.monotonic()
    with sqlite3.connect(folder.database) as connection:
        connection.execute("PRAGMA synchronous = off")
        connection.execute("PRAGMA foreign_keys = off")
        values = {"rows": rows, "now": time.time_ns() // 1_000_000, "then": "2026-01-01T00:00:00.000Z"}
        for sql in (IMPORT, TASKS, OUTBOX, RESULTS, *ROLLUPS, HISTORY):
            connection.execute(sql, values if ":" in sql.replace("%H:%M:%S", "") else {})
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = folder.database.stat().st_size / 1e6
    print(f"{rows:,} tasks and outbox rows made in {time.monotonic() - began:.0f} s ({size:,.0f} MB)")


def time_lists(root: Path) -> bool:
    open_store(root)
    lists = {
        "tasks": lambda: list_tasks(TaskFilter()),
        "tasks, three filters": lambda: list_tasks(TaskFilter(status="failed", county="County 7", platform="tyler")),
        "tasks, text": lambda: list_tasks(TaskFilter(text="nothing-like-this")),
        "tasks, in the middle": lambda: list_tasks(TaskFilter(status="pending"), 500_000),
        "results": lambda: list_results(TaskFilter()),
        "results, text": lambda: list_results(TaskFilter(text="nothing-like-this")),
        "outbox": lambda: list_rows({}),
        "outbox, parked": lambda: list_rows({"state": "parked"}, TOP),
        "outbox, one error": lambda: list_rows({"state": "parked", "fingerprint": "f3"}),
        "outbox, discarded": lambda: list_rows({"state": "discarded"}),
    }
    print("\nlist queries, ms (median and worst of 20; the bar is 50):")
    is_well = True
    for name, query in lists.items():
        times = []
        for _ in range(20):
            began = time.perf_counter()
            query()
            times.append(1000 * (time.perf_counter() - began))
        is_well &= statistics.median(times) < 50
        print(f"  {statistics.median(times):7.1f} {max(times):7.1f}  {name}")
    close()
    return is_well


async def time_views(process: psutil.Process, token: str) -> bool:
    print("\nviews at the server, ms (first, median of 10; the bar is 200, for suggestions 50):")
    is_well = True
    known = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{PORT}", headers=known) as session:
        for path in (*VIEWS, *SUGGESTIONS):
            times = [await _timed(session, path) for _ in range(11)]
            middle = statistics.median(times[1:])
            is_well &= middle < (50 if path in SUGGESTIONS else 200)
            print(f"  {times[0]:7.1f} {middle:7.1f}  {path}")
        for listeners in (1, 10):
            share = await _idle_stream(session, process, listeners)
            is_well &= share < 0.01
            print(f"  {share:.2%} of a core: {listeners} idle streams (the bar is 1 %)")
    return is_well


async def _timed(session: aiohttp.ClientSession, path: str) -> float:
    began = time.perf_counter()
    async with session.get(path) as reply:
        await reply.read()
        assert reply.status in {200, 503}, (path, reply.status)
    return 1000 * (time.perf_counter() - began)


async def _idle_stream(session: aiohttp.ClientSession, process: psutil.Process, listeners: int) -> float:
    streams = [await session.get("/events") for _ in range(listeners)]
    await asyncio.sleep(3)
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    await asyncio.sleep(20)
    share = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began)
    for stream in streams:
        stream.close()
    return share


def _wait_for_server() -> None:
    for _ in range(300):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=1).close()
            return
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "--fill-only", action="store_true", help="Only make the database (with --keep), do not measure."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lienworker-bench-web-") as folder:
        root = (options.keep or Path(folder) / "data").absolute()
        if not (root / "lienworker.db").exists():
            fill(root, options.rows)
        if options.fill_only:
            return
        is_well = time_lists(root)
        command = [sys.executable, "-m", "lienworker", "web", "--port", str(PORT)]
        server = subprocess.Popen(command, env={**os.environ, "LIENWORKER_DATA_DIR": str(root)})
        try:
            _wait_for_server()
            token, _ = DataFolder(root).web_token()
            is_well &= asyncio.run(time_views(psutil.Process(server.pid), token))
        finally:
            server.terminate()
            server.wait()
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
