"""One run of one contender: from the moment a tenth of the pages is done to the last row that is committed.

Start-up is left out that way for everybody, also that of processes which start beside the first pages. All contenders
are asked in the same way how far they are: by a count in their own database, every twentieth of a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.speed.page import parcel_id

_LONGEST = 600.0


@dataclass(frozen=True)
class Contender:
    """A command and where it keeps its rows."""

    name: str
    command: list[str]
    database: str
    count: str
    promises: str


@dataclass(frozen=True)
class Run:
    """What one run came to. CPU is of the contender's processes, not of the site, and without their start.

    That of a Gateway beside it is counted apart: it is no part of the contender, but has the same cores.
    """

    pages_per_second: float
    cpu_ms: float
    gateway_cpu_ms: float
    seconds: float
    asked_twice: int
    #: What the site was asked for: when, which page, of which host.
    log: list[tuple[float, str, str]]


def contender_arguments(
    doc: str | None, more: Callable[[argparse.ArgumentParser], object] = lambda _: None
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc)
    more(parser)
    parser.add_argument("--site", required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    (chosen.folder / "raw").mkdir(parents=True, exist_ok=True)
    return chosen


def urls_of(site: str, pages: int) -> list[str]:
    return [f"{site}/parcel/{parcel_id(n)}" for n in range(pages)]


@contextlib.contextmanager
def running_site(*options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.speed.site", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def private_redis(folder: Path) -> Iterator[str]:
    """The Redis server that lienworker brings along, for a peer that needs one."""
    from lienworker.stack.redis_server import server_program

    socket = folder / "redis.sock"
    command = [str(server_program()), "--port", "0", "--unixsocket", str(socket), "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.05)
        yield f"redis+socket://{socket}"
    finally:
        process.terminate()
        process.wait()


def ask(site: str, path: str) -> bytes:
    with urllib.request.urlopen(site + path, timeout=30) as reply:
        content: bytes = reply.read()
    return content


def measure(contender: Contender, site: str, pages: int, where: Path) -> Run:
    """Runs it once in a folder of its own. Everything that it started is stopped at the end.

    The folder stays until all runs are done: for minutes after files were deleted, ext4 takes thirty times as long to
    make new ones beside them, and the next contender would pay for it.
    """
    ask(site, "/forget")
    folder = Path(tempfile.mkdtemp(prefix="speed-", dir=where))
    options = ["--site", site, "--pages", str(pages), "--folder", str(folder)]
    process = subprocess.Popen([*contender.command, *options], start_new_session=True)
    try:
        started, done, before = _wait(process, folder / contender.database, contender.count, pages // 10)
        finished, done_at_last, after = _wait(process, folder / contender.database, contender.count, pages)
    finally:
        _stop(process)
    log = json.loads(ask(site, "/log"))
    seconds, counted = finished - started, done_at_last - done
    asked_twice = len(log) - len({(path, host) for _, path, host in log})
    own, gateway = (1000 * (late - early) / counted for early, late in zip(before, after, strict=True))
    return Run(counted / seconds, own, gateway, seconds, asked_twice, log)


def _wait(
    process: subprocess.Popen[bytes], database: Path, count: str, pages: int
) -> tuple[float, int, tuple[float, float]]:
    """Until so many pages are done; gives when that was, how many were, and the CPU time that it took."""
    deadline = time.monotonic() + _LONGEST
    connection: sqlite3.Connection | None = None
    while time.monotonic() < deadline:
        if connection is None and database.exists():
            connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None)
        with contextlib.suppress(sqlite3.OperationalError):  # the table is not there yet
            if connection and (done := connection.execute(count).fetchone()[0]) >= pages:
                return time.monotonic(), done, _cpu_seconds(process)
        if process.poll() not in (None, 0):
            raise SystemExit(f"{process.args!r} ended with {process.returncode}")
        time.sleep(0.05)
    raise SystemExit(f"{process.args!r} was not done after {_LONGEST:.0f} s")


def _cpu_seconds(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Of all its processes, those that have ended included where their parent has waited; the Gateway's apart."""
    own = gateway = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(process.pid)
        for each in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = each.cpu_times()
                used = times.user + times.system + times.children_user + times.children_system
                if "gateway" in each.cmdline():
                    gateway += used
                else:
                    own += used
    return own, gateway


def _stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
