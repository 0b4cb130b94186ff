"""Storage that fails for a while ends no stack, and damage is believed after a second look only."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.storage import FailingDisk
from lienworker.data_folder import DataFolder
from lienworker.db.database import close, open_store
from lienworker.store import damage
from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, wait_until, write_list
from tests.web.monitor import monitor

pytestmark = pytest.mark.slow

_NOTE = "database disk image is malformed"


@contextmanager
def up(node: Node) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A stack, and the lines that it says."""
    process = node.start("up")
    lines: list[str] = []
    assert process.stdout
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or []), daemon=True)
    reader.start()
    try:
        wait_until(node.is_up, 60, "the stack")
        yield process, lines
    finally:
        process.terminate()
        process.wait(30)
        reader.join(10)
        node.kill_everything()


def break_a_page(data: Path) -> None:
    node = Node(data)
    ((page,),) = node.sql("SELECT rootpage FROM sqlite_master WHERE name = 'tasks'")
    with (data / "lienworker.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))


def test_a_report_of_damage_is_noted_only_if_a_second_look_agrees(tmp_path: Path) -> None:
    folder = open_store(tmp_path / "data")
    assert not damage.record_damage(folder, _NOTE)
    assert damage.known_damage(folder) is None
    close()
    break_a_page(folder.root)
    assert damage.record_damage(folder, _NOTE)
    assert damage.known_damage(folder) == _NOTE


@pytest.mark.parametrize("command", ["status", "doctor", "up"])
def test_a_note_of_damage_that_is_not_there_is_removed_and_said(node: Node, command: str) -> None:
    assert node.cli("init").returncode == 0
    note = DataFolder(node.data).damage_note
    note.write_text(_NOTE + "\n")
    if command == "up":
        with up(node) as (_, lines):
            assert not note.exists()
        said = "".join(lines)
    else:
        done = node.cli(command)
        assert done.returncode == 0, done.stdout + done.stderr
        said = done.stdout + done.stderr
    assert not note.exists()
    assert "is whole" in said


def test_a_note_of_damage_that_is_there_stays_and_is_told(node: Node) -> None:
    assert node.cli("init").returncode == 0
    break_a_page(node.data)
    DataFolder(node.data).damage_note.write_text(_NOTE + "\n")
    refused = node.cli("up")
    assert refused.returncode == 4, refused.stderr
    assert "doctor --repair" in refused.stderr
    doctor = node.cli("doctor")
    assert (doctor.returncode, f"BAD  damage note: {node.data / 'damaged'} says" in doctor.stdout) == (1, True)
    assert DataFolder(node.data).damage_note.exists()


def test_the_supervisor_survives_storage_that_cannot_be_read(node: Node, site: DemoSite, tmp_path: Path) -> None:
    """A folder where a file should be is an error of the operating system's own, at every look."""
    with up(node) as (process, lines):
        (node.data / "damaged").mkdir()
        wait_until(lambda: any("cannot be used for now" in line for line in lines), what="the supervisor to say it")
        (node.data / "damaged").rmdir()
        done = node.cli("import", write_list(tmp_path / "a.jsonl", site.parcels(3)))
        assert done.returncode == 0, done.stderr
        wait_until(lambda: node.statuses() == {"completed": 3}, 60, "three tasks")
        assert process.poll() is None
    assert sum("cannot be used for now" in line for line in lines) == 1, "once a minute is enough"


@pytest.fixture
def disk(node: Node, tmp_path: Path) -> FailingDisk:
    disk = FailingDisk(tmp_path, node.data)
    if disk.why_not:
        pytest.skip(f"NOT TESTED: {disk.why_not}")
    return disk


def test_a_stack_that_is_stopped_while_storage_fails_leaves_no_trace_in_the_log(node: Node, disk: FailingDisk) -> None:
    with up(Node(node.data, **disk.environment)) as (process, lines):
        key = disk.begin("eio_writes")
        process.terminate()
        process.wait(60)
        disk.end(key)
    assert process.returncode == 0
    assert not [line for line in lines if "Traceback" in line]
    with up(node):
        pass
    node.doctor()


@pytest.mark.parametrize("fault", ["eio", "read_only"])
def test_the_doctor_examines_storage_that_cannot_be_used(node: Node, disk: FailingDisk, fault: str) -> None:
    assert node.cli("init").returncode == 0
    disk.begin(fault)
    doctor = Node(node.data, **disk.environment).cli("doctor")
    assert (doctor.returncode, doctor.stderr) == (1, "")
    assert "BAD  database: " in doctor.stdout


@pytest.mark.parametrize("fault", ["eio", "read_only"])
def test_the_monitor_says_in_words_that_storage_cannot_be_used(node: Node, disk: FailingDisk, fault: str) -> None:
    with monitor(node, **disk.environment) as here:
        key = disk.begin(fault)
        for path in ("/", "/metrics", "/api/overview"):
            reply = here.ask(path)
            assert (reply.status, "The storage cannot be used" in reply.text) == (503, True), reply.text
            assert str(node.data) not in reply.text
        disk.end(key)
        assert here.ask("/api/overview").status == 200
    assert "Traceback" not in here.output
