"""Signs of life: what health checks ask, part by part."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder, is_stack_running, try_lock
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import execute, open_store, set_fact, write
from lienworker.outbox.leases import WorkerLease
from lienworker.settings import Settings
from lienworker.stack import signs
from tests.harness.node import Node
from tests.web.monitor import refused_port

SETTINGS = Settings()


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return open_store(tmp_path / "data")


def test_workers_are_well_while_one_of_them_beats(folder: DataFolder) -> None:
    assert signs.workers(SETTINGS, folder) == (False, "0 of 0 worker processes give a sign of life")
    with WorkerLease(folder, "worker", 4):
        assert signs.workers(SETTINGS, folder)[0]
        with write("test"):
            execute("UPDATE workers SET seen_at = ?", (rfc3339(now_ms() - 31_000),))
        assert signs.workers(SETTINGS, folder) == (False, "0 of 1 worker processes give a sign of life")
    assert not signs.workers(SETTINGS, folder)[0], "it is gone"


def test_the_schedule_is_well_while_it_ticks(folder: DataFolder) -> None:
    assert not signs.schedule(SETTINGS, folder)[0]
    signs.record_tick()
    assert signs.schedule(SETTINGS, folder)[0]
    with write("test"):
        set_fact("schedule_at", str(now_ms() - 200_000))
    assert not signs.schedule(SETTINGS, folder)[0]


def test_a_monitor_that_is_not_there_is_not_well(folder: DataFolder) -> None:
    with refused_port() as port:
        is_well, words = signs.web(Settings(web_port=port), folder)
    assert not is_well
    assert "does not answer on http://127.0.0.1:" in words


def test_the_command_says_it_in_its_exit_code(node: Node) -> None:
    assert node.cli("health", "workers").returncode == 2, "there is no data folder to ask"
    node.cli("init")
    assert node.cli("health", "workers").returncode == 1


def test_parts_share_the_folder_and_count_as_a_stack(folder: DataFolder) -> None:
    assert not is_stack_running(folder)
    parts = [try_lock(folder.lock, shared=True) for _ in range(2)]
    assert all(parts)
    assert is_stack_running(folder)
    assert try_lock(folder.lock) is None, "a whole stack waits until the parts are gone"
    for part in parts:
        part.close()
    assert not is_stack_running(folder)


def test_a_part_alone_needs_a_redis_to_share(node: Node) -> None:
    done = node.cli("up", "--only", "workers")
    assert done.returncode == 2
    assert "REDIS_URL: is not set" in done.stderr
