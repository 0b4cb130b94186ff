"""What the tests of the outbox share."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lienworker.db.database import all_rows, close, dict_rows, execute, one_row, write
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.outbox.claims import Rules, claim
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.rows import Claimed
from lienworker.store.tasks import NewTask

#: Hosts allow everything at once.
FREE = Rules(host_delay=0.0, host_concurrency=1000)
_PLAYERS = Path(__file__).with_name("players.py")


class Player:
    """Another process that takes part in a test."""

    def __init__(self, part: str, root: Path, *arguments: Any, **environment: str) -> None:
        self._database = root / "lienworker.db"
        self._process = subprocess.Popen(
            [sys.executable, str(_PLAYERS), part, str(root), json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        )
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._stdout, self._stdin = self._process.stdout, self._process.stdin

    def hear(self, timeout: float = 60) -> Any:
        """What it says next; it must say something."""
        ready, _, _ = select.select([self._stdout], [], [], timeout)
        line = self._stdout.readline() if ready else b""
        assert line, "the other process said nothing"
        return json.loads(line)

    def tell(self, what: Any) -> None:
        self._stdin.write(json.dumps(what).encode() + b"\n")
        self._stdin.flush()

    def ask(self, what: Any) -> Any:
        self.tell(what)
        return self.hear()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def stop_in_its_tracks(self) -> None:
        """Stop it, though not in the middle of a transaction: then nobody could write until it goes on."""
        while True:
            self.signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
            if _may_write(self._database):
                return
            self.signal(signal.SIGCONT)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._process.wait()

    def wait(self) -> int:
        """Its end, by itself."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        return self._process.wait(60)

    def clear_away(self) -> None:
        if self._process.poll() is None:
            self.kill()
        self._stdout.close()
        with contextlib.suppress(OSError):
            self._stdin.close()


def _may_write(database: Path) -> bool:
    with contextlib.closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


def add(
    n: int = 1, host: str = "a.example", *, name: str = "p", queue: str = "default", priority: int = 3, **fields: Any
) -> list[str]:
    """Registers n tasks of one host; gives their ids."""
    new = [
        NewTask(
            "cli", f"http://{host}/{name}{k}", task_id=f"{host}/{name}{k}", queue=queue, priority=priority, **fields
        )
        for k in range(n)
    ]
    with write("test"):
        register_in_transaction(new)
    return [task.task_id for task in new]


def take(limit: int = 1000, token: str = "me.1", rules: Rules = FREE, **how: Any) -> list[Claimed]:
    return claim(how.pop("topic", "fetch"), limit, token, rules, **how)


def row_of(task_id: str, topic: str = "fetch") -> dict[str, Any]:
    """The newest row of a task."""
    sql = "SELECT * FROM outbox WHERE task_id = ? AND topic = ? ORDER BY generation DESC LIMIT 1"
    return next(dict_rows(sql, (task_id, topic)))


def status_of(task_id: str) -> str:
    return str(one_row("SELECT status FROM tasks WHERE task_id = ?", (task_id,))[0])


def host_row(host: str = "a.example") -> dict[str, Any]:
    return next(dict_rows("SELECT * FROM hosts WHERE host = ?", (host,)))


def states() -> dict[str, int]:
    return dict(all_rows("SELECT state, count(*) FROM outbox GROUP BY state"))


def in_transaction(action: Callable[..., Any], *arguments: Any, **how: Any) -> Any:
    with write("test"):
        return action(*arguments, **how)


def change(sql: str, *params: Any) -> None:
    with write("test"):
        execute(sql, params)


def the_books_are_right() -> None:
    """The balance holds, tallies and backlog are what the rows say, and no place is noted later than its rows."""
    assert [side for side in balances() if not side.holds] == []
    assert wrong_tallies() == []
    late = all_rows(
        "SELECT o.id FROM outbox o LEFT JOIN backlog b ON b.topic = o.topic AND b.host = o.host AND b.rank = o.rank"
        " WHERE o.state = 'waiting' AND (b.not_before IS NULL OR b.not_before > o.due_at)"
    )
    assert late == []


def until(condition: Callable[[], Any], timeout: float = 60) -> Any:
    """Looks until something is so, where no signal tells."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)
    return found


@contextlib.contextmanager
def in_background(work: Callable[[], None]) -> Iterator[threading.Thread]:
    """Work in a thread with a connection of its own; what goes wrong there goes wrong here."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)
        finally:
            close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(60)
        assert not thread.is_alive()
    assert problems == []
