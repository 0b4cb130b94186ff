"""The supervisor: starts the parts, restarts those that die, stops them in reverse order.

The data folder is guarded by a file lock that the kernel releases with the process, so no pid file can lie. Each part
gets the reading end of a pipe (see `lienworker.parent_watch`): when the supervisor dies, they all end.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import subprocess  # our own parts, as argument lists, never through a shell  # nosec B404
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from lienworker.broker import redis_url, refuse_redis_away, refuse_redis_url
from lienworker.data_folder import DataFolder, try_lock
from lienworker.db.database import DATABASE_TROUBLE, is_damage, open_store
from lienworker.errors import BusyError, DamageError, OperatorError, SettingsError
from lienworker.outbox.leases import living
from lienworker.parent_watch import LIFELINE_FD
from lienworker.settings import Settings
from lienworker.stack.parts import PLAIN, Choice, Part, parts_of
from lienworker.stack.redis_server import throw_data_away
from lienworker.store.damage import confirmed_damage, known_damage, record_damage

_READY_SECONDS = 10.0
_STOP_SECONDS = 10.0
#: Workers may wait for the reply of a poll, which has 30 s; then they have threads to end.
_WORKERS_STOP_SECONDS = 50.0
#: How long workers have after a second Ctrl-C: they end by themselves, a reply that comes meanwhile is stored.
_KILL_SECONDS = 5.0
_LOCK_SECONDS = 0.5
#: Pauses before restarts of a part that keeps dying, s.
_RESTART_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
#: A part that has lived this long starts over with the shortest pause.
_STEADY_SECONDS = 30.0
#: How long workers may be missing under a living master, s; doubled each time, for a slow machine.
_BOOT_PATIENCE = 15.0
_LONGEST_PATIENCE = 240.0
#: How often unusable storage is logged, s.
_SAY_EVERY_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1
#: Dramatiq reads these when it is imported: how soon an idle thread notices a stop, and a consumer a new Redis; ms.
_DRAMATIQ = {"dramatiq_worker_timeout": "500", "dramatiq_restart_delay": "500"}

logger = logging.getLogger(__name__)


@dataclass
class Child:
    """A part and its process."""

    part: Part
    process: subprocess.Popen[bytes]
    started: float
    deaths: int = 0
    restart_at: float = 0.0
    next_look: float = 0.0
    complete_at: float = 0.0
    patience: float = _BOOT_PATIENCE

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None


@dataclass
class Supervisor:
    """The stack on one data folder. Use `running_stack`."""

    settings: Settings
    folder: DataFolder
    log: IO[bytes] | None = None
    choice: Choice = PLAIN
    children: list[Child] = field(default_factory=list)
    _quiet_until: float = 0.0
    _read_end: int | None = None
    _write_end: int | None = None

    def start(self) -> None:
        self._read_end, self._write_end = os.pipe()
        for part in parts_of(self.settings, self.folder, self.choice):
            self.children.append(Child(part, self._spawn(part), time.monotonic()))
            self._wait_ready(self.children[-1])

    def tend(self) -> None:
        """Restart what has died or hangs; call it a few times a second.

        On a damaged database nothing is done any more: each further write could harm what can still be saved. Storage
        that cannot be read or written for a while ends nothing: the parts log it, and so does the supervisor.
        """
        try:
            refuse_damage(self.folder, known_damage(self.folder))
            for child in self.children:
                if not child.is_alive:
                    self._revive(child)
                elif child.part.name == "workers":
                    self._check_workers(child)
        except (OSError, *DATABASE_TROUBLE) as problem:
            self.endure(problem)

    def endure(self, problem: Exception) -> None:
        """Log a problem once a minute; if SQLite reports damage, take a second look before believing it."""
        if is_damage(problem):
            record_damage(self.folder, str(problem))
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + _SAY_EVERY_SECONDS
            logger.warning(
                "the data folder %s cannot be used for now: %s; the stack waits for it",
                self.folder.root,
                problem,
                extra={"action": "storage"},
            )

    def stop(self) -> None:
        """Stop the parts and wait for them; kill a part that does not react.

        All are told at once: workers take nothing new while another part ends. Only Redis has to outlive them.
        """
        for child in reversed(self.children):
            if child.part.name != "redis" and child.is_alive:
                child.process.terminate()
        for child in reversed(self.children):
            self._wait_for_end(child)
        self._close_lifeline()

    def kill(self) -> None:
        """Stop everything within seconds. What is stored stays: that is what the outbox is for.

        The tasks of a poll that the Gateway answers later than that are lost, for it never hands them out again. One
        that it answers in time is stored: workers whose lifeline is cut wait for it before they leave.
        """
        self._close_lifeline()
        masters = [child.process for child in self.children if child.part.name == "workers"]
        for child in reversed(self.children):
            if child.process in masters:
                child.process.kill()
            else:
                _signal_group(child.process, signal.SIGKILL)
        for process in masters:
            _wait_for_group(process, _KILL_SECONDS)
            _signal_group(process, signal.SIGKILL)
        for child in self.children:
            with contextlib.suppress(subprocess.TimeoutExpired):  # a plain wait may have been interrupted by this one
                child.process.wait(1.0)

    def _spawn(self, part: Part) -> subprocess.Popen[bytes]:
        assert self._read_end is not None
        if part.name == "redis":
            throw_data_away(self.folder)
        environment = {
            **_DRAMATIQ,
            **os.environ,
            **self.settings.to_environment(),
            "REDIS_URL": redis_url(self.settings),
            LIFELINE_FD: str(self._read_end),
        }
        return subprocess.Popen(  # our own part; settings are passed in the environment  # nosec B603
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=self.log or sys.stderr,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(self._read_end,),
            # A separate process group: a Ctrl-C at the terminal is the supervisor's to handle.
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )

    def _wait_ready(self, child: Child) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        ready = child.part.ready_file
        while ready and not ready.exists():
            if not child.is_alive:
                child.process = self._spawn(child.part)
            if time.monotonic() > deadline:
                self.kill()
                raise OperatorError(f"The {child.part.name} part does not start; run with REDIS_URL, or see the log.")
            time.sleep(0.01)

    def _check_workers(self, child: Child) -> None:
        """Restart workers that are missing: one killed while it boots can leave Dramatiq's master waiting forever."""
        now = time.monotonic()
        if now < child.next_look:
            return
        child.next_look = now + 1.0
        if len(living(self.folder, "worker")) >= self.settings.process_count:
            child.complete_at, child.patience = now, _BOOT_PATIENCE
        elif now - max(child.complete_at, child.started) > child.patience:
            logger.warning("workers are missing, but their master does not see it; starting them again")
            child.patience = min(2 * child.patience, _LONGEST_PATIENCE)
            _signal_group(child.process, signal.SIGKILL)

    def _revive(self, child: Child) -> None:
        now = time.monotonic()
        if child.restart_at == 0.0:
            child.deaths = 0 if now - child.started > _STEADY_SECONDS else child.deaths
            pause = _RESTART_PAUSES[min(child.deaths, len(_RESTART_PAUSES) - 1)]
            child.deaths += 1
            child.restart_at = now + pause
            # Workers of a dead master still exist for a moment; none must be left beside the new ones.
            _signal_group(child.process, signal.SIGKILL)
            logger.warning(
                "%s died (exit code %s); starting it again in %.1f s", child.part.name, child.process.returncode, pause
            )
        elif now >= child.restart_at:
            child.process, child.started, child.restart_at = self._spawn(child.part), now, 0.0

    def _wait_for_end(self, child: Child) -> None:
        """Wait for a part that was told to stop, and kill what is left of it. Redis has nothing to save: no wait."""
        patience = _WORKERS_STOP_SECONDS if child.part.name == "workers" else _STOP_SECONDS
        deadline = time.monotonic() + (0.0 if child.part.name == "redis" else patience)
        while not _is_done(child) and time.monotonic() < deadline:
            time.sleep(0.02)
        _signal_group(child.process, signal.SIGKILL)
        child.process.wait()
        if child.part.ready_file:
            child.part.ready_file.unlink(missing_ok=True)

    def _close_lifeline(self) -> None:
        for end in (self._read_end, self._write_end):
            if end is not None:
                os.close(end)
        self._read_end = self._write_end = None


@contextmanager
def running_stack(settings: Settings, log: IO[bytes] | None = None, choice: Choice = PLAIN) -> Iterator[Supervisor]:
    """Run the whole stack, or one part of it, for the block.

    A whole stack refuses to start where any other runs on the same folder; parts run side by side, even in several
    containers.
    """
    if choice.only and not settings.redis_url:
        raise SettingsError("REDIS_URL", "is not set: a part that runs alone needs the Redis that all parts share.")
    refuse_redis_url(settings)
    if settings.redis_url:
        refuse_redis_away(settings)
    folder = open_store(settings.data_dir)
    refuse_damage(folder, confirmed_damage(folder))
    lock = _take_lock(folder, shared=choice.only is not None)
    if choice.only is None:
        _sign(lock)
    supervisor = Supervisor(settings, folder, log, choice)
    try:
        if not settings.redis_url:
            folder.redis_socket.unlink(missing_ok=True)
        supervisor.start()
        yield supervisor
    finally:
        supervisor.stop()
        lock.close()


def _take_lock(folder: DataFolder, *, shared: bool) -> IO[str]:
    """Take the lock, trying for a moment: a process that checks whether a stack runs holds it while it checks."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while (lock := try_lock(folder.lock, shared=shared)) is None:
        if time.monotonic() > deadline:
            raise BusyError(
                f"Another stack runs on {folder.root}. Stop it first, or give this one its own LIENWORKER_DATA_DIR."
            )
        time.sleep(0.05)
    return lock


def _sign(lock: IO[str]) -> None:
    """Leave our number in the lock, for `lienworker stop`. It counts only while the lock is held."""
    lock.seek(0)
    lock.truncate()
    lock.write(f"{os.getpid()}\n")
    lock.flush()


def pid_of_stack(folder: DataFolder) -> int | None:
    """Return the process of the whole stack that runs on a folder, if it is one of this machine's."""
    import psutil

    text = folder.lock.read_text(encoding="utf-8").strip()
    pid = int(text) if text.isdigit() else 0
    try:
        is_ours = pid > 0 and "lienworker" in " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        is_ours = False
    return pid if is_ours else None


def refuse_damage(folder: DataFolder, words: str | None) -> None:
    if words:
        raise DamageError(
            f"{folder.database} is damaged ({words}); the stack does not run on it."
            " `lienworker doctor --repair` saves what can be saved."
        )


def _is_done(child: Child) -> bool:
    """Whether a part that was told to stop has ended.

    Dramatiq's master is done when its workers are gone: it would wait another second for their logs, which do not pass
    through it.
    """
    return not child.is_alive or (child.part.name == "workers" and not _has_children(child.process))


def _has_children(process: subprocess.Popen[bytes]) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(process.pid).children())
    return False


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _wait_for_group(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a part and all of its children are gone, so long at most."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline:
            process.poll()  # a dead leader counts until somebody has asked for its exit code
            os.killpg(process.pid, 0)
            time.sleep(0.05)


def _die_with_parent() -> None:
    """Let the kernel (Linux) end the child with us: Redis and Dramatiq's master do not watch our pipe.

    Not with SIGTERM, which the master blocks while its workers boot. The workers commit what they hold.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
