"""The private server: a maintained one, whatever is installed, and nothing that lies in its folder stops it."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
import redis

from lienworker.data_folder import DataFolder
from lienworker.stack import redis_server
from lienworker.stack.redis_server import ask, bundled_programs, command, find_server, throw_data_away
from tests.harness.node import Node, wait_until


def a_program(folder: Path, name: str, said: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH beside the system's own tools, which have no server."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_a_maintained_server_of_the_system_comes_first(on_path: Path) -> None:
    system = a_program(on_path, "redis-server", "Redis server v=7.2.5 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    assert (find_server().program, find_server().version) == (system, "7.2.5")
    newer = a_program(on_path, "valkey-server", "Valkey server v=8.1.3 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    assert (find_server().program, find_server().name) == (newer, "Valkey")


@pytest.mark.parametrize("said", ["Redis server v=6.2.14 sha=00000000:0", "Redis server v=6.0.16", "no server", ""])
def test_an_old_or_unknown_one_is_passed_over_for_the_bundled_one(on_path: Path, said: str) -> None:
    a_program(on_path, "redis-server", said)
    assert find_server().program in set(bundled_programs())
    assert find_server().name == "Valkey"
    assert find_server().is_maintained


def test_an_old_one_is_better_than_none_and_is_called_old(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = a_program(on_path, "redis-server", "Redis server v=6.2.14 sha=00000000:0")
    monkeypatch.setattr(redis_server, "bundled_programs", lambda: iter(()))
    assert find_server().program == system
    assert "Redis 6.2.14" in find_server().in_words()
    assert "it is old" in find_server().in_words()


def test_doctor_names_the_server_its_version_and_its_path(node: Node) -> None:
    node.cli("init")
    (line,) = [line for line in node.cli("doctor").stdout.splitlines() if " redis: " in line]
    server = find_server()
    assert line == f"ok   redis: private server: {server.name} {server.version} ({server.program})"


@pytest.mark.parametrize("program", [*bundled_programs(), find_server().program], ids=lambda program: program.name)
def test_it_starts_on_our_options_and_keeps_nothing(program: Path, tmp_path: Path) -> None:
    """A restart costs one sweep of the relay. What is not kept cannot be damaged, fill the disk or be too new."""
    folder = DataFolder(tmp_path / "data").create()
    for _ in range(2):
        server = subprocess.Popen(command(folder, program))
        client = redis.Redis(unix_socket_path=str(folder.redis_socket))
        wait_until(folder.redis_socket.exists, what="the server to listen")
        assert client.get("word") is None
        client.set("word", "lost")
        client.close()
        server.terminate()
        assert server.wait(60) == 0
        folder.redis_socket.unlink(missing_ok=True)
    assert list(folder.redis.iterdir()) == []


def test_whatever_another_server_has_left_does_not_stop_the_start(node: Node, site, tmp_path: Path) -> None:
    """A dump of a version to come, the log of an old one, the folder of a newer one, and rubbish."""
    folder = DataFolder(node.data).create()
    (folder.redis / "dump.rdb").write_bytes(b"REDIS9999\xfa\x09redis-ver\x0599.9.9" + b"\xff" * 100)
    (folder.redis / "appendonly.aof").write_bytes(b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1000000000\r\n")
    (folder.redis / "appendonlydir").mkdir()
    (folder.redis / "appendonlydir" / "appendonly.aof.manifest").write_bytes(b"file nowhere seq 9 type q\n")
    parcels = tmp_path / "parcels.csv"
    parcels.write_text("url\n" + "".join(f"{row['url']}\n" for row in site.parcels(3)))
    done = node.cli("run", str(parcels))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "died" not in done.stderr
    assert not (folder.redis / "dump.rdb").exists()


def test_throwing_away_reaches_into_folders(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data").create()
    (folder.redis / "appendonlydir").mkdir()
    (folder.redis / "appendonlydir" / "x").write_text("y")
    throw_data_away(folder)
    assert list(folder.redis.iterdir()) == []


def test_a_program_that_hangs_or_is_none_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "_ASK_SECONDS", 0.2)
    program = a_program(tmp_path / "bin", "redis-server", "x")
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    assert ask(program).version == ""
    program.chmod(stat.S_IRUSR)
    assert ask(program).version == ""
