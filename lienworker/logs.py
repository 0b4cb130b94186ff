"""Logs: readable lines on a terminal, JSON lines otherwise."""

from __future__ import annotations

import json
import logging
import sys
from typing import TextIO

_FIELDS = ("action", "task_id", "topic")
#: Loggers that tell more than an operator wants to know, unless he asks for debug.
_CHATTY = ("dramatiq", "periodiq", "asyncio", "aiohttp")


class JsonLines(logging.Formatter):
    """One object a line, with stable fields."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in _FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def setup_logging(level: str, stream: TextIO | None = None) -> None:
    """Sends this process's logs to a stream (standard error unless told)."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(plain if _is_terminal(stream) else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    if level != "debug":
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)


def _is_terminal(stream: TextIO) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())
