"""The real stack under random faults, and the balance afterwards.

    python -m chaos --seconds 600 --seed 7 [--tasks 3000] [--keep FOLDER]

A reference Gateway hands out tasks, a demo county serves pages; for the given time the faults of the plan strike
(`--plan` shows it and does nothing), while people look, the Gateway answers some calls with 429, and some sites mean
harm. Then everything is mended, the stack works off what is left, and what was lost or done twice is counted: see
docs/reliability.md. Exit 0: nothing was. Exit 1: something was, or it did not settle.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import itertools
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from chaos.balance import Balance, Books, draw_up
from chaos.counties import HOST_DELAY, Counties
from chaos.faults import Breaker
from chaos.locks import LockWatch, can_watch
from chaos.lookers import Lookers, Visitors
from chaos.node import ChaosNode, small_disk
from chaos.plan import CONDITIONS, KINDS, Event, make_plan
from chaos.storage import MODES
from chaos.witness import WatchedGateway, Witness
from lienworker.testing.gateway import ReferenceGateway

_DISK_MB = 400
_PROCESSES, _THREADS, _BATCH = 2, 6, 16
#: Threads of a process that never work on pages.
_RESERVED = 4
#: The longest that nothing may end after all faults are over: a probe that died is given up after two minutes.
#: And the last tries of a page that never ends are six minutes apart.
_PATIENCE = 420.0
_FAULTS_OF_STORAGE = ("full_disk", "rude_writer", "few_files", "stop_worker", "no_inodes", "eio", "read_only")
#: The share of calls that the Gateway answers with 429, and the seconds that it asks for.
_RATE_LIMITED, _RETRY_AFTER = 0.03, 2.0
#: "This should not happen": the program itself has failed.
_OUR_OWN_FAULT = 70


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is to be."""

    seconds: float
    seed: int
    tasks: int
    only: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(name for name in CONDITIONS if not self.only or name in self.only)


class Run:
    """One run, from the first task to the balance."""

    def __init__(self, asked: Asked, place: Path, stack: ExitStack) -> None:
        self._seconds = asked.seconds
        self._plan = make_plan(asked.seed, asked.seconds, asked.only)
        self._tasks = asked.tasks
        self._place = place
        self._began = 0.0
        self._fed = 0
        self._numbers = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        has_disk = stack.enter_context(small_disk(place / "disk", _DISK_MB))
        self._conditions = asked.conditions
        self._seed = asked.seed
        state = WatchedGateway("reference-token")
        state.configure(retry_without_tasks=1)
        self.gateway = ReferenceGateway(state)
        stack.callback(self.gateway.close)
        self.gateway.start_listening()
        port = _free_port()
        self.node = ChaosNode(place / "disk" / "data", place / "node.log", **self._settings(port))
        stack.callback(self.node.kill_everything)
        self.witness = state.witness = Witness(self.node.data)
        self.counties = Counties(asked.seed, asked.seconds, asked.conditions)
        self.counties.serve(stack, self.witness)
        self.books = Books(self.node.data)
        disk = place / "disk" if has_disk else None
        self.breaker = Breaker(self.node, self.counties.honest, self.gateway, asked.seed, disk)
        self.lookers = Lookers(self.node.command, asked.seed, at_a_time=1, most_pause=1.0)
        self.visitors = Visitors(port, self.node.data / "web_token", pause=0.5)
        self.watch = LockWatch(self.node.data / "lienworker.db", lambda: [p.pid for p in self.node.processes()])

    def _settings(self, port: int) -> dict[str, str]:
        return {
            "GATEWAY_URL": self.gateway.url,
            "GATEWAY_TOKEN": self.gateway.token,
            "LIENWORKER_GATEWAY_RETRY": "0.3",
            "LIENWORKER_HEARTBEAT": "5",
            "LIENWORKER_TASK_EXPIRY": "80000",
            "LIENWORKER_FETCH_TIMEOUT": "6",
            "LIENWORKER_READ_TIMEOUT": "3",
            "LIENWORKER_FETCH_ATTEMPTS": "8",
            "LIENWORKER_HOST_CONCURRENCY": "16",
            "LIENWORKER_HOST_DELAY": str(HOST_DELAY),
            "LIENWORKER_PROCESSES": str(_PROCESSES),
            "LIENWORKER_THREADS": str(_THREADS),
            "LIENWORKER_BATCH": str(_BATCH),
            "LIENWORKER_DISK_WARN_MB": "40",
            "LIENWORKER_DISK_STOP_INTAKE_MB": "30",
            "LIENWORKER_DISK_STOP_FETCH_MB": "20",
            "LIENWORKER_WEB_PORT": str(port),
        }

    def break_things(self) -> None:
        """The stack works, tasks come in, and the plan is carried out."""
        self._began = self.counties.began = time.monotonic()
        self._limit_rate()
        for event in self._plan:
            self._at(event.at, lambda event=event: self._begin(event))
        while self._elapsed() < self._seconds or self._agenda:
            self._step()
            self._feed()
            while self._agenda and self._agenda[0][0] <= self._elapsed():
                heapq.heappop(self._agenda)[2]()
        self._feed(everything=True)

    def _limit_rate(self) -> None:
        if "rate_limit" in self._conditions:
            self.gateway.fault("429", probability=_RATE_LIMITED, seconds=_RETRY_AFTER, seed=self._seed)

    def _skipped(self) -> dict[str, str]:
        said = {} if can_watch() else {"locks and deleted files": "this system has no /proc that shows them"}
        return {**self.breaker.skipped, **said}

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """People look, and somebody looks at the locks, for as long as the block lasts."""
        with ExitStack() as stack:
            if can_watch():
                stack.enter_context(self.watch.watching())
            if "look" in self._conditions:
                stack.enter_context(self.lookers.looking())
                stack.enter_context(self.visitors.visiting())
            yield

    def start(self) -> None:
        """Nothing is broken before it has once been whole."""
        for kind, why in self._skipped().items():
            _say(f"SKIPPED: {kind}: {why}")
        deadline = time.monotonic() + 60
        while len(self.node.workers()) < _PROCESSES or not self.node.is_up("collect"):
            if time.monotonic() > deadline:
                raise SystemExit("chaos: the stack does not start, see node.log (--keep FOLDER)")
            self.node.tend()
            time.sleep(0.2)

    def settle(self) -> bool:
        """Everything is mended; True once nothing moves any more by itself."""
        self.gateway.clear_faults()
        self._limit_rate()  # no fault, but how some Gateways are
        self.gateway.start_listening()
        self.counties.mend_all()
        _say(f"{self._elapsed():6.1f} s  all faults are over; the stack works off what is left")
        deadline, calm, ended = 0.0, 0, -1
        while calm < 10 and (time.monotonic() < deadline or ended < self.books.ended()):
            if ended < (now := self.books.ended()):  # as long as it gets on, it may take its time
                ended, deadline = now, time.monotonic() + _PATIENCE
            self._step()
            is_calm = not self.gateway.state.waiting_tasks and not self.breaker.are_commands_running
            calm = calm + 1 if is_calm and self.books.moving(self.counties.patient) == 0 else 0
        _say(f"{self._elapsed():6.1f} s  " + ("settled" if calm else f"NOT SETTLED: {self.books.in_words()}"))
        return bool(calm)

    def balance(self) -> Balance:
        struck = sum(self.breaker.begun.get(kind, 0) for kind in _FAULTS_OF_STORAGE)
        ends = self.node.worker_deaths + _PROCESSES * struck
        most = ends * (_THREADS - _RESERVED) * _BATCH
        code = self.node.stop()
        sightings, promised = self.witness.sightings, self.breaker.promised
        made = draw_up(self.books, self.counties, self.gateway.state, sightings, promised, most)
        if code != 0:
            made.wrong.append(f"the stack ended with exit code {code}")
        self.books.keep(self._place / "lienworker.db")  # the disk goes, this may stay
        doctor = self.node.cli("doctor")
        if doctor.returncode != 0:
            made.wrong += [line for line in doctor.stdout.splitlines() if line.startswith("BAD")] or [doctor.stderr]
        self._add_processes(made)
        self._add_looks(made)
        self._add_faults(made)
        return made

    def _add_processes(self, made: Balance) -> None:
        ends = ", ".join(f"{n} with {code}" for code, n in sorted(self.node.ends.items()))
        made.lines.append(("worker processes that ended", f"{self.node.worker_deaths:,}"))
        made.lines.append(("stacks started", f"{self.node.supervisors:,}; ended: {ends or 'none'}"))
        if failed := self.node.ends[_OUR_OWN_FAULT]:
            made.wrong.append(f"the stack ended by itself with exit code {_OUR_OWN_FAULT}, {failed} times")
        seen = self.watch.looks
        made.lines.append(("processes seen with the database open", f"{len(seen.pids):,} in {seen.taken:,} glances"))
        made.wrong += seen.sentences

    def _add_looks(self, made: Balance) -> None:
        looks = ", ".join(f"{n} {name}" for name, n in sorted(self.lookers.looks.items()))
        answers = ", ".join(f"{n} with {status}" for status, n in sorted(self.visitors.answers.items()))
        made.lines.append(("looks", f"{looks or 'none'}; {self.lookers.killed} killed"))
        made.lines.append(("visits to the monitor", f"{answers or 'none'}; {self.visitors.unanswered} unanswered"))
        made.wrong += [f"{words} ({n} times)" for words, n in self.lookers.wrong.items()]

    def _add_faults(self, made: Balance) -> None:
        """How often each struck; one that did not is seen, too."""
        limited = sum(request.fault == "rate_limited" for request in self.gateway.state.requests)
        made.lines.append(("calls that the Gateway answered with 429", f"{limited:,}"))
        calls = ", ".join(f"{self.node.disk.struck(kind):,} {kind}" for kind in MODES)
        made.lines.append(("file calls that failed", calls))
        made.lines.append(("faults", ", ".join(f"{self.breaker.begun.get(kind, 0)} {kind}" for kind in KINDS)))

    def _begin(self, event: Event) -> None:
        _say(event.in_words())
        end = self.breaker.begin(event)
        self._at(self._elapsed() + event.seconds, end)

    def _at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._numbers), action))

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _step(self) -> None:
        self.node.tend()
        self.breaker.tend()
        time.sleep(0.1)

    def _feed(self, *, everything: bool = False) -> None:
        """Tasks come in evenly over the time."""
        wanted = self._tasks if everything else int(self._tasks * min(1.0, self._elapsed() / self._seconds))
        for number in range(self._fed, wanted):
            self.gateway.enqueue(self.counties.task(number, self._elapsed() / self._seconds))
        self._fed = max(self._fed, wanted)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _say(words: str) -> None:
    print(words, flush=True)


def chaos(asked: Asked, place: Path) -> Balance:
    """A whole run in a folder; gives its balance."""
    with ExitStack() as stack:
        run = Run(asked, place, stack)
        _say(f"chaos: {asked.seconds:g} s, seed {asked.seed}, {asked.tasks:,} tasks, {_PROCESSES} worker processes")
        run.start()
        with run.watched():
            run.break_things()
            is_settled = run.settle()
        made = run.balance()
        if not is_settled:
            made.wrong.append("it did not settle")
        return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long faults strike")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same plan of faults")
    parser.add_argument("--tasks", type=int, default=0, help="tasks from the Gateway; 0 means five a second")
    parser.add_argument("--keep", type=Path, help="leave log and data here (a disk that was mounted is gone)")
    parser.add_argument("--plan", action="store_true", help="show the plan and do nothing")
    parser.add_argument(
        "--only", default="", help=f"only these faults, with commas: {', '.join((*KINDS, *CONDITIONS))}"
    )
    said = parser.parse_args()
    tasks = said.tasks or int(5 * said.seconds)
    asked = Asked(said.seconds, said.seed, tasks, tuple(filter(None, said.only.split(","))))
    if said.plan:
        for event in make_plan(asked.seed, asked.seconds, asked.only):
            _say(event.in_words())
        return 0
    for number in (signal.SIGTERM, signal.SIGHUP):  # as with Ctrl-C, it leaves no stack and no disk behind
        signal.signal(number, lambda which, _frame: sys.exit(128 + which))
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        place = said.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        made = chaos(asked, place)
    _say("The balance:")
    for line in made.in_words():
        _say(line)
    _say("Nothing was lost and nothing doubled." if made.is_well else "This is not as it should be.")
    return 0 if made.is_well else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.SubprocessError as problem:
        sys.exit(f"chaos: {problem}")
