"""Storage that takes no files while bytes are free: the sites are left alone until it does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import close, open_store, write
from lienworker.errors import RefusedError
from lienworker.maintenance.disk_limits import free_files, room_in
from lienworker.outbox import storage_watch
from lienworker.outbox.claims import Rules, claim
from lienworker.outbox.pauses import pauses, set_pause_by_hand
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.storage_watch import stop_fetching, watch_storage
from lienworker.settings import Settings
from lienworker.store.damage import try_storage
from lienworker.store.raw_files import PageKey, put_in_place, write_aside
from lienworker.store.tasks import NewTask
from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.node import Node, repeats, wait_until, write_list

_PARCELS = 150
#: Two processes with two pumps each, and the requests that a host allows at a time.
_IN_THE_AIR = 32


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[DataFolder]:
    yield open_store(tmp_path / "data")
    close()


@contextlib.contextmanager
def few_inodes(place: Path, inodes: int) -> Iterator[None]:
    """A disk with room for bytes and not for files."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size=4g,nr_inodes={inodes}", "tmpfs", str(place)]
    if subprocess.run(["mount", *options], capture_output=True).returncode:
        words = "NOT TESTED: a disk without inodes needs the right to mount a tmpfs, and we have not got it here"
        pytest.fail(words) if os.environ.get("CI") == "true" else pytest.skip(words)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True)


@contextlib.contextmanager
def running(node: Node, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        command = [sys.executable, "-m", "lienworker", "up"]
        process = subprocess.Popen(command, env=node.environment(), cwd=log.parent, stdout=out, stderr=out)
    try:
        wait_until(lambda: node.is_up(), seconds=90, what="the stack")
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def _is_paused(node: Node) -> bool:
    return bool(node.sql("SELECT 1 FROM pauses WHERE lane = 'fetch' AND cause = 'storage'"))


def _nothing_moves(site: DemoSite, seconds: float) -> None:
    """The site is left alone for so long, once all has come in that was in the air."""

    def is_quiet() -> bool:
        before = len(site.log)
        time.sleep(seconds)
        return len(site.log) == before

    wait_until(is_quiet, what="the site to be left alone")


def _story(node: Node, site: DemoSite, tmp_path: Path, take_away: contextlib.AbstractContextManager[None]) -> str:
    """Work begins, storage stops taking files, everybody is told, storage comes back, work ends; gives the log."""
    log = tmp_path / "up.log"
    with running(node, log):
        with take_away:
            assert node.cli("import", write_list(tmp_path / "parcels.jsonl", site.parcels(_PARCELS))).returncode == 0
            wait_until(lambda: _is_paused(node), seconds=60, what="the pause")
            _nothing_moves(site, 4)
            status, doctor = node.cli("status"), node.cli("doctor")
            assert "pages cannot be stored under" in status.stdout, status.stdout
            assert doctor.returncode == 1
            assert "BAD  storage" in doctor.stdout, doctor.stdout
            assert node.sql("SELECT count(*) FROM attempts") == [(0,)], "no row has lost an attempt"
            assert node.sql("SELECT count(*) FROM hosts WHERE cooling_until > 0 OR failed > 0") == [(0,)]
        wait_until(lambda: node.statuses() == {"completed": _PARCELS}, seconds=120, what="work to resume by itself")
    assert repeats(site) <= _IN_THE_AIR, "only what was in the air is asked for twice"
    node.doctor()
    return log.read_text()


@pytest.mark.slow
def test_a_folder_that_takes_no_pages_stops_fetching_until_it_does(tmp_path: Path) -> None:
    """Needs no rights: a file stands where a folder is to be."""
    node = Node(tmp_path / "data", LIENWORKER_HOST_CONCURRENCY="8")
    DataFolder(node.data).create()

    @contextlib.contextmanager
    def in_the_way() -> Iterator[None]:
        (node.data / "raw" / "demo").write_text("in the way")
        yield
        (node.data / "raw" / "demo").unlink()

    with demo_site(size=4_000) as site:
        log = _story(node, site, tmp_path, in_the_way())
    assert log.count("fetch is paused: pages cannot be stored") == 1, "it is said once"
    assert "fetch resumes" in log


@pytest.mark.slow
def test_a_linked_raw_folder_without_inodes_stops_fetching_until_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`raw/` lies on another disk, as it may; there are bytes, and no inodes."""
    disk = tmp_path / "disk"
    node = Node(tmp_path / "data", LIENWORKER_HOST_CONCURRENCY="8")
    with few_inodes(disk, 8_000):
        folder = DataFolder(node.data)
        folder.root.mkdir(mode=0o700)
        folder.raw.symlink_to(disk)
        folder.create()
        ballast = disk / ".ballast"
        ballast.mkdir()

        @contextlib.contextmanager
        def no_inodes() -> Iterator[None]:
            (disk / "demo" / "XX" / "Juniper").mkdir(parents=True)
            number = 0
            with contextlib.suppress(OSError):
                while True:
                    (ballast / str(number)).touch()
                    number += 1
            yield
            for path in ballast.iterdir():
                path.unlink()

        with demo_site(size=4_000) as site:
            log = tmp_path / "up.log"
            with running(node, log):
                with no_inodes():
                    file = write_list(tmp_path / "parcels.jsonl", site.parcels(20))
                    refused = node.cli("import", file)
                    assert refused.returncode == 2
                    assert "more files can be created" in refused.stderr
                    wait_until(lambda: node.sql("SELECT 1 FROM pauses WHERE lane = 'fetch'"), seconds=60)
                    assert site.log == [], "it is known before the first page is asked for"
                    assert "more files can be created" in node.cli("status").stdout
                wait_until(lambda: not node.sql("SELECT 1 FROM pauses WHERE lane = 'intake'"), seconds=60)
                assert node.cli("import", file).returncode == 0
                wait_until(lambda: node.statuses() == {"completed": 20}, seconds=60)
            assert repeats(site) == 0
            for path in ballast.iterdir():
                path.unlink()
            ballast.rmdir()
            node.doctor()


def test_pages_on_a_disk_without_inodes_are_refused_and_taken_when_there_are_some(tmp_path: Path) -> None:
    with few_inodes(tmp_path / "disk", 40):
        folder = open_store(tmp_path / "disk" / "data")
        try:
            ballast = tmp_path / "disk" / "ballast"
            ballast.mkdir()
            with contextlib.suppress(OSError):
                for number in range(100):
                    (ballast / str(number)).touch()
            assert free_files(folder.raw) == 0
            refused = try_storage(folder)
            assert refused is not None
            assert "no more files can be created" in storage_watch.refusal_message(folder, refused)
            with pytest.raises(RefusedError):
                write_aside(folder, PageKey("demo", "XX", "Juniper", "1", "t"), b"page", "text/html")
            stop_fetching(folder, refused)
            (ballast / "0").unlink()
            (ballast / "1").unlink()
            assert try_storage(folder) is None
        finally:
            close()


_LARGE_FILE = """
import os, resource, signal, sys
from pathlib import Path
from lienworker.errors import RefusedError
from lienworker.data_folder import DataFolder
from lienworker.store.raw_files import PageKey, write_aside
from lienworker.store.damage import try_storage

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = DataFolder(Path(sys.argv[1])).create()
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
import os
try:
    write_aside(folder, PageKey("demo", "XX", "Juniper", "1", "t"), os.urandom(10_000), "text/html")
except RefusedError as problem:
    assert problem.size > 9_000 and problem.place == "raw/demo/XX/Juniper", problem
    assert try_storage(folder, "raw", 1) is None, "a small file would be taken"
    assert try_storage(folder, problem.place, problem.size) is not None, "one like the page is not"
    assert list(folder.aside.iterdir()) == [], "nothing is left over"
    print("refused")
"""


def test_storage_is_tried_with_a_file_like_the_one_that_was_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LARGE_FILE, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("refused", "")


def test_a_page_that_cannot_get_its_name_leaves_nothing_aside(folder: DataFolder) -> None:
    page = write_aside(folder, PageKey("demo", "XX", "Juniper", "1", "t"), b"page", "text/html")
    page.path.mkdir()  # a folder cannot be replaced by a file
    (page.path / "x").touch()
    with pytest.raises(RefusedError) as caught:
        put_in_place([page])
    assert caught.value.place == "raw/demo/XX/Juniper"
    assert list(folder.aside.iterdir()) == []


# The pause


def _refusal(place: str = "raw/demo") -> RefusedError:
    return RefusedError(28, "No space left on device", place, 10)


def _claimable() -> int:
    with write("test"):
        register_in_transaction([NewTask("cli", f"http://a.example/{n}") for n in range(3)])
    return len(claim("fetch", 10, "me.1", Rules(0.0, 10)))


def test_a_refusal_stops_all_claims_and_nobody_but_the_probe_ends_that(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000_000_000]
    monkeypatch.setattr(storage_watch, "now_ms", lambda: now[0])
    (folder.raw / "demo").write_text("in the way")
    stop_fetching(folder, _refusal())
    assert _claimable() == 0
    set_pause_by_hand(["fetch"], paused=False)
    assert [cause for _, cause, _, _ in pauses()] == ["storage"]

    (folder.raw / "demo").unlink()
    watch_storage(folder)
    assert len(pauses()) == 1, "its time has not come"
    now[0] += 10_000
    watch_storage(folder)
    assert pauses() == []
    assert _claimable() == 3
    assert list((folder.raw / "demo").iterdir()) == [], "the probe is gone"


def test_probes_come_less_often_each_time_also_where_a_probe_is_wrong(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, probes = [1_000_000_000_000], []
    monkeypatch.setattr(storage_watch, "now_ms", lambda: now[0])
    monkeypatch.setattr(storage_watch, "try_storage", lambda *about: probes.append(now[0]))  # which says: all is well
    for _ in range(2_000):
        stop_fetching(folder, _refusal())
        watch_storage(folder)
        now[0] += 1_000
    waits = [later - earlier for earlier, later in pairwise(probes)]
    assert len(probes) < 25  # it would be 400 at a steady pace
    assert waits == sorted(waits)


def test_a_clock_that_was_set_back_does_not_put_off_the_probe(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_fetching(folder, _refusal())
    monkeypatch.setattr(storage_watch, "now_ms", lambda: 1_000_000_000_000)
    watch_storage(folder)
    assert pauses() == []


def test_a_disk_with_few_inodes_stops_lanes_before_it_has_none(folder: DataFolder) -> None:
    settings = Settings.from_mapping({"LIENWORKER_DATA_DIR": str(folder.root)})
    room = room_in(folder, settings)
    assert room.shortage("fetch", is_paused=False) is None
    for files, lanes in ((1_500, ["intake"]), (500, ["intake", "fetch"])):
        tight = type(room)(room.free_mb, room.data_mb, settings, files)
        assert [lane for lane in ("intake", "fetch") if tight.shortage(lane, is_paused=False)] == lanes
        assert any("more files" in words for words in tight.warnings())


def test_somebody_who_scrapes_one_page_by_hand_is_told_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path / "data")
    DataFolder(node.data).create()
    (node.data / "raw" / "generic").write_text("in the way")
    with demo_site(size=4_000) as site:
        done = node.cli("scrape", site.parcels(1)[0]["url"])
        assert done.returncode == 3, done.stdout + done.stderr
        assert "cannot be stored" in done.stderr
        assert site.hits[next(path for path, _ in site.log if path.startswith("/parcel/"))] == 1
