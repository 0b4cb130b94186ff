"""A failure that repeats is one line a minute with a count; one that is to be expected has no trace.

Without this, three minutes without Redis were 5,634 traces: every consumer thread of every process says at each try
what the first line has said already.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable

#: How long a failure is silent after its line, s.
QUIET_SECONDS = 60.0
#: Failures that are remembered; the oldest is forgotten for a new one.
_MOST_FAILURES = 500
#: The outside world, away or slow: what to do about it is in the message, not in our call stack. By name, since every
#: command would pay a tenth of a second for importing these libraries.
_EXPECTED = {
    "builtins.ConnectionError",
    "builtins.TimeoutError",
    "redis.exceptions.RedisError",
    "dramatiq.errors.ConnectionError",
}
_NUMBER = re.compile(r"\d+")

_Failure = tuple[str, str, type[BaseException] | None]


class Repeats(logging.Filter):
    """Belongs on a handler, where the lines of all loggers come by: ours, Dramatiq's, periodiq's and redis-py's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        #: When a failure last had a line, and how many it has not had since.
        self._told: dict[_Failure, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or _is_outcome(record):
            return True
        left_out = self._left_out(_failure(record))
        if left_out is None:
            return False
        _drop_expected_trace(record)
        if left_out:
            # A count that came of other arguments cannot go into the template: the message is finished here.
            record.msg, record.args = f"{record.getMessage()} (and {left_out:,} times more since the last line)", ()
        return True

    def _left_out(self, failure: _Failure) -> int | None:
        """Return how many lines were left out since the last one, or None where this one is left out too."""
        now = self._clock()
        with self._lock:
            at, n = self._told.pop(failure, (None, 0))
            if at is not None and now - at < QUIET_SECONDS:
                self._told[failure] = (at, n + 1)
                return None
            if len(self._told) >= _MOST_FAILURES:
                del self._told[next(iter(self._told))]
            self._told[failure] = (now, 0)
            return n


def _is_outcome(record: logging.LogRecord) -> bool:
    """Whether a line tells how a task ended: each task has its own, however many end in the same way."""
    return not record.exc_info and getattr(record, "task_id", None) is not None


def _failure(record: logging.LogRecord) -> _Failure:
    """Return what makes two lines the same failure.

    Libraries put message ids into their lines, so it is their template that counts; the same where there is a trace.
    Ours name the thing that fails (a file, a part, a platform), so for them it is the words without the numbers.
    """
    kind = record.exc_info[0] if record.exc_info else None
    is_ours = record.name.startswith("lienworker") and kind is None
    words = _NUMBER.sub("0", record.getMessage()) if is_ours else str(record.msg)
    # Dramatiq has a logger for each queue: ConsumerThread(fetch), ConsumerThread(beat).
    return record.name.partition("(")[0], words[:500], kind


def _drop_expected_trace(record: logging.LogRecord) -> None:
    problem = record.exc_info[1] if record.exc_info else None
    if problem and any(f"{kind.__module__}.{kind.__name__}" in _EXPECTED for kind in type(problem).__mro__):
        record.msg, record.args = f"{record.getMessage()} {type(problem).__name__}: {problem}", ()
        record.exc_info = record.exc_text = None
