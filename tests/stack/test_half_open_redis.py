"""A Redis that takes connections and answers nothing: calls end, nothing floods the log, and the stack resumes."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from lienworker.broker import refuse_redis_url
from lienworker.redis_client import CALL_SECONDS, connect_redis
from lienworker.settings import Settings
from lienworker.stack.redis_server import server_program
from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, wait_until, write_list


class Proxy:
    """A TCP proxy that can forget its connections, as a firewall does: they stay open, and nothing comes through again.

    New ones are taken meanwhile, and forgotten as well; those made after `go_on` work.
    """

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}/0"
        self._is_open = True
        self._forgotten: set[socket.socket] = set()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def stop_forwarding(self) -> None:
        self._is_open = False
        self._forgotten |= set(self._ends)

    def go_on(self) -> None:
        self._is_open = True

    def close(self) -> None:
        for end in (self._listening, *self._ends):
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self._ends += [near, far]
                if not self._is_open:
                    self._forgotten |= {near, far}
                threading.Thread(target=self._pump, args=(near, far), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                if source not in self._forgotten:
                    sink.sendall(piece)
        if source not in self._forgotten:
            for end in (source, sink):
                end.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    place = tmp_path / "own.sock"
    line = [str(server_program()), "--port", "0", "--unixsocket", str(place), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    wait_until(place.exists, what="the server to listen")
    yield place, process
    process.send_signal(signal.SIGCONT)
    process.terminate()
    process.wait(60)


@pytest.fixture
def proxy(server: tuple[Path, subprocess.Popen[bytes]]) -> Iterator[Proxy]:
    here = Proxy(server[0])
    yield here
    here.go_on()
    here.close()


def test_a_call_to_a_server_that_answers_nothing_ends_as_if_it_were_away(proxy: Proxy) -> None:
    client = connect_redis(proxy.url, seconds=2)
    client.set("word", "kept")
    proxy.stop_forwarding()
    with pytest.raises(redis.ConnectionError):
        client.get("word")
    with pytest.raises(redis.ConnectionError):  # a connection that is new, too
        client.get("word")
    proxy.go_on()
    assert client.get("word") == b"kept"


def test_a_stopped_server_on_a_unix_socket_is_the_same(server: tuple[Path, subprocess.Popen[bytes]]) -> None:
    place, process = server
    client = connect_redis(f"unix://{place}", seconds=2)
    client.set("word", "kept")
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(redis.ConnectionError):
        client.get("word")
    process.send_signal(signal.SIGCONT)
    assert client.get("word") == b"kept"


@pytest.mark.parametrize("url", ["redis://h:1/0", "rediss://h:1/0", "unix:///tmp/x.sock"])
def test_every_kind_of_address_has_a_deadline_and_a_health_check(url: str) -> None:
    connection = connect_redis(url).connection_pool.make_connection()
    assert (connection.socket_timeout, connection.socket_connect_timeout) == (CALL_SECONDS, CALL_SECONDS)
    assert connection.health_check_interval > 0
    refuse_redis_url(Settings(redis_url=url))


def test_options_in_the_address_win_over_ours() -> None:
    url = "redis://h:1/0?socket_timeout=33&socket_connect_timeout=44&health_check_interval=55&socket_keepalive=no"
    connection = connect_redis(url).connection_pool.make_connection()
    assert (connection.socket_timeout, connection.socket_connect_timeout) == (33, 44)
    assert (connection.health_check_interval, connection.socket_keepalive) == (55, False)


def test_no_idle_pause_of_a_consumer_is_as_long_as_a_calls_deadline() -> None:
    from lienworker.broker import _IDLE_POLL_MS

    assert max(_IDLE_POLL_MS.values()) / 1000 < CALL_SECONDS


def test_doctor_writes_and_says_who_answers(node: Node, proxy: Proxy) -> None:
    node.cli("status")
    done = node.cli("doctor", REDIS_URL=proxy.url)
    assert "REDIS_URL takes writes: " in done.stdout, done.stdout
    assert str(server_program()) in done.stdout


def test_doctor_finds_a_server_that_answers_ping_and_takes_nothing(node: Node, server: tuple[Path, object]) -> None:
    url = f"unix://{server[0]}"
    with connect_redis(url) as client:
        client.config_set("maxmemory", "1")
        client.config_set("maxmemory-policy", "noeviction")
        assert client.ping()
    done = node.cli("doctor", REDIS_URL=url)
    assert done.returncode == 1
    assert "BAD  redis: REDIS_URL cannot be used: " in done.stdout, done.stdout


def test_doctor_leaves_no_key_behind(node: Node, server: tuple[Path, object]) -> None:
    url = f"unix://{server[0]}"
    assert "takes writes" in node.cli("doctor", REDIS_URL=url).stdout
    with connect_redis(url) as client:
        assert client.keys("*") == []


@pytest.mark.slow
@pytest.mark.parametrize("by", ["proxy", "signal"])
def test_a_stack_resumes_when_a_half_open_redis_is_back(
    node: Node, site: DemoSite, server: tuple[Path, subprocess.Popen[bytes]], proxy: Proxy, tmp_path: Path, by: str
) -> None:
    """Stopped while the workers poll, for longer than a call's deadline; then there is work, then Redis is back."""
    log = (tmp_path / "log").open("w+")
    up = subprocess.Popen(
        [sys.executable, "-m", "lienworker", "up"],
        env=node.environment(REDIS_URL=proxy.url, LIENWORKER_LOG_FORMAT="json"),
        cwd=tmp_path,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_until(lambda: len(node.workers()) == 2 and node.is_up(), 60, "the stack to be up")
        node.cli("import", write_list(tmp_path / "one.jsonl", site.parcels(1, 1)))
        wait_until(lambda: node.statuses().get("completed", 0) == 1, 60, "the first parcel")

        proxy.stop_forwarding() if by == "proxy" else server[1].send_signal(signal.SIGSTOP)
        wait_until(lambda: "does not answer" in (tmp_path / "log").read_text(), 60, "a thread to notice")
        node.cli("import", write_list(tmp_path / "more.jsonl", site.parcels(30, 2)))
        deadline = time.monotonic() + 2 * CALL_SECONDS
        wait_until(lambda: time.monotonic() > deadline, 60, "everything to meet the silent server")
        proxy.go_on() if by == "proxy" else server[1].send_signal(signal.SIGCONT)

        wait_until(lambda: node.statuses().get("completed", 0) == 31, 120, "the rest, with Redis back")
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(60)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line.startswith("{")]
    failures = [line for line in lines if line["level"] in {"warning", "error", "critical"}]
    assert [line["trace"] for line in failures if "trace" in line] == []
    # Five processes with at most a handful of different failures each; without the filter hundreds.
    assert len(failures) < 40, "\n".join(line["message"] for line in failures)
    node.doctor()
