"""People who look: `status`, `doctor`, lists and the monitor, again and again beside everything else.

Each look is a process of its own, started fresh as a person or a cron job would; some are killed while they look.
Looking must be harmless. What is wrong with a look by itself: a stack trace, and a database that it calls damaged.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOOKS = (
    ("status",),
    ("doctor",),
    ("results", "list"),
    ("outbox", "status"),
    ("status", "--json"),
    ("tasks", "list"),
)
PATHS = ("/", "/tasks", "/results", "/outbox", "/counties", "/metrics", "/api/overview", "/readyz")
_KILLED_SHARE = 0.2
#: A look that takes longer has lost its way: the longest wait for a lock is 30 s.
_LONGEST_LOOK = 120.0
_BAD_WORDS = ("malformed", "Traceback", "should not happen")

Start = Callable[..., "subprocess.Popen[bytes]"]


class Lookers:
    """Several at a time, each in a thread that starts one look after the other."""

    def __init__(self, start: Start, seed: int, *, at_a_time: int = 2, most_pause: float = 0.5) -> None:
        """`start` runs a `lienworker` command with the arguments and `stdout` that it gets."""
        self._start = start
        self._seed = seed
        self._at_a_time = at_a_time
        self._most_pause = most_pause
        self._over = threading.Event()
        self.looks: Counter[str] = Counter()
        self.killed = 0
        self.wrong: Counter[str] = Counter()

    @contextmanager
    def looking(self) -> Iterator[Lookers]:
        self._over.clear()
        threads = [threading.Thread(target=self._go_on, args=(n,), daemon=True) for n in range(self._at_a_time)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _go_on(self, number: int) -> None:
        dice = random.Random(f"{self._seed} {number}")
        while not self._over.is_set():
            self.look(dice.choice(LOOKS), dice)
            self._over.wait(dice.uniform(0.0, self._most_pause))

    def look(self, command: tuple[str, ...], dice: random.Random) -> None:
        name = " ".join(command)
        process = self._start(*command, stdout=subprocess.PIPE)
        is_killed = dice.random() < _KILLED_SHARE
        try:
            said, _ = process.communicate(timeout=dice.uniform(0.05, 0.8) if is_killed else _LONGEST_LOOK)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            if is_killed:
                self.killed += 1
            else:
                self.wrong[f"`{name}` did not end within {_LONGEST_LOOK:.0f} s"] += 1
        self.looks[name] += 1
        for word in _BAD_WORDS:
            if word in said.decode("utf-8", "replace"):
                self.wrong[f"`{name}` (exit code {process.returncode}) said: {_line_with(said, word)}"] += 1
                return


class Visitors:
    """Requests to the monitor, one after the other, as an open browser and Prometheus make them."""

    def __init__(self, port: int, token_file: Path, *, pause: float = 0.1) -> None:
        self._port = port
        self._token_file = token_file
        self._pause = pause
        self.answers: Counter[int] = Counter()
        self.unanswered = 0

    @contextmanager
    def visiting(self) -> Iterator[Visitors]:
        over = threading.Event()
        thread = threading.Thread(target=self._go_on, args=(over,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()

    def _go_on(self, over: threading.Event) -> None:
        while True:
            for path in PATHS:
                if over.wait(self._pause):
                    return
                self._visit(path)

    def _visit(self, path: str) -> None:
        """A monitor that is not there is nothing: parts of the node are killed all the time."""
        with ExitStack() as stack:
            stack.enter_context(contextlib.suppress(OSError, http.client.HTTPException))
            self.unanswered += 1
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
            stack.callback(connection.close)
            connection.request("GET", path, headers=self._headers())
            answer = connection.getresponse()
            answer.read()
            self.unanswered -= 1
            self.answers[answer.status] += 1

    def _headers(self) -> dict[str, str]:
        try:
            return {"Authorization": f"Bearer {self._token_file.read_text().strip()}"}
        except OSError:
            return {}


def _line_with(said: bytes, word: str) -> str:
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    if word == "Traceback":
        return lines[-1][:200]
    return next(line for line in lines if word in line).strip()[:200]
