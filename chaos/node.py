"""The node of a chaos run: `lienworker up` on a small disk, with a clock that can be set."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

from chaos.storage import FailingDisk
from lienworker.data_folder import DataFolder
from tests.harness.node import Node

_DEBIAN = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


def fake_clock_library() -> Path | None:
    """libfaketime: from the package of that name, or the system's."""
    package = importlib.util.find_spec("libfaketime")
    if package and package.origin:
        found = Path(package.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
        if found.exists():
            return found
    return _DEBIAN if _DEBIAN.exists() else None


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[bool]:
    """A tmpfs there, for as long as the block lasts; False where we may not mount one."""
    place.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    mounted = subprocess.run(["mount", *options], capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], capture_output=True)


class ChaosNode(Node):
    """The processes, as somebody sees them who wants to break them."""

    def __init__(self, data: Path, log: Path, **settings: str) -> None:
        super().__init__(data, **settings)
        self._log_path = log
        self._log: IO[bytes] | None = None
        self._up: subprocess.Popen[bytes] | None = None
        self._clock_file = log.parent / "clock"
        self._clock_library = fake_clock_library()
        self._workers_seen: set[int] = set()
        self._workers_alive: set[int] = set()
        self._next_start = self._next_look = 0.0
        self.supervisors = 0
        #: How the stacks ended, by exit code.
        self.ends: Counter[int] = Counter()
        self._next_command: tuple[str, ...] = ("up",)
        self.settings["PYTHONPATH"] = str(Path(__file__).parents[1])  # this very source, wherever it was installed from
        if self._clock_library:
            self.set_clock(0)
            self.settings |= {
                "LD_PRELOAD": str(self._clock_library),
                "FAKETIME_TIMESTAMP_FILE": str(self._clock_file),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        self.disk = FailingDisk(log.parent, data, self.settings.get("LD_PRELOAD", ""))
        self.settings |= self.disk.environment

    @property
    def has_clock(self) -> bool:
        return self._clock_library is not None

    def set_clock(self, offset: int) -> None:
        aside = self._clock_file.with_suffix(".new")
        aside.write_text(f"{offset:+d}\n")
        aside.replace(self._clock_file)

    # Life

    def tend(self) -> None:
        """Starts the supervisor if it is not there; to be called often."""
        if time.monotonic() > self._next_look:
            self._next_look = time.monotonic() + 0.5
            self._note_workers()
        if self._up and self._up.poll() is None:
            return
        if self._up:
            self.ends[self._up.returncode] += 1
            self._up = None
        if time.monotonic() < self._next_start:
            return
        self._next_start = time.monotonic() + 1.0
        self._log = self._log or self._log_path.open("ab")
        self._up = subprocess.Popen(
            [sys.executable, "-m", "lienworker", *self._next_command],
            env=self.environment(),
            cwd=self._log_path.parent,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.supervisors += 1
        self._next_command = ("up",)

    def run_instead(self, file: str) -> None:
        """The stack is asked to end; `lienworker run` comes in its place, and after that `up` again."""
        self._next_command = ("run", file)
        if self._up and self._up.poll() is None:
            self._up.send_signal(signal.SIGINT)

    def stop(self) -> int:
        """As an operator does it: Ctrl-C, and wait."""
        while self._up is None:  # `run` has just come to its end
            self.tend()
            time.sleep(0.1)
        if self._up.poll() is None:
            self._up.send_signal(signal.SIGINT)
        try:
            return self._up.wait(30)
        finally:
            self.kill_everything()
            if self._log:
                self._log.close()

    def command(self, *arguments: str, stdout: int | None = None) -> subprocess.Popen[bytes]:
        """`lienworker …`, left running; what it says goes to the log, or where the caller wants it."""
        assert self._log
        command = [sys.executable, "-m", "lienworker", *arguments]
        out = self._log if stdout is None else stdout
        return subprocess.Popen(
            command, env=self.environment(), cwd=self._log_path.parent, stdout=out, stderr=subprocess.STDOUT
        )

    def _note_workers(self) -> None:
        alive = {process.pid for process in self.workers()}
        self._workers_seen |= alive
        self._workers_alive = alive

    @property
    def worker_deaths(self) -> int:
        """How many worker processes have ended so far, for whatever reason."""
        return len(self._workers_seen - self._workers_alive)

    # Parts

    def workers(self) -> list[psutil.Process]:
        """Processes come and go while one looks."""
        with contextlib.suppress(psutil.Error):
            return super().workers()
        return []

    def part(self, name: str) -> list[psutil.Process]:
        found = {
            "worker": self.workers,
            "master": self._masters,
            "schedule": lambda: self.processes("lienworker.stack.schedule"),
            "redis": lambda: self.processes("-server "),
            "web": lambda: self.processes("lienworker web"),
            "supervisor": lambda: self.processes("lienworker up") + self.processes("lienworker run"),
            "everything": self.processes,
        }[name]()
        return sorted(found, key=lambda process: process.pid)

    def _masters(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            all_of_them = self.processes("dramatiq")
            pids = {process.pid for process in all_of_them}
            return [process for process in all_of_them if process.ppid() not in pids]
        return []

    def redis_socket(self) -> Path:
        return DataFolder(self.data).redis_socket

    def limit_files(self, *, tight: bool) -> None:
        """Hardly any file may be opened more, or as many as before."""
        for process in self.part("worker") + self.part("web"):
            with contextlib.suppress(psutil.Error, ValueError, OSError):
                _, hard = process.rlimit(resource.RLIMIT_NOFILE)
                soft = process.num_fds() + 2 if tight else min(hard, 1024 * 64)
                process.rlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rude_writer(database: Path, seconds: float) -> subprocess.Popen[bytes]:
    """Somebody else's process that takes the right to write and keeps it."""
    code = (
        "import sqlite3, sys, time\n"
        "c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE'); time.sleep(float(sys.argv[2])); c.execute('ROLLBACK')\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(database), str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def fill_disk(place: Path, *, leave: int = 0) -> Path:
    """A ballast file that takes all the room but `leave` bytes."""
    ballast = place / "ballast"
    chunk = b"\0" * (1 << 20)
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as out:
        while (free := _free(place) - leave) > 0:
            out.write(chunk[:free])
    return ballast


def _free(place: Path) -> int:
    about = os.statvfs(place)
    return about.f_bavail * about.f_frsize
