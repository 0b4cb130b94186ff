"""The child side of `limited`: does jobs from its input, one after the other, under limits that it sets itself.

python -m lienworker.limited_child CPU_SECONDS MEMORY_BYTES
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import os
import resource
import select
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from lienworker.errors import PageError, ShortageError
from lienworker.large_blocks import return_free_memory
from lienworker.limited import MOST_ANSWER
from lienworker.parent_watch import watch_parent

#: How long a child waits for its next job before it exits, s.
IDLE_SECONDS = 60.0
_MOST_LINES = 20
_LONGEST_LINE = 4_000
Job = Callable[[dict[str, Any], bytes], bytes]


class _Lines(logging.Handler):
    """Keeps what a job logs; the parent writes it to its own log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.lines) < _MOST_LINES:
            self.lines.append(self.format(record)[:_LONGEST_LINE])


def main() -> None:
    cpu_seconds, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    watch_parent(lambda: os._exit(1))
    jobs, answers = sys.stdin.buffer, _own_output()
    _limit_memory(memory_bytes)
    lines = _Lines()
    logging.getLogger().addHandler(lines)
    while (request := _next_request(jobs)) is not None:
        _limit_cpu(cpu_seconds)
        facts, payload = _answer(request, jobs.read(request["bytes"]))
        return_free_memory()  # the parent has to build the record, and the two of us share a limit
        facts |= {"log": lines.lines, "bytes": len(payload)}
        answers.write(json.dumps(facts).encode() + b"\n")
        answers.write(payload)
        answers.flush()
        payload = b""
        lines.lines = []


def _own_output() -> BinaryIO:
    """Return the pipe to the parent for ourselves alone: what a parser prints goes to standard error."""
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def _limit_memory(most: int) -> None:
    """Limit memory where the system can: macOS refuses any limit below what it maps for itself."""
    if sys.platform != "linux":
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _limit_cpu(seconds: int) -> None:
    """Limit processor time from now on; the kernel counts from the start of the process, in whole seconds."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _next_request(jobs: BinaryIO) -> dict[str, Any] | None:
    """Return the next job; None when the parent wants nothing more, or has been silent for a while."""
    ready, _, _ = select.select([jobs], [], [], IDLE_SECONDS)
    line = jobs.readline() if ready else b""
    return json.loads(line) if line else None


def _answer(request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        payload = _job(request["job"])(request["about"], body)
    except PageError as problem:
        facts = {"reason": problem.reason, "detail": problem.detail, "retryable": problem.retryable}
        return {"problem": "page", **facts}, b""
    except ShortageError as problem:
        return {"problem": "shortage", "detail": str(problem)}, b""
    except MemoryError:
        return {"problem": "limit", "detail": "it takes more memory than a page may have"}, b""
    except RecursionError:
        return {"problem": "limit", "detail": "it is nested too deeply"}, b""
    except Exception as problem:
        facts = {"reason": "parser_failed", "detail": f"{type(problem).__name__}: {problem}", "retryable": False}
        return {"problem": "page", **facts}, b""

    if len(payload) > MOST_ANSWER:
        detail = f"its result has {len(payload):,} bytes, and no more than {MOST_ANSWER:,} are taken"
        return {"problem": "limit", "detail": detail}, b""
    return {}, payload


def _job(name: str) -> Job:
    """Return a function of this package by its name; no other."""
    module, _, function = name.partition(":")
    if not module.startswith("lienworker."):
        raise ValueError(f"{name!r} is no job of ours")
    job: Job = getattr(importlib.import_module(module), function)
    return job


if __name__ == "__main__":
    main()
