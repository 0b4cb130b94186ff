"""People look while the stack runs: `status`, `doctor`, lists and the monitor beside `run`, `up` and `outbox replay`.

POSIX drops all locks of a process on a file when any of its descriptors is closed. A program that opens its database
by itself, beside SQLite, takes SQLite's locks away; then whoever closes last deletes the log under the others' hands.
So the locks themselves are looked at here, and the files that processes have open.

    LOOKING_ROUNDS=200 .venv/bin/pytest -s tests/stack/test_looking_beside_running.py       # the long form
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from chaos.locks import LockWatch, can_watch
from chaos.lookers import Lookers, Visitors
from chaos.witness import WatchedCounty, WatchedGateway, Witness
from lienworker.db import database
from lienworker.testing.county.site import serving
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.node import Node, wait_until, write_list

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(0),  # the long form takes an hour; every wait in here has its own end
    pytest.mark.skipif(not can_watch(), reason="NOT TESTED: this system has no /proc that shows locks and open files"),
]

_ROUNDS = int(os.environ.get("LOOKING_ROUNDS", "4"))
_SEED = 14
_PARCELS = 40
_KILLED_SHARE = 0.5


class Watched:
    """A node with a county and a Gateway that know what must not come again, and people who look."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self._place = place
        self._dice = random.Random(_SEED)
        self.county = WatchedCounty(latency=0.02, size=8_000)
        stack.enter_context(serving(self.county))
        state = WatchedGateway("reference-token")
        self.gateway = ReferenceGateway(state)
        stack.callback(self.gateway.close)
        self.gateway.start_listening()
        port = _free_port()
        self.node = Node(
            place / "data",
            STANDALONE="true",
            GATEWAY_URL=self.gateway.url,
            GATEWAY_TOKEN=self.gateway.token,
            LIENWORKER_WEB_PORT=str(port),
        )
        stack.callback(self.node.kill_everything)
        self.node.cli("init")
        self.witness = Witness(self.node.data)
        self.county.witness = state.witness = self.witness
        self.lookers = Lookers(self._look, _SEED)
        self.visitors = Visitors(port, self.node.data / "web_token")
        self.watch = LockWatch(self.node.data / "lienworker.db", lambda: [p.pid for p in self.node.processes()])
        self.parcels = 0
        self.kills = 0

    def _look(self, *arguments: str, stdout: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "lienworker", *arguments]
        return subprocess.Popen(
            command, env=self.node.environment(), cwd=self._place, stdout=stdout, stderr=subprocess.STDOUT
        )

    # The rounds. Each ends with all that it began, however often it was killed.

    def run(self) -> None:
        file = self._new_parcels()
        self._until_done(lambda: self._begin("run", file), self._all_completed)

    def up(self) -> None:
        """The stack, and an import beside it; the stack is killed or asked to end."""
        file = self._new_parcels()
        process = self._begin("up")
        try:
            wait_until(self.node.is_up, seconds=60, what="the stack")
            imported = self.node.cli("import", file)
            assert imported.returncode == 0, imported.stdout + imported.stderr
            if self._dice.random() < _KILLED_SHARE:
                self._kill_all(process)
                process = self._begin("up")
            wait_until(self._all_completed_so_far, seconds=120, what="all parcels to be completed")
        finally:
            process.terminate()
            process.wait(timeout=60)

    def replay(self) -> None:
        if not self._held():
            self.run()
        self._until_done(lambda: self._begin("outbox", "replay"), lambda: not self._held())

    def _until_done(self, begin: Callable[[], subprocess.Popen[bytes]], is_done: Callable[[], bool]) -> None:
        """Once it may be killed; then it is begun again until it is through."""
        process = begin()
        if self._dice.random() < _KILLED_SHARE:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=self._dice.uniform(0.5, 3.0))
            self._kill_all(process)
        deadline = time.monotonic() + 120
        while not (process.poll() is not None and is_done()):
            assert self.watch.looks.sentences == []  # nothing good comes after that
            assert time.monotonic() < deadline, f"it does not end: {self.log()[-3000:]}"
            if process.poll() is not None:
                process = begin()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)

    def _kill_all(self, process: subprocess.Popen[bytes]) -> None:
        self.node.kill_everything()  # those who look included
        process.wait(timeout=30)
        self.kills += 1

    def _begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "lienworker", *arguments]
        with (self._place / "node.log").open("ab") as out:  # a pipe that nobody reads would stop whoever writes to it
            return subprocess.Popen(
                command, env=self.node.environment(), cwd=self._place, stdout=out, stderr=subprocess.STDOUT
            )

    def _new_parcels(self) -> str:
        rows = self.county.parcels(_PARCELS, 1 + self.parcels)
        self.parcels += _PARCELS
        return write_list(self._place / f"parcels-{self.parcels}.jsonl", rows)

    def _all_completed(self) -> bool:
        return self.node.statuses() == {"completed": self.parcels}

    def _all_completed_so_far(self) -> bool:
        assert self.watch.looks.sentences == []  # nothing good comes after that
        return self._all_completed()

    def _held(self) -> int:
        waits = "SELECT count(*) FROM outbox WHERE topic LIKE 'upload%' AND state IN ('held', 'waiting', 'leased')"
        return int(self.node.sql(waits)[0][0])

    def log(self) -> str:
        return (self._place / "node.log").read_text(errors="replace")

    def check(self) -> None:
        assert self.watch.looks.sentences == []
        assert self.witness.sightings.all == []
        assert dict(self.lookers.wrong) == {}
        assert self.node.sql("PRAGMA integrity_check") == [("ok",)]
        assert "malformed" not in self.log()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with ExitStack() as stack:
        yield Watched(tmp_path, stack)


def test_looking_beside_a_node_at_work_takes_no_lock_and_doubles_nothing(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        stack.enter_context(watched.watch.watching())
        stack.enter_context(watched.lookers.looking())
        stack.enter_context(watched.visitors.visiting())
        for number in range(_ROUNDS):
            (watched.run, watched.up, watched.replay)[number % 3]()
            watched.check()

    watched.node.doctor()
    watched.check()
    assert watched.watch.looks.pids, "nobody was ever seen with the database open"
    assert watched.lookers.looks.total() > _ROUNDS
    assert watched.visitors.answers[200] > 0, dict(watched.visitors.answers)
    with capsys.disabled():
        print(f"\n{_ROUNDS} rounds: {_in_words(watched)}")


def _in_words(watched: Watched) -> str:
    looks, visits = watched.lookers.looks.total(), watched.visitors.answers.total()
    seen = watched.watch.looks
    return (
        f"{looks:,} looks ({watched.lookers.killed} killed), {visits:,} visits to the monitor, {watched.kills} kills,"
        f" {watched.parcels:,} parcels, {len(seen.pids):,} processes in {seen.taken:,} glances"
    )


# A test that could not fail would prove nothing.

_HOLDS_ITS_LOCKS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM tasks").fetchall()
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Any]:
    """A process that has the database open by SQLite alone, and does what it is told."""
    database.open_store(tmp_path)
    database.close()
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS_ITS_LOCKS, str(tmp_path / "lienworker.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def _tell(user: Any, line: str) -> None:
    user.stdin.write(line + "\n")
    user.stdin.flush()
    assert user.stdout.readline() == "done\n"


def _look_for(watch: LockWatch, seconds: float) -> list[str]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not watch.looks.sentences:
        watch.look()
        time.sleep(0.05)
    return watch.looks.sentences


def test_the_watcher_finds_nothing_wrong_where_sqlite_alone_opens_the_database(tmp_path: Path, user: Any) -> None:
    watch = LockWatch(tmp_path / "lienworker.db", lambda: [user.pid])
    assert _look_for(watch, 2.0) == []
    assert watch.looks.pids == {user.pid}


def test_the_watcher_sees_a_lock_that_an_open_and_close_has_taken_away(tmp_path: Path, user: Any) -> None:
    watch = LockWatch(tmp_path / "lienworker.db", lambda: [user.pid])
    _tell(user, "import os; os.close(os.open(sys.argv[1], os.O_RDWR))")
    (sentence,) = _look_for(watch, 20.0)
    assert "lienworker.db is open without its lock" in sentence


def test_the_watcher_sees_a_log_that_was_deleted_under_its_user(tmp_path: Path, user: Any) -> None:
    watch = LockWatch(tmp_path / "lienworker.db", lambda: [user.pid])
    _tell(user, "import os; [os.close(os.open(sys.argv[1] + end, os.O_RDWR)) for end in ('', '-shm')]")
    with closing(sqlite3.connect(tmp_path / "lienworker.db")) as another:  # takes itself for the last user
        another.execute("DELETE FROM audit")
        another.commit()
    assert not (tmp_path / "lienworker.db-wal").exists()
    found = " ".join(_look_for(watch, 20.0))
    assert "(deleted) is in use" in found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
