"""The private server: whichever of the bundled ones is there, it starts on our options and keeps what it has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import redis

from lienworker.stack.redis_server import bundled_programs, command
from lienworker.store.folder import DataFolder
from tests.node import wait_until

PROGRAMS = list(bundled_programs())


def test_both_servers_are_there_to_be_tested() -> None:
    assert {program.name for program in PROGRAMS} == {"redis-server", "valkey-server"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_it_starts_on_our_options_and_remembers(program: Path, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data").create()
    for expected in (None, b"kept"):
        server = subprocess.Popen(command(folder, program))
        client = redis.Redis(unix_socket_path=str(folder.redis_socket))
        wait_until(folder.redis_socket.exists, what="the server to listen")
        assert client.get("word") == expected
        client.set("word", "kept")
        client.close()
        server.terminate()
        assert server.wait(60) == 0
        folder.redis_socket.unlink(missing_ok=True)
