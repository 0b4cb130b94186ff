"""Raw pages on disk: whole or not there, checked when they are read."""

from __future__ import annotations

import gzip
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lienworker.data_folder import DataFolder
from lienworker.errors import ShortageError, StoreError
from lienworker.store.raw_files import PageKey, put_in_place, read_page, write_aside

_KEY = PageKey("demo", "FL", "Lee", "12-34", "p-1")
_BODY = b"<html>" + bytes(range(256)) * 40 + b"</html>"
_STORE_A_PAGE = """
import sys
from pathlib import Path
from lienworker.data_folder import DataFolder
from lienworker.store.raw_files import PageKey, put_in_place, write_aside
put_in_place([write_aside(DataFolder(Path(sys.argv[1])), PageKey("demo", "FL", "Lee", "12-34", "p-1"),
                          b"<html>" * 1000, "text/html")])
"""


def _store(folder: DataFolder, key: PageKey = _KEY, body: bytes = _BODY, kind: str = "text/html") -> Path:
    page = write_aside(folder, key, body, kind)
    put_in_place([page])
    return page.path


def _named_files(folder: DataFolder) -> list[Path]:
    return [path for path in folder.raw.rglob("*.gz") if path.is_file()]


def _leftovers(folder: DataFolder) -> list[Path]:
    return [path for path in folder.raw.rglob("*") if path.is_file() and not path.name.endswith(".gz")]


def test_a_page_lies_where_the_design_says_and_reads_back(folder: DataFolder) -> None:
    sha256 = hashlib.sha256(_BODY).hexdigest()

    path = _store(folder)

    assert path.relative_to(folder.root) == Path(f"raw/demo/FL/Lee/12-34.{sha256[:16]}.html.gz")
    assert gzip.decompress(path.read_bytes()) == _BODY
    assert read_page(path, sha256) == _BODY
    assert _leftovers(folder) == []


@pytest.mark.parametrize(
    ("kind", "ending"), [("application/json", ".json.gz"), ("text/csv", ".csv.gz"), ("text/html", ".html.gz")]
)
def test_the_ending_says_what_is_inside(folder: DataFolder, kind: str, ending: str) -> None:
    assert _store(folder, kind=kind).name.endswith(ending)


def test_two_versions_of_a_page_lie_side_by_side(folder: DataFolder) -> None:
    old, new = _store(folder, body=b"old"), _store(folder, body=b"new")

    assert read_page(old, hashlib.sha256(b"old").hexdigest()) == b"old"
    assert read_page(new, hashlib.sha256(b"new").hexdigest()) == b"new"


def test_parcels_that_differ_only_by_case_or_slash_do_not_share_a_file(folder: DataFolder) -> None:
    keys = [PageKey("demo", "FL", "Lee", parcel, "t") for parcel in ("1-a", "1-A", "1/A", "1_A", "../1-A")]
    paths = [_store(folder, key) for key in keys]

    assert len({str(path).casefold() for path in paths}) == len(keys)
    assert all(path.resolve().is_relative_to(folder.raw.resolve()) for path in paths)


def test_hostile_names_stay_inside_the_raw_folder(folder: DataFolder) -> None:
    for part in ("../../x", "/etc", "..", "\0", "n" * 300, "CON"):
        path = _store(folder, PageKey(part, part, part, part, part))
        assert path.resolve().is_relative_to(folder.raw.resolve())


def test_the_same_page_twice_is_one_file(folder: DataFolder) -> None:
    assert _store(folder) == _store(folder)
    assert len(_named_files(folder)) == 1
    assert _leftovers(folder) == []


@pytest.mark.parametrize(("point", "files"), [("raw_file.before_rename", 0), ("raw_file.after_rename", 1)])
def test_a_kill_never_leaves_half_a_file_under_its_name(folder: DataFolder, point: str, files: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _STORE_A_PAGE, str(folder.root)],
        env={**os.environ, "LIENWORKER_CRASH_AT": point},
        timeout=60,
    )

    assert ended.returncode == -signal.SIGKILL
    named = _named_files(folder)
    assert len(named) == files
    assert all(gzip.decompress(path.read_bytes()) == b"<html>" * 1000 for path in named)


def test_a_page_that_does_not_fit_on_the_disk_leaves_nothing_behind(folder: DataFolder) -> None:
    """A file size limit stands for the full disk: a rest that stays would keep it full."""

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    ended = subprocess.run(
        [sys.executable, "-B", "-c", _STORE_A_PAGE, str(folder.root)],
        preexec_fn=small_disk,
        capture_output=True,
        timeout=60,
    )

    assert ended.returncode == 1
    assert b"File too large" in ended.stderr
    assert _named_files(folder) == []
    assert _leftovers(folder) == []


def test_files_then_names_then_folders_are_made_durable(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = _watch_fsync(monkeypatch)

    path = _store(folder)

    assert synced[0].name.endswith(".part"), "the file, while it still lies aside"
    assert path.parent in synced[1:], "its folder, after the rename"


def test_folders_made_for_a_page_are_made_durable_too(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power loss may else take the new folder with the page in it, while the database names it."""
    synced = _watch_fsync(monkeypatch)

    path = _store(folder)

    assert {path.parents[1], path.parents[2], folder.raw} <= set(synced)


def _watch_fsync(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is really flushed, in order."""
    synced: list[Path] = []
    flush = os.fsync

    def watched(handle: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        flush(handle)

    monkeypatch.setattr(os, "fsync", watched)
    return synced


def test_a_missing_page_is_a_store_error_that_names_it(folder: DataFolder) -> None:
    with pytest.raises(StoreError, match=r"nowhere\.html\.gz cannot be read"):
        read_page(folder.raw / "nowhere.html.gz", "00")


def test_another_page_under_the_name_is_found_out(folder: DataFolder) -> None:
    path = _store(folder)
    path.write_bytes(gzip.compress(b"another page"))
    with pytest.raises(StoreError, match="its hash differs"):
        read_page(path, hashlib.sha256(_BODY).hexdigest())


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_page_is_a_store_error_or_still_the_page(data: st.DataObject) -> None:
    whole = gzip.compress(_BODY, 3, mtime=0)
    damaged = bytearray(whole)
    if data.draw(st.booleans(), label="cut"):
        del damaged[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    damaged += data.draw(st.binary(max_size=20), label="tail")
    with tempfile.NamedTemporaryFile() as file:
        file.write(damaged)
        file.flush()
        try:
            body = read_page(Path(file.name), hashlib.sha256(_BODY).hexdigest())
        except StoreError:
            return
    assert body == _BODY


def test_a_page_that_cannot_be_opened_for_want_of_files_is_not_damaged(folder: DataFolder) -> None:
    """It would be fetched again, though it is there."""
    path = _store(folder)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        with pytest.raises(ShortageError):
            read_page(path, hashlib.sha256(_BODY).hexdigest())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert read_page(path, hashlib.sha256(_BODY).hexdigest()) == _BODY


def test_a_large_page_that_does_not_pack_is_written_piece_by_piece(folder: DataFolder) -> None:
    body = os.urandom(16_000_000)
    tracemalloc.start()
    try:
        path = _store(folder, body=body)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8_000_000
    assert read_page(path, hashlib.sha256(body).hexdigest()) == body
