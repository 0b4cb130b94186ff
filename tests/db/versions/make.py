"""Makes the dumps beside it: a small database of each schema version, filled with rows as that version wrote them.

They are kept, not made anew: a dump stands for a file that is out there. Run it after a new migration was released:
`python -m tests.db.versions.make`. A dump that is there already is left as it is.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lienworker.db.migrations import _statements, known_migrations

HERE = Path(__file__).parent
_TASK = (
    "INSERT INTO tasks (task_id, source, platform, state, county, parcel_id, url, status, reason, created_at,"
    " received_at, updated_at, completed_at) VALUES (?, ?, 'demo', 'XX', 'Juniper', ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ROW = (
    "INSERT INTO outbox (topic, task_id, generation, host, queue, priority, state, due_at, created_at, reason,"
    " finished_at) VALUES (?, ?, 1, ?, 'default', 3, ?, ?, 1760000000000, ?, ?)"
)
_THEN = "2026-10-09T08:53:20.000Z"
BLOCKED = 9_000_000_000_000_000


def fill(connection: sqlite3.Connection) -> None:
    """A task in each state, with the rows that belong to it."""
    task, row = _TASK, _ROW
    for name, status, reason in (
        ("waits", "pending", None), ("leased", "processing", None), ("done", "completed", None),
        ("failed", "failed", "http_404"), ("read", "pending", None),
    ):  # fmt: skip
        ended = _THEN if status in {"completed", "failed"} else None
        url = f"http://127.0.0.1:1/parcel/{name}"
        connection.execute(task, (name, "cli", f"P-{name}", url, status, reason, _THEN, _THEN, _THEN, ended))
    host = "127.0.0.1:1"
    connection.execute("INSERT INTO hosts (host) VALUES (?)", (host,))
    for values in (
        ("fetch", "waits", host, "waiting", 0, None, None), ("fetch", "leased", host, "leased", 0, None, None),
        ("fetch", "done", host, "delivered", 0, None, 1760000001000),
        ("scrape", "done", "", "delivered", 0, None, 1760000002000),
        ("upload_raw", "done", "", "held", 0, "standalone", None),
        ("upload_result", "done", "", "held", BLOCKED, "standalone", None),
        ("fetch", "failed", host, "delivered", 0, "http_404", 1760000001000),
        ("fetch", "read", host, "delivered", 0, None, 1760000001000), ("scrape", "read", "", "waiting", 0, None, None),
    ):  # fmt: skip
        connection.execute(row, values)
    connection.execute("UPDATE outbox SET lease_token = 'gone.1', lease_until = 1 WHERE state = 'leased'")
    connection.execute("INSERT INTO counters SELECT 'added', topic, count(*) FROM outbox GROUP BY 2")
    for name in ("done", "read"):
        connection.execute(
            "INSERT INTO pages (task_id, generation, path, sha256, size, url, status, content_type, fetched_at,"
            " fetch_ms) VALUES (?, 1, ?, ?, 10, ?, 200, 'text/html', ?, 5)",
            (name, f"raw/{name}.html.gz", "0" * 64, f"http://127.0.0.1:1/parcel/{name}", _THEN),
        )
    connection.execute(
        "INSERT INTO results (task_id, generation, parcel_id, platform, state, county, data, json_path, html_path,"
        " raw_sha256, fetched_at, parser_version, scraped_at, parse_duration_ms) VALUES ('done', 1, 'P-done', 'demo',"
        " 'XX', 'Juniper', '{\"owner_name\": \"DOE\"}', 'pending/done.json', 'raw/done.html.gz', ?, ?, 'demo/1', ?, 3)",
        ("0" * 64, _THEN, _THEN),
    )
    connection.execute("INSERT INTO audit (at, who, action, what, n) VALUES (?, 'ann', 'retry', 'all', 1)", (_THEN,))


def make(version: int) -> str:
    connection = sqlite3.connect(":memory:")
    for migration in known_migrations():
        if migration.version <= version:
            for statement in _statements(migration.sql):
                connection.execute(statement)
            values = (migration.version, migration.name, _THEN)
            connection.execute("INSERT INTO schema_versions (version, name, applied_at) VALUES (?, ?, ?)", values)
    fill(connection)
    connection.commit()
    return "\n".join(connection.iterdump()) + "\n"


if __name__ == "__main__":
    for known in known_migrations():
        path = HERE / f"{known.version:04d}.sql"
        if not path.exists():
            path.write_text(make(known.version), encoding="utf-8")
