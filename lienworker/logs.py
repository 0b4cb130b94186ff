"""Logs: readable lines on a terminal, JSON lines otherwise, from our own code and from libraries alike.

Secrets never get into a line: the values of secret settings are redacted, and so is what comes before the @ of an
address or after its `password=`, wherever it comes from. A failure that repeats is one line a minute.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO
from urllib.parse import unquote, unquote_plus, urlsplit

from lienworker.settings import Settings
from lienworker.text_safety import BLOT, visible, visible_json, without_passwords

#: What every JSON line has, in this order; the rest is present where it applies. docs/operations.md explains them.
ALWAYS = ("at", "level", "part", "pid", "logger", "message")
SOMETIMES = ("action", "task_id", "topic", "reason", "platform", "county", "trace")
#: Loggers that say more than an operator wants to know, unless asked for.
_CHATTY = ("dramatiq", "periodiq", "asyncio", "aiohttp")
#: As Redis accepts it: redis://host/0?password=…
_PASSWORD = re.compile(r"(?<=[?&]password=)[^&#\s'\"]+")
#: As in the monitor's link.
_TOKEN = re.compile(r"(?<=[?&]token=)[^&#\s'\"]+")
#: Shorter ones would redact ordinary words.
_SHORTEST_SECRET = 4
_LONGEST_MESSAGE = 10_000


class Redactor:
    """Removes secrets from a text."""

    def __init__(self, settings: Settings) -> None:
        secrets: set[str] = set()
        for item in fields(settings):
            value = getattr(settings, item.name)
            if item.metadata["secret"] and value:
                secrets |= _parts_of(str(value))
        longest_first = sorted((part for part in secrets if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        if self._secrets:  # first, while they are still intact
            text = self._secrets.sub(BLOT, text)
        text = without_passwords(text)
        if "token=" in text:
            text = _TOKEN.sub(BLOT, text)
        return _PASSWORD.sub(BLOT, text) if "password=" in text else text


def _parts_of(value: str) -> set[str]:
    """Return the secrets in a value: a token as it is; of an address, its passwords in all spellings."""
    if "://" not in value:
        return {value}
    passwords = {*_PASSWORD.findall(value), urlsplit(value).password or ""}
    return {spelling for word in passwords for spelling in (word, unquote(word), unquote_plus(word))}


class Lines(logging.Formatter):
    """What both shapes share."""

    def __init__(self, part: str, blot: Redactor) -> None:
        super().__init__()
        self.part = part
        self.blot = blot

    def words(self, record: logging.LogRecord) -> str:
        """Return the message, cut where it quotes a whole file, or a stranger's message."""
        words = self.blot(record.getMessage())
        return words if len(words) <= _LONGEST_MESSAGE else f"{words[:_LONGEST_MESSAGE]}… ({len(words):,} characters)"

    def trace(self, record: logging.LogRecord) -> str:
        return self.blot(self.formatException(record.exc_info)) if record.exc_info else ""


class JsonLines(Lines):
    """One object a line, with stable fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "part": self.part,
            "pid": record.process,
            "logger": record.name,
            "message": self.words(record),
        }
        line |= {name: self._field(value) for name in SOMETIMES if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            line["trace"] = self.trace(record)
        return visible_json(json.dumps(line, ensure_ascii=False, default=str))

    def _field(self, value: Any) -> Any:
        return self.blot(value) if isinstance(value, str) else value


class PlainLines(Lines):
    """For a person at a terminal; what strangers wrote cannot move the cursor."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        line = f"{at} {record.levelname:<7} {visible(self.words(record))}"
        return "\n".join((line, *map(visible, self.trace(record).split("\n")))) if record.exc_info else line


def setup_logging(settings: Settings, part: str, stream: TextIO | None = None) -> None:
    """Send all logs of this process to a stream (standard error by default)."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    is_plain = settings.log_format == "text" or (settings.log_format == "auto" and _is_terminal(stream))
    handler.setFormatter((PlainLines if is_plain else JsonLines)(part, Redactor(settings)))
    handler.addFilter(Repeats())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    if settings.log_level != "debug":
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
    for name, _, level in (pair.partition("=") for pair in settings.log_levels):
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(True)
    sys.excepthook = _note_end
    threading.excepthook = _note_thread


def _note_end(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    """Log what would end the process with a stack trace on standard error."""
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("lienworker").critical("unforeseen: %s", problem, exc_info=(kind, problem, trace))


def _note_thread(what: threading.ExceptHookArgs) -> None:
    if what.exc_value is not None and not isinstance(what.exc_value, SystemExit):
        _note_end(what.exc_type, what.exc_value, what.exc_traceback)


def about_task(action: str, task_id: str, topic: str, **more: str | None) -> dict[str, str | None]:
    """Return the fields of a line that tells how a task ended; pass them as `extra`."""
    return {"action": action, "task_id": task_id, "topic": topic, **more}


def _is_terminal(stream: TextIO) -> bool:
    try:
        return os.isatty(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return False


# A failure that repeats is one line a minute with a count; an expected one has no stack trace.
#
# Without this, three minutes without Redis were 5,634 stack traces: every consumer thread of every process repeats at
# each try what the first line has said already.


#: How long a failure is silent after its line, s.
QUIET_SECONDS = 60.0
#: How many failures are remembered; the oldest is dropped for a new one.
_MOST_FAILURES = 500
#: The outside world, unreachable or slow: what to do about it is in the message, not in our call stack. By name, since
#: every command would pay a tenth of a second for importing these libraries.
_EXPECTED = {
    "builtins.ConnectionError",
    "builtins.TimeoutError",
    "redis.exceptions.RedisError",
    "dramatiq.errors.ConnectionError",
}
_NUMBER = re.compile(r"\d+")

_Failure = tuple[str, str, type[BaseException] | None]


class Repeats(logging.Filter):
    """Belongs on a handler, which sees the lines of all loggers: ours, Dramatiq's, periodiq's and redis-py's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        #: When a failure was last logged, and how many lines were left out since.
        self._told: dict[_Failure, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or _is_outcome(record):
            return True
        left_out = self._left_out(_failure(record))
        if left_out is None:
            return False
        _drop_expected_trace(record)
        if left_out:
            # The count cannot be added to the template, which has other arguments: the message is formatted here.
            record.msg, record.args = f"{record.getMessage()} (and {left_out:,} times more since the last line)", ()
        return True

    def _left_out(self, failure: _Failure) -> int | None:
        """Return how many lines were left out since the last one, or None where this one is left out, too."""
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
    """Return whether a line says how a task ended: each task has its own, however many end in the same way."""
    return not record.exc_info and getattr(record, "task_id", None) is not None


def _failure(record: logging.LogRecord) -> _Failure:
    """Return what makes two lines the same failure.

    Libraries put message ids into their lines, so their template counts; the same where there is a stack trace. Ours
    name the thing that fails (a file, a part, a platform), so for them it is the message without its numbers.
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
