"""Connections that want nothing but to be in the way: the operator still gets in, and nobody's log fills up."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from lienworker.web import door
from tests.harness.node import Node, wait_until
from tests.web.hostile_page import COMPLEX, make_raw_page
from tests.web.monitor import Monitor, free_port, monitor

pytestmark = pytest.mark.slow
LOGIN = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"


@contextlib.contextmanager
def connections(port: int, n: int, first_words: bytes = b"") -> Iterator[list[socket.socket]]:
    made: list[socket.socket] = []
    try:
        for _ in range(n):
            line = socket.create_connection(("127.0.0.1", port), timeout=20)
            made.append(line)
            with contextlib.suppress(OSError):
                line.sendall(first_words)
        yield made
    finally:
        for line in made:
            line.close()


def is_cut(line: socket.socket, seconds: float = 60) -> bool:
    """Waits for the other side to end it, whatever it says before."""
    line.settimeout(seconds)
    try:
        while line.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def open_lines(lines: list[socket.socket]) -> int:
    """How many the other side has not ended yet."""
    left = 0
    for line in lines:
        line.setblocking(False)
        try:
            left += line.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            left += 1
        except OSError:
            pass
    return left


def most_memory(pid: int) -> int:
    """What a process ever took at a time, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return 1024 * int(found[1])


def test_a_thousand_silent_connections_keep_nobody_out_and_fill_no_log(seeded: Node) -> None:
    with monitor(seeded) as here:
        cookie = here.as_stranger.ask(f"/?token={here.token}").headers["set-cookie"].split(";")[0]
        with connections(here.port, 1100) as lines:
            wait_until(lambda: open_lines(lines) <= door._STRANGERS, what="the oldest to be cut")
            for _ in range(5):
                assert here.as_stranger.ask("/tasks", Cookie=cookie).status == 200
                assert here.ask("/api/tasks").status == 200
            assert here.is_there()
    assert len(here.output) < 10_000, here.output[:2000]
    assert "Traceback" not in here.output


def test_who_is_known_keeps_the_place_while_strangers_push_each_other_out(seeded: Node) -> None:
    import asyncio

    import aiohttp

    async def listen(here: Monitor) -> bytes:
        async with (
            aiohttp.ClientSession(headers=here.credentials) as session,
            session.get(here.url + "/events") as stream,
        ):
            await stream.content.readuntil(b"\n\n")
            with connections(here.port, 700):
                await asyncio.to_thread(seeded.cli, "tasks", "retry", "--all")
                return await asyncio.wait_for(stream.content.readuntil(b"\n\n"), 30)

    with monitor(seeded) as here:
        assert b"data" in asyncio.run(listen(here))


SLOW = [
    b"",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    LOGIN + b"Content-Length: 100\r\n\r\ntoken=",
    LOGIN + b"Transfer-Encoding: chunked\r\n\r\n5\r\ntoken",
    b"POST /imports HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nhalf",
]


def test_strangers_who_do_not_come_to_the_point_are_cut(here: Monitor) -> None:
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connections(here.port, 1, words))[0] for words in SLOW]
        for words, line in zip(SLOW, lines, strict=True):
            assert is_cut(line), words


def test_slow_headers_are_cut_also_when_they_keep_coming(here: Monitor) -> None:
    with connections(here.port, 1, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") as (line,):
        deadline = time.monotonic() + 60
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < deadline:
                line.sendall(b"y")
                time.sleep(0.25)  # that is what slow means
            raise AssertionError("a minute later it still takes headers")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see what memory was taken")
@pytest.mark.parametrize("length", [b"Transfer-Encoding: chunked\r\n\r\nF0000\r\n", b"Content-Length: 983040\r\n\r\n"])
def test_unfinished_bodies_of_strangers_hold_no_memory(seeded: Node, length: bytes) -> None:
    with monitor(seeded) as here:
        (process,) = seeded.processes(" web ")
        before = most_memory(process.pid)
        body = LOGIN + length + b"token=" + b"x" * 900_000
        with connections(here.port, 200, body):
            wait_until(here.is_there)
            taken = most_memory(process.pid) - before
        assert taken < 80_000_000, f"{taken / 1e6:.0f} MB"


def test_a_login_that_is_too_long_is_refused_before_it_is_read(here: Monitor) -> None:
    assert here.as_stranger.ask("/login", "POST", data={"token": "x" * 5_000}).status == 413
    assert here.as_stranger.ask("/login", "POST", data={"token": str(here.token)}).status == 303


def test_where_files_run_out_it_is_one_line_in_the_log(seeded: Node) -> None:
    """A burst comes faster than the oldest can be cut: that is no reason for a trace a connection."""
    port = free_port()
    command = f"ulimit -n 60; exec {sys.executable} -m lienworker web --port {port}"
    process = subprocess.Popen(
        ["sh", "-c", command], env=seeded.environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    here = Monitor(port)
    try:
        wait_until(here.is_there, what="the monitor to answer")
        stop = psutil.Process(process.pid)
        stop.suspend()  # what waits at the door meets it all at once
        with connections(port, 60):
            stop.resume()
            wait_until(here.is_there, seconds=60, what="the monitor to answer again")
    finally:
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert said.count("can take no connection now") <= 1
    assert "Traceback" not in said
    assert len(said) < 5_000, said[:2000]


def test_a_raw_page_that_is_built_to_be_slow_holds_nobody_up(seeded: Node) -> None:
    make_raw_page(seeded.data, COMPLEX)
    with monitor(seeded) as here, ThreadPoolExecutor(1) as thread:
        rendering = thread.submit(here.ask, "/tasks/complex/page/rendered")
        wait_until(lambda: seeded.processes("lienworker.web.sanitizer"), what="the child")
        for path in ("/tasks/complex/page", "/tasks/complex/page/text", "/tasks"):
            assert here.ask(path).status == 200
        assert not rendering.done(), "the others were answered meanwhile"
        reply = rendering.result(60)
        assert reply.status == 200
        assert "too complex" in reply.text
        assert not seeded.processes("lienworker.web.sanitizer"), "the child is gone"
