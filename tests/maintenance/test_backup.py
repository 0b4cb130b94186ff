"""Backup and restore: whole, checked, never over anything, and nothing in an archive can lead out of the folder."""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.restarts import Lives, Shares, lives
from lienworker.cli import cli, upkeep
from lienworker.data_folder import try_lock
from lienworker.db.database import all_rows, close, execute, one_row, open_store, write
from lienworker.db.usage import USE_LOCK
from lienworker.maintenance.backup import check_database, is_ours, verify
from lienworker.maintenance.retention import alone
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.store.raw_files import read_page
from lienworker.store.tasks import NewTask

ALL_WELL = Shares(0, 0, 0)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder with four results, two of them delivered, and a task that waits."""
    data = tmp_path / "data"
    with lives(data) as worker:
        worker.register(tasks(1, 2))
        finish(worker)
        worker.deliver(ALL_WELL)
        worker.register(tasks(3, 4))
        finish(worker)
        worker.register(tasks(5))
        worker.runtime.folder.worker_id()
    close()
    yield data
    close()


def tasks(*numbers: int) -> list[NewTask]:
    about = {"platform": "demo", "state": "XX", "county": "Juniper"}
    return [
        NewTask("gateway", f"http://a.example/{n}", task_id=f"t{n}", parcel_id=f"P-{n}", **about)  # type: ignore[arg-type]
        for n in numbers
    ]


def finish(worker: Lives) -> None:
    worker.fetch(ALL_WELL, 300)
    worker.scrape(ALL_WELL)


def call(root: Path, *arguments: str) -> Result:
    """The command in this process; errors are what `main` would print."""
    close()
    environment = {"LIENWORKER_DATA_DIR": str(root), "GATEWAY_URL": "http://gateway.invalid", "GATEWAY_TOKEN": "geheim"}
    done = CliRunner().invoke(cli, arguments, env=environment)
    close()
    return done


def backed_up(root: Path, name: str = "b.tar") -> Path:
    done = call(root, "backup", str(root.parent / name))
    assert done.exit_code == 0, done.output + repr(done.exception)
    return root.parent / name


def test_a_backup_can_be_restored_and_is_whole(root: Path, tmp_path: Path) -> None:
    archive = backed_up(root)
    new = tmp_path / "new"

    done = call(new, "restore", str(archive), "--moved")

    assert done.exit_code == 0, done.output + repr(done.exception)
    folder = open_store(new)
    assert {stat.S_IMODE(path.stat().st_mode) for path in new.rglob("*") if path.is_dir()} == {0o700}
    assert (new / "worker_id").read_text() == (root / "worker_id").read_text()
    pages = all_rows("SELECT path, sha256 FROM pages")
    assert len(pages) == 4
    assert all(read_page(new / path, sha256) for path, sha256 in pages)
    assert {path.name for path in folder.pending.iterdir()} == {"t3.json", "t4.json"}
    assert [side for side in balances() if not side.holds] == []
    assert wrong_tallies() == []
    with lives(new) as worker:
        finish(worker)
        worker.deliver(ALL_WELL)
        assert all_rows("SELECT DISTINCT synced FROM results") == [(1,)]


def test_what_was_to_be_sent_is_held_since_the_gateway_may_have_newer(root: Path, tmp_path: Path) -> None:
    done = call(tmp_path / "new", "restore", str(backed_up(root)))

    assert "4 uploads held" in done.output
    assert "outbox release --reason restored" in done.output
    with lives(tmp_path / "new") as worker:
        worker.deliver(ALL_WELL)
        assert one_row("SELECT count(*) FROM results WHERE synced = 0")[0] == 2
    assert call(tmp_path / "new", "outbox", "release", "--reason", "restored", "--yes").exit_code == 0
    with lives(tmp_path / "new") as worker:
        worker.deliver(ALL_WELL)
        assert one_row("SELECT count(*) FROM results WHERE synced = 0")[0] == 0


def test_rows_that_were_in_hand_wait_again_and_nobody_is_blamed(root: Path, tmp_path: Path) -> None:
    open_store(root)
    with write("test"):
        execute("INSERT INTO workers VALUES ('gone', 'worker', 1, 4, 9, '2026', '2026')")
        execute(
            "UPDATE outbox SET state = 'leased', lease_token = 'gone.1' WHERE topic = 'fetch' AND state = 'waiting'"
        )
    archive = backed_up(root)

    call(tmp_path / "new", "restore", str(archive))

    open_store(tmp_path / "new")
    assert all_rows("SELECT state, attempts, alone FROM outbox WHERE task_id = 't5'") == [("waiting", 0, 0)]
    assert all_rows("SELECT * FROM workers") == []


def test_a_backup_made_while_others_write_is_of_one_moment(root: Path) -> None:
    done = threading.Event()

    def keep_writing() -> None:
        n = 0
        open_store(root)
        while not done.is_set():
            n += 1
            with write("other"):
                execute("INSERT INTO audit (at, who, action, what, n) VALUES ('2026', 'x', 'y', 'z', ?)", (n,))
                execute("INSERT OR REPLACE INTO facts VALUES ('n', ?, '2026')", (str(n),))
        close()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        # The program itself: the connection of this process is the writer's.
        command = [sys.executable, "-m", "lienworker", "backup", str(root.parent / "b.tar")]
        made = subprocess.run(
            command, env={**os.environ, "LIENWORKER_DATA_DIR": str(root)}, capture_output=True, text=True, timeout=120
        )
    finally:
        done.set()
        writer.join()

    assert made.returncode == 0, made.stderr
    with tarfile.open(root.parent / "b.tar") as archive:
        archive.extract("lienworker.db", root.parent / "out", filter="data")
    check_database(root.parent / "out" / "lienworker.db")
    with sqlite3.connect(root.parent / "out" / "lienworker.db") as copy:
        assert copy.execute("SELECT max(n) = (SELECT value FROM facts WHERE name = 'n') FROM audit").fetchone() == (1,)
    copy.close()


def test_a_backup_never_overwrites_and_leaves_nothing_behind(root: Path) -> None:
    archive = backed_up(root)
    before = archive.read_bytes()

    done = call(root, "backup", str(archive))

    assert done.exit_code != 0
    assert "exists already" in str(done.exception)
    assert archive.read_bytes() == before
    assert [path.name for path in root.parent.iterdir() if path.name.startswith(".")] == []
    assert archive.stat().st_mode & 0o777 == 0o600


def test_a_backup_has_no_secrets_and_no_redis(root: Path) -> None:
    (root / "redis" / "dump.rdb").write_text("tokens")
    (root / "logs" / "run.log").write_text("words")
    (root / "web_token").write_text("visitors-secret")

    archive = backed_up(root)

    with tarfile.open(archive) as opened:
        names = opened.getnames()
    assert not [name for name in names if name.split("/")[0] in {"redis", "logs", "holders", "pending", "web_token"}]
    assert b"geheim" not in archive.read_bytes()
    assert b"visitors-secret" not in archive.read_bytes()


def test_the_sums_can_be_checked_with_common_tools(root: Path, tmp_path: Path) -> None:
    archive = backed_up(root)
    place = tmp_path / "by_hand"
    place.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(place)], check=True)
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=place, check=True)


def test_a_compressed_backup_works_as_well(root: Path, tmp_path: Path) -> None:
    archive = backed_up(root, "b.tar.gz")
    assert archive.read_bytes()[:2] == b"\x1f\x8b"
    assert call(tmp_path / "new", "restore", str(archive)).exit_code == 0


def test_a_missing_raw_page_is_said(root: Path) -> None:
    next(path for path in (root / "raw").rglob("*.gz")).unlink()
    done = call(root, "backup", str(root.parent / "b.tar"))
    assert done.exit_code == 1
    assert "1 raw page missing" in done.output


def test_a_backup_waits_for_a_purge_but_not_for_ever(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_PATIENCE", 0.3)
    folder = open_store(root)
    with alone(folder):
        done = call(root, "backup", str(root.parent / "b.tar"))
    assert "wait until it is done" in str(done.exception)
    assert not (root.parent / "b.tar").exists()


def test_a_folder_with_something_in_it_is_left_alone_unless_forced(root: Path) -> None:
    archive = backed_up(root)

    done = call(root, "restore", str(archive))
    assert "is not empty" in str(done.exception)

    forced = call(root, "restore", str(archive), "--force")
    assert forced.exit_code == 0, repr(forced.exception)
    (old,) = root.glob("before-restore-*")
    assert (old / "lienworker.db").is_file()
    assert len(list((old / "raw").rglob("*.gz"))) == 4
    assert len(list((root / "raw").rglob("*.gz"))) == 4
    assert not list(root.glob(".restore-*"))


def test_a_restore_is_refused_while_another_process_has_the_database_open(root: Path) -> None:
    archive = backed_up(root)
    held = try_lock(root / USE_LOCK, shared=True)  # as every process does that opens a store
    try:
        done = call(root, "restore", str(archive), "--force")
    finally:
        assert held
        held.close()
    assert "stop the stack" in str(done.exception)
    assert not list(root.glob("before-restore-*"))


def rewritten(archive: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None]) -> Path:
    target = archive.with_name("bad.tar")
    with tarfile.open(archive) as source, tarfile.open(target, "w") as out:
        for member in source:
            content = source.extractfile(member)
            assert content is not None
            changed = change(member, content.read())
            if changed:
                changed[0].size = len(changed[1])
                out.addfile(changed[0], io.BytesIO(changed[1]))
    return target


def flip(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    return member, content[:-1] + b"?" if member.name.startswith("raw/") else content


def drop(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes] | None:
    return None if member.name.startswith("raw/") else (member, content)


def lead_out(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if member.name.startswith("raw/"):
        member.name = "raw/../../../evil"
    return member, content


def link(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if member.name.startswith("raw/"):
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        return member, b""
    return member, content


def newer(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes] | None:
    if member.name == "SHA256SUMS":
        return member, content + hashlib.sha256(b"").hexdigest().encode() + b"  raw/none\n"
    return member, content


def content_of(folder: Path) -> list[Path]:
    """All but the locks of whoever has been there."""
    return [path for path in folder.iterdir() if path.suffix != ".lock"]


@pytest.mark.parametrize("harm", [flip, drop, lead_out, link, newer])
def test_an_archive_that_is_damaged_or_hostile_changes_nothing(
    root: Path, tmp_path: Path, harm: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None]
) -> None:
    bad = rewritten(backed_up(root), harm)
    new = tmp_path / "deep" / "down" / "new"

    done = call(new, "restore", str(bad))

    assert done.exit_code != 0
    assert "bad.tar" in str(done.exception)
    assert not new.exists() or content_of(new) == []
    assert not list(tmp_path.rglob("evil"))


def test_half_an_archive_is_refused(root: Path, tmp_path: Path) -> None:
    archive = backed_up(root)
    archive.write_bytes(archive.read_bytes()[:-20_000])
    done = call(tmp_path / "new", "restore", str(archive))
    assert done.exit_code != 0
    assert content_of(tmp_path / "new") == []


def test_a_text_file_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_text("no")
    done = call(tmp_path / "new", "restore", str(tmp_path / "b.tar"))
    assert "cannot be read as a backup" in str(done.exception)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "raw/../x", "raw//x", "raw/./x", "raw", "x", "..", "raw/a\0b", "logs/x"]
)
def test_names_that_no_backup_has(name: str) -> None:
    assert not is_ours(name)


def test_verify_counts_what_is_there(root: Path) -> None:
    assert verify(backed_up(root)) == 1 + 1 + 1 + 4
