"""A disk that is full to the last byte, under a stack at work: said in words, nothing damaged, got over by itself."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chaos.node import fill_disk, small_disk
from chaos.witness import WatchedCounty, Witness
from lienworker.testing.serving import serving
from tests.harness.node import Node, wait_until, write_list

pytestmark = pytest.mark.slow

_PARCELS = 300


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    with small_disk(place, 64) as is_mounted:
        if not is_mounted:
            pytest.skip("NOT TESTED: a full disk needs the right to mount a tmpfs, and we have not got it here")
        yield place


@pytest.fixture
def county() -> Iterator[WatchedCounty]:
    site = WatchedCounty(latency=0.05, size=8_000)
    with serving(site):
        yield site


def words_of(node: Node, command: str) -> str:
    done = node.cli(command)
    return done.stdout + done.stderr


def test_a_full_disk_is_said_in_words_damages_nothing_and_is_got_over(
    disk: Path, county: WatchedCounty, tmp_path: Path
) -> None:
    node = Node(
        disk / "data",
        LIENWORKER_DISK_WARN_MB="30",
        LIENWORKER_DISK_STOP_INTAKE_MB="20",
        LIENWORKER_DISK_STOP_FETCH_MB="10",
        LIENWORKER_HOST_CONCURRENCY="4",
    )
    county.witness = witness = Witness(node.data)
    log = tmp_path / "up.log"  # a pipe that nobody reads would stop whoever writes to it
    with log.open("wb") as out:
        command = [sys.executable, "-m", "lienworker", "up"]
        process = subprocess.Popen(command, env=node.environment(), cwd=tmp_path, stdout=out, stderr=out)
    try:
        wait_until(lambda: node.is_up(), what="the stack")
        file = write_list(tmp_path / "parcels.jsonl", county.parcels(_PARCELS))
        assert node.cli("import", file).returncode == 0
        wait_until(lambda: node.statuses().get("completed", 0) > 20, what="work to begin")

        ballast = fill_disk(disk)
        done_before = settle(node)
        assert done_before < _PARCELS, "too quick for this machine: make the county slower"

        # The operator is told, whichever way he looks.
        doctor = node.cli("doctor")
        assert doctor.returncode == 1, doctor.stdout + doctor.stderr
        assert "BAD  disk: only 0 MB are free on the disk: make room" in doctor.stdout
        assert "only 0 mb are free on the disk" in words_of(node, "status").lower()
        refused = node.cli("import", file)
        assert refused.returncode == 2
        assert "Make room first" in refused.stderr
        assert process.poll() is None, "the stack stays"

        ballast.unlink()
        wait_until(lambda: node.statuses() == {"completed": _PARCELS}, seconds=100, what="work to go on by itself")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    output = log.read_text()
    assert "database or disk is full" in output, "the log says it, too"
    ours = [line for line in output.splitlines() if '"logger": "lienworker' in line]
    assert [line for line in ours if "Traceback" in line] == []
    assert witness.sightings.all == []
    node.doctor()
    with closing(sqlite3.connect(node.data / "lienworker.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert list((node.data / "raw").rglob("*.part")) == []


def settle(node: Node) -> int:
    """Waits until nothing more is completed for a while; gives how many are."""
    import time

    before, since = -1, time.monotonic()
    while time.monotonic() - since < 4:
        now = node.statuses().get("completed", 0)
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.2)
    return before


def test_the_small_disk_is_gone_afterwards(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8) as is_mounted:
        if not is_mounted:
            pytest.skip("NOT TESTED: no tmpfs can be mounted here")
    assert str(tmp_path) not in subprocess.run(["mount"], capture_output=True, text=True).stdout
