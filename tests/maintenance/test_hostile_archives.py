"""Backups from a stranger: nothing gets out of the folder, and no small file takes much memory, disk or time."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import close, execute, open_store, write
from lienworker.errors import StoreError
from lienworker.maintenance.backup import verify
from lienworker.maintenance.tar_reader import ArchiveError, tar_members
from lienworker.repair.quarantine import damaged_archives, lost_pages, put_into_quarantine
from lienworker.store.damage import failure_of
from lienworker.store.raw_files import is_raw_path, raw_place
from tests.harness.node import Node

MB = 1_000_000
#: A bare `lienworker` command takes about 80 MB.
MOST_MEMORY = 300 * MB


def entry(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **more: object) -> bytes:
    about = tarfile.TarInfo(name)
    about.size, about.type = len(content), kind
    for key, value in more.items():
        setattr(about, key, value)
    return about.tobuf(tarfile.USTAR_FORMAT) + content + b"\0" * (-len(content) % 512)


def pax(**headers: str) -> bytes:
    lines = b""
    for name, value in headers.items():
        body = f" {name.replace('_', '.')}={value}\n".encode()
        length = len(body) + 1
        while len(str(length)) + len(body) != length:
            length += 1
        lines += str(length).encode() + body
    return entry("./PaxHeaders/x", lines, tarfile.XHDTYPE)


def written(path: Path, *pieces: bytes) -> Path:
    path.write_bytes(b"".join(pieces) + b"\0" * 1024)
    return path


def packed(before: bytes, block: bytes, times: int) -> bytes:
    """A gzip file of a block many times over, which is packed only once; its end is missing, as nobody gets there."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + (packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)) * times


def header_of(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    about = tarfile.TarInfo(name)
    about.size, about.type = size, kind
    return about.tobuf(tarfile.GNU_FORMAT)


HOSTILE = {
    "a link": entry("raw/x", kind=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": entry("raw/x", kind=tarfile.LNKTYPE, linkname="/etc/passwd"),
    "a device": entry("raw/x", kind=tarfile.CHRTYPE),
    "a pipe": entry("raw/x", kind=tarfile.FIFOTYPE),
    "a folder": entry("raw/x", kind=tarfile.DIRTYPE),
    "an absolute name": entry("/etc/passwd", b"x"),
    "a name that leads out": entry("raw/../../x", b"x"),
    "a name that leads out by a header": pax(path="raw/../../x") + entry("raw/x", b"x"),
    "a name twice": entry("raw/x", b"1") + entry("raw/x", b"2"),
    "a name that is not ours": entry("web_token", b"x"),
    "an old sparse file": entry("raw/x", kind=tarfile.GNUTYPE_SPARSE),
    "a sparse file by a header": pax(GNU_sparse_major="1", GNU_sparse_minor="0", GNU_sparse_realsize="9" * 15)
    + entry("raw/x", b"1\n0\n0\n"),
    "a sparse map by a header": pax(GNU_sparse_map="0,9999999999999", GNU_sparse_size="9" * 13) + entry("raw/x", b"x"),
    "a size below zero": pax(size="-512") + entry("raw/x", b"x"),
    "a size that is no number": pax(size="many") + entry("raw/x", b"x"),
    "a size beyond the file": pax(size="9" * 18) + entry("raw/x", b"x"),
    "two headers in a row": pax(path="raw/a") + pax(path="raw/b") + entry("raw/x", b"x"),
    "a global header": entry("./g", b"13 path=raw/x\n", tarfile.XGLTYPE) + entry("raw/x", b"x"),
    "a long name of GNU": entry("././@LongLink", b"raw/x\0", tarfile.GNUTYPE_LONGNAME) + entry("raw/x", b"x"),
    "a large header": entry("./p", b"9 a=b\n" * 10_000, tarfile.XHDTYPE) + entry("raw/x", b"x"),
    "a header without its length": entry("./p", b"x" * 100, tarfile.XHDTYPE) + entry("raw/x", b"x"),
    "a header that counts nothing": entry("./p", b"0 a=b\n", tarfile.XHDTYPE) + entry("raw/x", b"x"),
    "a large backup.json": entry("backup.json", b" " * 2 * MB),
    "a large worker_id": entry("worker_id", b"x" * 10_000),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("packed", [False, True])
def test_what_no_backup_has_is_refused_in_words(tmp_path: Path, content: bytes, packed: bool) -> None:
    sums = entry("SHA256SUMS", b"")
    archive = written(tmp_path / "b.tar", content, sums)
    if packed:
        archive.write_bytes(gzip.compress(archive.read_bytes()))
    with pytest.raises(StoreError, match=r"b\.tar"):
        verify(archive)


@pytest.mark.parametrize("magic", [b"\xfd7zXZ\x00", b"BZh9"])
def test_other_ways_of_packing_are_not_tried(tmp_path: Path, magic: bytes) -> None:
    (tmp_path / "b.tar").write_bytes(magic + b"x" * 2000)
    with pytest.raises(StoreError, match="cannot be read"):
        verify(tmp_path / "b.tar")


def test_our_own_archives_are_read_as_tarfile_reads_them(tmp_path: Path) -> None:
    names = ["raw/x", "raw/" + "long/" * 40 + "x", "raw/\udcff.gz", "raw/Ünïcode", "raw/" + "y" * 250]
    for mode in ("w", "w:gz"):
        with tarfile.open(tmp_path / "a.tar", mode, format=tarfile.PAX_FORMAT) as out:
            for n, name in enumerate(names):
                about = tarfile.TarInfo(name)
                about.size, about.mtime = 511 + n, 1.5
                out.addfile(about, io.BytesIO(bytes([n]) * (511 + n)))
        found = [(name, content.read()) for name, content in tar_members(tmp_path / "a.tar")]
        assert found == [(name, bytes([n]) * (511 + n)) for n, name in enumerate(names)]


def test_a_member_that_nobody_reads_is_passed_over(tmp_path: Path) -> None:
    archive = written(tmp_path / "a.tar", entry("a", b"1" * 700), entry("b", b"2"))
    assert [name for name, _ in tar_members(archive)] == ["a", "b"]


@pytest.mark.parametrize("cut", [1, 511, 512, 600, 1200])
def test_an_archive_that_is_cut_off_is_damaged(tmp_path: Path, cut: int) -> None:
    (tmp_path / "a.tar").write_bytes((entry("a", b"1" * 600) + entry("b"))[:cut])
    with pytest.raises(ArchiveError, match="cut off"):
        [content.read() for _, content in tar_members(tmp_path / "a.tar")]


#: Each is some megabytes at most, and unpacks to gigabytes.
BOMBS = {
    "the list": (header_of("SHA256SUMS", 2000 * MB), bytes(MB)),
    "a header": (header_of("./p", 2000 * MB, tarfile.XHDTYPE), bytes(MB)),
    "a long name": (header_of("././@LongLink", 2000 * MB, tarfile.GNUTYPE_LONGNAME), bytes(MB)),
    "a page": (header_of("raw/x", 2000 * MB), bytes(MB)),
    "backup.json": (header_of("backup.json", 2000 * MB), bytes(MB)),
    "a list of many lines": (header_of("SHA256SUMS", 2000 * MB), (b"0" * 64 + b"  raw/x\n") * 13_700),
}


@pytest.fixture
def bomb(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        content = packed(*BOMBS[name], 2000)
        assert len(content) < 16 * MB
        (tmp_path / "bomb.tar.gz").write_bytes(content)
        return tmp_path / "bomb.tar.gz"

    return make


def run_measured(node: Node, *arguments: str) -> tuple[int, str, int]:
    """Exit code, what was said, and the most memory in bytes."""
    peak = node.data.with_suffix(".peak")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.memory", str(peak), *arguments],
        env=node.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.read()
    return process.wait(), said, 1024 * int(peak.read_text())


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_backup_takes_little_memory_and_disk(node: Node, bomb: Callable[[str], Path], name: str) -> None:
    code, said, memory = run_measured(node, "restore", str(bomb(name)))
    assert code == 3, said
    assert "Traceback" not in said
    assert memory < MOST_MEMORY
    left = list(node.data.iterdir()) if node.data.exists() else []
    assert [path for path in left if path.suffix != ".lock"] == []


def test_doctor_is_not_filled_by_what_an_archive_or_a_page_unpacks_to(node: Node, bomb: Callable[[str], Path]) -> None:
    node.cli("init")
    (node.data / "archive" / "pending-x.tar.gz").write_bytes(bomb("a page").read_bytes())
    page = node.data / "raw" / "x.html.gz"
    page.write_bytes(packed(b"", bytes(MB), 700))
    add_page(node.data, "raw/x.html.gz", "0" * 64)
    code, said, memory = run_measured(node, "doctor")
    assert code == 1
    assert "archives: 1 damaged" in said, said
    assert "1 raw pages are missing or damaged" in said
    assert memory < MOST_MEMORY


def add_page(root: Path, path: object, sha256: str) -> None:
    open_store(root)
    with write("test"):
        execute(
            "INSERT INTO tasks (task_id, source, url, queue, priority, status, generation, created_at, received_at,"
            " updated_at, target_json) VALUES ('t', 'cli', 'http://h/', 'default', 3, 'completed', 1, '2026', '2026',"
            " '2026', '{}')"
        )
        execute(
            "INSERT INTO pages (task_id, generation, path, sha256, size, url, status, content_type, fetched_at,"
            " fetch_ms) VALUES ('t', 1, ?, ?, 1, 'http://h/', 200, 'text/html', '2026', 1)",
            (path, sha256),
        )
    close()


OUTSIDE = [
    "../victim",
    "raw/../../victim",
    "/etc/passwd",
    "raw/./../../victim",
    "lienworker.db",
    "raw",
    "raw/",
    "",
    "pending/x",
    b"raw/x",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_stored_path_that_leads_out_is_none(tmp_path: Path, path: object) -> None:
    assert not is_raw_path(path)
    with pytest.raises(StoreError, match="does not lie in raw/"):
        raw_place(tmp_path, path)  # type: ignore[arg-type]
    assert failure_of(tmp_path, path, "0" * 64)  # type: ignore[arg-type]


def test_a_page_outside_is_missing_and_a_repair_moves_nothing(node: Node, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    add_page(node.data, "../victim", hashlib.sha256(b"other").hexdigest())
    folder = open_store(node.data)
    assert [(page.path, page.is_missing) for page in lost_pages(folder, None)] == [("../victim", True)]
    close()

    node.cli("doctor", "--repair", "--yes", "--deep")

    assert victim.read_bytes() == b"mine"
    assert not list(node.data.rglob("victim"))


def test_nothing_outside_goes_to_quarantine_whatever_calls_for_it(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data").create()
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    with pytest.raises(StoreError, match="left where it is"):
        put_into_quarantine(folder, folder.root / "raw" / ".." / ".." / "victim", "now")
    assert victim.exists()


def test_a_backup_takes_no_file_from_elsewhere(node: Node, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"a secret of mine")
    add_page(node.data, "../victim", "0" * 64)
    done = node.cli("backup", str(tmp_path / "b.tar"))
    assert "1 raw page missing" in done.stdout + done.stderr
    assert b"a secret of mine" not in (tmp_path / "b.tar").read_bytes()


def backup_with(paths: Iterable[object], node: Node, target: Path) -> Path:
    """A backup that is right in all but what its database says."""
    node.cli("init")
    copy = target.with_name("copy.db")
    with sqlite3.connect(node.data / "lienworker.db") as live, sqlite3.connect(copy) as out:
        live.backup(out)
        out.execute("PRAGMA journal_mode = delete")
        for path in paths:
            out.execute(
                "INSERT INTO tasks (task_id, source, url, queue, priority, status, generation, created_at, received_at,"
                " updated_at, target_json) VALUES ('t', 'cli', 'http://h/', 'default', 3, 'completed', 1, '2026',"
                " '2026', '2026', '{}')"
            )
            out.execute(
                "INSERT INTO pages (task_id, generation, path, sha256, size, url, status, content_type, fetched_at,"
                " fetch_ms) VALUES ('t', 1, ?, 'x', 1, 'http://h/', 200, 'text/html', '2026', 1)",
                (path,),
            )
        version = out.execute("SELECT max(version) FROM schema_versions").fetchone()[0]
    live.close()
    out.close()
    about = json.dumps({"format": 1, "schema_version": version, "made_at": "2026-01-02T03:04:05.678Z"}).encode()
    files = {"backup.json": about, "lienworker.db": copy.read_bytes()}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()
    return written(target, *(entry(name, content) for name, content in (*files.items(), ("SHA256SUMS", sums))))


@pytest.mark.parametrize("path", ["../victim", "/etc/passwd", b"raw/x"])
def test_a_backup_whose_database_names_files_elsewhere_is_refused(node: Node, tmp_path: Path, path: object) -> None:
    bad = backup_with([path], node, tmp_path / "bad.tar")
    done = node.cli("restore", str(bad), LIENWORKER_DATA_DIR=str(tmp_path / "new"))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "is not a lienworker backup: a page in it is at" in done.stderr
    good = backup_with([], node, tmp_path / "good.tar")
    done = node.cli("restore", str(good), LIENWORKER_DATA_DIR=str(tmp_path / "new"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("made_at", ["\x1b[2J", "", None, 5, {}, "2026-99-99T00:00:00Z"])
def test_a_backup_that_does_not_say_when_it_was_made_is_none(node: Node, tmp_path: Path, made_at: object) -> None:
    from lienworker.maintenance.restore import restore_files

    about = json.dumps({"format": 1, "schema_version": 1, "made_at": made_at}).encode()
    sums = f"{hashlib.sha256(about).hexdigest()}  backup.json\n".encode()
    bad = written(tmp_path / "bad.tar", entry("backup.json", about), entry("SHA256SUMS", sums))
    with pytest.raises(StoreError, match="does not say what it is"):
        restore_files(bad, tmp_path / "new", force=False)


def test_an_archive_of_results_is_still_told_from_a_damaged_one(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data").create()
    written(folder.archive / "good.tar", entry("t1.json", b'{"a": 1}'))
    written(folder.archive / "bad.tar", entry("t1.json", b'{"a": '))
    assert [(path.name, words) for path, words in damaged_archives(folder)] == [
        ("bad.tar", "t1.json in it is not a result")
    ]
