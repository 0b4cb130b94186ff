"""A parse that hangs ends its process, and nobody else's work with it.

Most pages that could hang a parser are recognized before, and parsed in a child (`platforms.guarded`). For the others a
thread checks once a second on the parses in progress. One that is over its deadline cannot be stopped, since Python has
no way to end a thread; so the process is ended. What is done is committed before, other rows in the same hands are
given back untried, and the row of the hanging page loses an attempt: it is quarantined, and parsed in the child.

A parser that is stuck inside C (a regular expression) lets no other thread run, not even that one. Against it the
kernel keeps a timer of processor time that this thread resets at each check; when it runs out, the kernel ends the
process, with all that it held.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lienworker.logs import about_task
from lienworker.outbox.rows import Claimed

if TYPE_CHECKING:
    from lienworker.steps.scrape import Scraped

#: Processor seconds that a page may take here, and wall-clock seconds: a parser may wait for something.
CPU_SECONDS = 8.0
WALL_SECONDS = 60.0
#: Processor seconds of the whole process without one check of the watchdog.
_STUCK_SECONDS = 20.0
_LOOK_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Parse:
    """A parse in progress."""

    row: Claimed
    finished: Sequence[Scraped]
    thread: int = field(default_factory=threading.get_ident)
    since: float = field(default_factory=time.monotonic)
    cpu_since: float = field(default_factory=time.thread_time)

    def is_over(self, cpu_seconds: float, wall_seconds: float) -> bool:
        return _cpu_of(self.thread) - self.cpu_since > cpu_seconds or time.monotonic() - self.since > wall_seconds


class Watchdog:
    """The parses in progress in this process. Watches nothing until it is started."""

    def __init__(self, cpu_seconds: float = CPU_SECONDS, wall_seconds: float = WALL_SECONDS) -> None:
        self._limits = (cpu_seconds, wall_seconds)
        self._parses: dict[int, Parse] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, row: Claimed, finished: Sequence[Scraped]) -> Iterator[None]:
        """Watch over one parse; `finished` is what its thread has parsed and not stored yet."""
        parse = Parse(row, finished)
        self._parses[parse.thread] = parse
        try:
            yield
        finally:
            del self._parses[parse.thread]

    def start(self, when_over: Callable[[Parse], None]) -> None:
        """Start watching; `when_over` gets the parse that hangs, and should not return."""
        self._thread = threading.Thread(target=self._watch, args=(when_over,), name="watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, when_over: Callable[[Parse], None]) -> None:
        looked = time.monotonic()
        while not self._stop.wait(_LOOK_SECONDS):
            _wind_up(_STUCK_SECONDS)
            now = time.monotonic()
            if now - looked > 5 * _LOOK_SECONDS:
                self._start_over(now)  # the process itself stood still (stopped, swapped out): no page's fault
            looked = now
            if parse := self._hanging():
                row, words = parse.row, "parsing %s hangs; this process ends"
                logger.error(words, row.url, extra=about_task("hang", row.task_id, row.topic))
                _wind_up(0)
                when_over(parse)
                return
        _wind_up(0)

    def _start_over(self, now: float) -> None:
        for parse in list(self._parses.values()):
            parse.since = now

    def _hanging(self) -> Parse | None:
        return next((parse for parse in list(self._parses.values()) if parse.is_over(*self._limits)), None)


def _cpu_of(thread: int) -> float:
    """Return a thread's processor time; where the system does not tell (macOS), only the wall-clock limit applies."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    except (AttributeError, OSError):
        return 0.0


def _wind_up(seconds: float) -> None:
    """Set the kernel's timer; 0 stops it. Do nothing where another user of its signal is found (a profiler)."""
    if signal.getsignal(signal.SIGPROF) is signal.SIG_DFL:
        signal.setitimer(signal.ITIMER_PROF, seconds)
