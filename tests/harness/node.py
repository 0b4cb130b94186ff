"""One node under test: a data folder, its settings, and the real processes that run on it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from lienworker.testing.county.site import DemoSite


class Node:
    def __init__(self, data: Path, **settings: str) -> None:
        self.data = data
        self.settings = {
            "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1",
            "LIENWORKER_HOST_DELAY": "0",
            "LIENWORKER_HOST_CONCURRENCY": "32",
            "LIENWORKER_RETRY_DELAY": "0.2",
            "LIENWORKER_PROCESSES": "2",
            "LIENWORKER_WEB_PORT": "0",  # many stacks at a time: the monitor has its own tests
            **settings,
        }

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "LIENWORKER_DATA_DIR": str(self.data),
            **self.settings,
            **more,
        }

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """Starts `lienworker …` and leaves it running."""
        return subprocess.Popen(
            [sys.executable, "-m", "lienworker", *arguments],
            env=self.environment(**more),
            cwd=self.data.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def cli(
        self, *arguments: str, stdin: str = "", timeout: float = 120, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `lienworker …` to its end."""
        return subprocess.run(
            [sys.executable, "-m", "lienworker", *arguments],
            env=self.environment(**more),
            cwd=self.data.parent,
            capture_output=True,
            text=True,
            input=stdin,
            timeout=timeout,
        )

    def on_terminal(self, *arguments: str, columns: int = 100, **more: str) -> tuple[int, str]:
        """Runs `lienworker …` as somebody who sits at a terminal; gives its exit code and all that it showed."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "lienworker", *arguments],
            env=self.environment(**{"TERM": "xterm", **more}),
            cwd=self.data.parent,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        shown = bytearray()
        with contextlib.suppress(OSError):  # that is how a terminal says that the other side is gone
            while piece := os.read(ours, 65_536):
                shown += piece
        os.close(ours)
        return process.wait(timeout=60), shown.decode("utf-8", "replace")

    def json(self, *arguments: str) -> Any:
        done = self.cli(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def sql(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        """Reads the database from outside, as anybody could."""
        with contextlib.closing(sqlite3.connect(self.data / "lienworker.db", timeout=30)) as connection:
            return connection.execute(query, params).fetchall()

    def is_up(self, turn: str = "relay") -> bool:
        """Whether a worker has taken up this turn."""
        try:
            return bool(self.sql("SELECT 1 FROM turns WHERE name = ?", turn))
        except sqlite3.OperationalError:  # not even a database yet
            return False

    def statuses(self) -> dict[str, int]:
        return dict(self.sql("SELECT status, count(*) FROM tasks GROUP BY 1"))

    def processes(self, part: str = "") -> list[psutil.Process]:
        """The living processes of this node whose command line has `part` in it."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                command, environment = _facts_of(process)
                # Redis writes its title over its environment: its socket tells whose it is.
                mine = f"LIENWORKER_DATA_DIR={self.data}" in environment or f":{self.data}/" in command
                if mine and part in command and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def workers(self) -> list[psutil.Process]:
        """The worker processes themselves: children of Dramatiq's master. Any of them may end while it is looked at."""
        every = self.processes("dramatiq")
        masters, workers = {process.pid for process in every}, []
        for process in every:
            with contextlib.suppress(psutil.Error):
                if process.ppid() not in masters:
                    workers += [child for child in process.children() if child.status() != psutil.STATUS_ZOMBIE]
        return workers

    def kill_everything(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def doctor(self) -> None:
        done = self.cli("doctor")
        assert done.returncode == 0, done.stdout + done.stderr


def _facts_of(process: psutil.Process) -> tuple[str, list[str]]:
    """Return the command line and the environment of a process.

    As the kernel shows them, where it does: psutil takes ten times as long, and tests ask for all processes many times
    a second while they wait for some.
    """
    place = Path("/proc", str(process.pid))
    if not place.exists():
        return " ".join(process.cmdline()), [f"{name}={value}" for name, value in process.environ().items()]
    command, environment = (os.fsdecode((place / name).read_bytes()) for name in ("cmdline", "environ"))
    return command.strip("\0").replace("\0", " "), environment.split("\0")


def write_list(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


#: How long a test waits for what takes a moment: so long that a busy machine makes no difference, s.
PATIENCE = 90.0


def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "") -> Any:
    """Wait for something that can only be seen from outside.

    Say `seconds` only where being in time is what the test is about.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not happen within {seconds} s: {what or condition}")
        time.sleep(0.02)
    return found


def interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def repeats(site: DemoSite) -> int:
    """How many requests for a parcel were not the first for it."""
    return sum(n - 1 for path, n in site.hits.items() if path.startswith("/parcel/"))


def fetched_after_commit(node: Node, site: DemoSite) -> Iterator[str]:
    """Pages that were asked for again after they were committed: there must be none."""
    offset = time.time() - time.monotonic()
    last_hit = {path: at + offset for path, at in site.log}
    for url, fetched_at in node.sql("SELECT url, fetched_at FROM pages"):
        path = "/" + url.split("/", 3)[3]
        committed = datetime.fromisoformat(fetched_at).timestamp()
        if last_hit[path] > committed + 0.05:
            yield path
