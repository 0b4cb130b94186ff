"""Work that may hang or fill the memory, done in a child process with limits for both.

A child is started when it is first needed, does one job after the other, and exits when it has been idle for a while or
when its parent is gone. A job is a function of this package, named `module:function`, from a few facts and bytes to
bytes. It costs a third of a second for the first job, a millisecond for each other.

The child limits itself (see `limited_child`); this side limits the wall-clock time and the size of the answer. A child
that has exceeded a limit is dead, and the next job gets a new one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess  # our own child, as an argument list  # nosec B404
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lienworker.errors import LienworkerError, PageError, ShortageError

#: What a job may use: processor seconds, wall-clock seconds, bytes of address space (the interpreter takes 60 MB).
CPU_SECONDS = 6
WALL_SECONDS = 40.0
MEMORY_BYTES = 240 * 1024 * 1024
#: Bytes of an answer; the caller has to hold all of it.
MOST_ANSWER = 16_000_000
#: Our settings, some of them secret, are not passed on: no parser needs them.
_OURS = ("LIENWORKER_", "GATEWAY_", "REDIS_", "WORKER_ID")

logger = logging.getLogger(__name__)


class OverLimitError(LienworkerError):
    """The job needed more than it may have, or crashed its process: a verdict on what it worked on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may use. Tests use less."""

    cpu_seconds: int = CPU_SECONDS
    wall_seconds: float = WALL_SECONDS
    memory_bytes: int = MEMORY_BYTES


class LimitedProcess:
    """A child with limits. One job at a time; callers from several threads wait for each other."""

    def __init__(self, limits: Limits | None = None, *, quiet: bool = False) -> None:
        """`quiet`: what libraries print before they end the process is for nobody; the caller has a sentence for it."""
        self.limits = limits or Limits()
        self._stderr = subprocess.DEVNULL if quiet else None
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, job: str, about: Mapping[str, Any], body: bytes) -> bytes:
        """Return the answer; raise OverLimitError, the job's own PageError, or ShortageError where no child starts."""
        request = json.dumps({"job": job, "about": about, "bytes": len(body)}).encode() + b"\n"
        with self._turn:
            try:
                return self._ask(request, body)
            except _DiedError as death:
                # An idle child may exit just now, and the machine may have killed it for memory: try once more.
                logger.info("a limited process died (%s); the job gets another", death)
            try:
                return self._ask(request, body)
            except _DiedError as death:
                raise OverLimitError(f"its process died twice ({death})") from None

    def close(self) -> None:
        """End the child. The next job would start another."""
        with self._turn:
            self._end()

    def _ask(self, request: bytes, body: bytes) -> bytes:
        child = self._started()
        watch = _WallWatch(child, self.limits.wall_seconds)
        try:
            answer, payload = _exchange(child, request, body)
        except (OSError, ValueError, KeyError):
            self._end()
            raise _death_of(child, watch, self.limits) from None
        finally:
            watch.cancel()
        return self._unpacked(answer, payload)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._end()
            self._child = _start(self.limits, self._stderr)
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe:
                    _close(pipe)

    def _unpacked(self, answer: dict[str, Any], payload: bytes) -> bytes:
        for line in answer.get("log", ()):
            logger.warning("%s", line)
        problem = answer.get("problem")
        if problem is None:
            return payload
        self._end() if problem == "limit" else None  # a failed allocation leaves a child of no use
        if problem == "page":
            raise PageError(answer["reason"], answer["detail"], retryable=answer["retryable"])
        if problem == "shortage":
            raise ShortageError(answer["detail"])
        raise OverLimitError(answer["detail"])


class _DiedError(Exception):
    """The child is gone, and no limit of ours says why."""


class _WallWatch:
    """Kills a child that takes too long."""

    def __init__(self, child: subprocess.Popen[bytes], seconds: float) -> None:
        self.has_killed = False
        self._child = child
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.daemon = True
        self._timer.start()

    def _kill(self) -> None:
        self.has_killed = True
        self._child.kill()

    def cancel(self) -> None:
        self._timer.cancel()


def _start(limits: Limits, stderr: int | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "lienworker.limited_child", str(limits.cpu_seconds)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environment["MALLOC_ARENA_MAX"] = "1"  # each further arena reserves 64 MB of the address space
    try:
        return subprocess.Popen(  # our own interpreter and module  # nosec B603
            [*command, str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
        )
    except (OSError, MemoryError) as problem:
        raise ShortageError(f"no process can be started to parse a page in: {problem}") from None


def _exchange(child: subprocess.Popen[bytes], request: bytes, body: bytes) -> tuple[dict[str, Any], bytes]:
    """Send the job and read the answer. An end of file instead of an answer is a ValueError."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(request)
    child.stdin.write(body)
    child.stdin.flush()
    answer: dict[str, Any] = json.loads(child.stdout.readline())
    size = min(answer["bytes"], MOST_ANSWER)
    payload = child.stdout.read(size)
    if len(payload) < size:
        raise ValueError("the answer is cut off")
    return answer, payload


def _death_of(child: subprocess.Popen[bytes], watch: _WallWatch, limits: Limits) -> LienworkerError | _DiedError:
    if watch.has_killed:
        return OverLimitError(f"it takes more than {limits.wall_seconds:g} s")
    if child.returncode == -signal.SIGXCPU:
        return OverLimitError(f"it takes more than {limits.cpu_seconds} s of the processor")
    return _DiedError(f"exit status {child.returncode}")


def _close(pipe: Any) -> None:
    with contextlib.suppress(OSError):  # what was left to write cannot be written
        pipe.close()


_shared = LimitedProcess()


def run_limited(job: str, about: Mapping[str, Any], body: bytes) -> bytes:
    """Do a job in this process's one child; see LimitedProcess.run."""
    return _shared.run(job, about, body)
