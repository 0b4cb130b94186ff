"""A file that an earlier version wrote opens with this one, balances, and is worked on to the end."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, close, open_store
from lienworker.db.migrations import known_migrations, schema_version
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.repair.checks import unusable_rows
from lienworker.store.damage import integrity_problems
from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, wait_until

DUMPS = sorted((Path(__file__).parent / "versions").glob("*.sql"))


def old_folder(root: Path, dump: Path) -> DataFolder:
    folder = DataFolder(root).create()
    with contextlib.closing(sqlite3.connect(folder.database)) as connection:
        connection.executescript(dump.read_text(encoding="utf-8"))
    return folder


def test_every_version_has_its_dump() -> None:
    assert [path.stem for path in DUMPS] == [f"{item.version:04d}" for item in known_migrations()]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_an_old_file_opens_whole_and_balances(tmp_path: Path, dump: Path) -> None:
    old_folder(tmp_path, dump)
    folder = open_store(tmp_path)
    assert schema_version() == known_migrations()[-1].version
    assert integrity_problems(folder.database) == []
    assert unusable_rows() == 0
    assert [side for side in balances() if not side.holds] == []
    assert wrong_tallies() == []
    assert dict(all_rows("SELECT status, count(*) FROM tasks GROUP BY 1")) == {
        "pending": 2, "processing": 1, "completed": 1, "failed": 1,
    }  # fmt: skip
    assert all_rows("SELECT who, action FROM audit") == [("ann", "retry")]


@pytest.mark.slow
@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_an_old_file_is_worked_on_to_the_end(node: Node, site: DemoSite, tmp_path: Path, dump: Path) -> None:
    folder = old_folder(node.data, dump)
    listed = site.parcels(4)
    with contextlib.closing(sqlite3.connect(folder.database)) as connection:
        for name, row in zip(("waits", "leased", "failed", "read"), listed, strict=True):
            connection.execute("UPDATE tasks SET url = ? WHERE task_id = ?", (row["url"], name))
            host = row["url"].split("/")[2]
            connection.execute("UPDATE outbox SET host = ? WHERE task_id = ? AND topic = 'fetch'", (host, name))
            connection.execute("INSERT OR IGNORE INTO hosts (host) VALUES (?)", (host,))
        body = b"<html><body>not a parcel, and not a captcha either</body></html>"
        sha256 = hashlib.sha256(body).hexdigest()
        connection.execute("UPDATE pages SET sha256 = ?", (sha256,))
        connection.execute("UPDATE results SET raw_sha256 = ?", (sha256,))
        connection.commit()
    for name in ("done", "read"):
        (folder.raw / f"{name}.html.gz").write_bytes(gzip.compress(body))
    close()
    assert node.cli("tasks", "retry", "--all").returncode == 0
    done = node.cli("run", "-", stdin=json.dumps(site.parcels(1, start=50)[0]) + "\n")
    assert done.returncode == 0, done.stderr
    process = node.start("up")
    try:
        wait_until(lambda: not {"pending", "processing"} & set(node.statuses()), what="every task to end")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert node.statuses() == {"completed": 6}, "the page that was there already shows no parcel: it is fetched again"
    repaired = node.cli("doctor", "--repair", "--yes")
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr


def test_a_file_of_a_newer_version_is_refused_in_words_by_every_command(node: Node) -> None:
    folder = old_folder(node.data, DUMPS[-1])
    with contextlib.closing(sqlite3.connect(folder.database)) as connection:
        connection.execute("INSERT INTO schema_versions VALUES (9999, 'later', '2099-01-01')")
        connection.commit()
    for command in (["status"], ["doctor", "--repair", "--yes"], ["up"]):
        done = node.cli(*command)
        assert done.returncode == 3, (command, done.stdout, done.stderr)
        assert "schema version 9999" in done.stderr
        assert "Traceback" not in done.stderr
