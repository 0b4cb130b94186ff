"""Other processes for the walk: one that has everything heavy imported, and forks a child for each errand.

python -m tests.killpoints.children      then a line of JSON for each order; each is answered by a line

A child is a process as an operator would have started it: `lienworker …`, or a worker of Dramatiq's with the real
actors on the real Redis. It only starts in a tenth of the time, and may be told to die at a point.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lienworker import failpoints

_HEAVY = (
    "dramatiq.asyncio", "dramatiq.brokers.redis", "periodiq", "aiohttp.web", "parsel", "jinja2", "protego",
    "lienworker.cli", "lienworker.hubs.gateway.client", "lienworker.fetching", "lienworker.platforms",
    "lienworker.steps.import_file", "lienworker.repair.doctor", "lienworker.operator.archive",
    "lienworker.maintenance.clocks", "lienworker.operator.rows", "lienworker.outbox.leases",
)  # fmt: skip
_THREADS = 8
#: A second of real life in which a worker says that it lives three times.
_PULSE = 0.3
#: A parse that takes so much of the processor hangs, s: in a worker, and in its child.
_HANGS = 1


# What a test sees


class Children:
    """The process that forks, as a test sees it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killpoints.children"],
            cwd=Path(__file__).parents[2],
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, errand: str, environment: dict[str, str], said: Path, **order: Any) -> Child:
        """A child that does an errand; what it says goes to a file."""
        order |= {"errand": errand, "environment": environment, "said": str(said)}
        return Child(self, self._ask(order), said)

    def run(self, errand: str, environment: dict[str, str], said: Path, **order: Any) -> int:
        """The same to its end; gives the exit code, negative for the signal that it died of."""
        return self.start(errand, environment, said, **order).wait()

    def _ask(self, order: dict[str, Any]) -> Any:
        with self._lock:
            assert self._process.stdin
            assert self._process.stdout
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)


@dataclass
class Child:
    family: Children
    pid: int
    said: Path
    code: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it lives."""
        if self.code is None:
            self.code = self.family._ask({"poll": self.pid})
        return self.code

    def wait(self, seconds: float = 60.0) -> int:
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"it did not end within {seconds} s: {self.said.read_text()[-3000:]}")
            time.sleep(0.01)
        return code


# What the children do


def main() -> None:
    import importlib

    for name in _HEAVY:
        importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(_poll(order["poll"]) if "poll" in order else _fork(order)), flush=True)


def _fork(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 8
    try:
        code = _live(order)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 9
    except BaseException:
        logging.exception("the errand failed")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _poll(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _live(order: dict[str, Any]) -> int:
    said = os.open(order["said"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, to in ((nothing, 0), (said, 1), (said, 2)):
        os.dup2(number, to)
    os.environ.clear()
    os.environ.update(order["environment"])
    seen: Counter[str] = Counter()
    trace = Path(order["trace"]) if "trace" in order else None
    failpoints.watch(_hook(seen, order.get("at"), order.get("hit", 1), trace))
    try:
        code: int = {"worker": _work, "cli": _cli, "send": _send, "tick": _tick, "metrics": _metrics}[order["errand"]](
            order
        )
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    return code


def _hook(seen: Counter[str], armed: str | None, hit: int, trace: Path | None) -> failpoints.Hook:
    """Counts the points; at the armed one, the time that it is to strike, the power goes."""
    lock = threading.Lock()

    def note(point: str) -> None:
        with lock:
            seen[point] += 1
            if trace:  # at each: a process may end itself
                trace.write_text(json.dumps(seen))
            if point == armed and seen[point] >= hit:
                os.kill(os.getpid(), signal.SIGKILL)

    return note


def _cli(order: dict[str, Any]) -> int:
    from lienworker.cli import main

    sys.argv = ["lienworker", *order["arguments"]]
    main()
    return 0


def _send(order: dict[str, Any]) -> int:
    from lienworker.actors import scrape_url

    scrape_url.send(order["url"])
    return 0


def _tick(_order: dict[str, Any]) -> int:
    """The schedule, for one of its minutes."""
    from lienworker.actors import broker
    from lienworker.db.database import open_store
    from lienworker.stack.schedule import Ticks, record_tick

    open_store(Path(os.environ["LIENWORKER_DATA_DIR"]))
    record_tick()
    broker.add_middleware(Ticks())
    broker.get_actor("relay").send()
    return 0


def _metrics(_order: dict[str, Any]) -> int:
    """What a scrape of the monitor makes."""
    from lienworker.db.database import open_store
    from lienworker.settings import Settings
    from lienworker.web.metrics import metrics
    from lienworker.web.names import Names
    from lienworker.web.pages import Place

    folder = open_store(Path(os.environ["LIENWORKER_DATA_DIR"]))
    print(metrics(Place(Settings(), folder, read_only=False), Names(may_write=True)))
    return 0


def _work(order: dict[str, Any]) -> int:
    """A worker process, until the file `stop` is there: then it ends as at a SIGTERM."""
    from dramatiq import Worker

    from lienworker import limited
    from lienworker.outbox import leases
    from lienworker.steps import watchdog
    from lienworker.store import counts

    leases.PULSE_SECONDS = _PULSE
    watchdog.Watchdog.__init__.__defaults__ = (_HANGS, watchdog.WALL_SECONDS)
    limited._shared.limits = limited.Limits(cpu_seconds=_HANGS)
    watchdog._LOOK_SECONDS = 0.1
    minute = counts.this_minute()
    counts.this_minute = lambda: minute // 60 * 60  # on the full hour, when old minutes are folded
    from lienworker.actors import broker

    broker.emit_after("process_boot")
    worker = Worker(broker, worker_timeout=100, worker_threads=_THREADS)
    worker.start()
    stop = Path(order["stop"])
    while not stop.exists():
        time.sleep(0.02)
    worker.stop(timeout=5000)
    return 0


if __name__ == "__main__":
    main()
