"""The broker and this process's runtime: set up before the first actor is declared."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import redis
from dramatiq.asyncio import get_event_loop_thread
from dramatiq.middleware import Middleware

from lienworker.actors.messages import MessageCheck
from lienworker.actors.runtime import RESERVED_THREADS, Runtime, running
from lienworker.actors.scrape_outcomes import store_scrapes
from lienworker.actors.watchdog import Parse
from lienworker.broker import QueueTokens, setup_broker
from lienworker.lifeline import watch_parent, watch_supervisor
from lienworker.log_repeats import Repeats
from lienworker.logs import about_task, setup_logging
from lienworker.outbox.leases import free_for
from lienworker.outbox.relay import worker_slots
from lienworker.outbox.turns import is_taken
from lienworker.settings import Settings
from lienworker.store.damage import note_damage
from lienworker.store.database import DATABASE_TROUBLE, is_damage

#: How long a process whose parent is gone may take to commit what it has in hand, s.
_LAST_WORDS = 2.0
#: How long it may take at most to end for a parse that hangs, s.
_LAST_COMMIT = 15.0
#: The exit code of a worker whose storage cannot be used; whoever runs it starts it again.
_CANNOT_START = 3

logger = logging.getLogger(__name__)
settings = Settings.from_environment()
_current: list[Runtime] = []


def runtime() -> Runtime:
    """This worker process's runtime."""
    return _current[0]


class DamageInWords(logging.Filter):
    """A broken database is one sentence in the log, not a trace for each message that met it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and is_damage(record.exc_info[1]):
            record.msg, record.args = (
                "the database reports damage (%s); `lienworker doctor` says more",
                (record.exc_info[1],),
            )
            record.exc_info = None
        return True


class RuntimeMiddleware(Middleware):
    """Opens the store and takes up life as a holder when a worker boots; ends both when it stops."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def after_process_boot(self, broker: Any) -> None:
        watch_parent(_end_process)
        if not logging.getLogger().handlers:  # the stack leaves logging to us; by hand, Dramatiq has set it up
            setup_logging(settings, "worker", sys.__stderr__)  # not by way of the master, which would copy each line
        for handler in logging.getLogger().handlers:
            handler.addFilter(DamageInWords())
            if not any(isinstance(there, Repeats) for there in handler.filters):
                handler.addFilter(Repeats())

    def before_worker_boot(self, broker: Any, worker: Any) -> None:
        broker.places = max(1, worker.worker_threads - RESERVED_THREADS)
        # Dramatiq would go on without us: a worker that takes messages and can do nothing with them.
        try:
            self._start(broker.places)
        except Exception as problem:
            logger.error("the worker cannot start: %s", problem, extra={"action": "boot"})
            os._exit(_CANNOT_START)

    def _start(self, slots: int) -> None:
        thread = get_event_loop_thread()
        if thread is None:  # the AsyncIO middleware comes before this one
            raise RuntimeError("there is no event loop")
        here = self._stack.enter_context(running(settings, "worker", slots, thread.loop, start_turns))
        _current[:] = [here]
        here.watchdog.start(_end_hanging)
        self._stack.callback(here.watchdog.stop)

    def after_worker_boot(self, broker: Any, worker: Any) -> None:
        start_turns()
        with contextlib.suppress(redis.RedisError):
            broker.get_actor("upkeep").send()  # a stack that never runs for long is kept tidy, too

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        """A broken database does not get better by another try: whoever runs the stack is told, and stops it."""
        if is_damage(exception) and note_damage(runtime().folder, str(exception)):
            runtime().stopping.set()

    def before_worker_shutdown(self, broker: Any, worker: Any) -> None:
        runtime().stopping.set()

    def after_worker_shutdown(self, broker: Any, worker: Any) -> None:
        # `after_` hooks run in reverse order: the event loop, which the fetcher is closed on, is still there.
        try:
            self._stack.close()
        except (OSError, *DATABASE_TROUBLE) as problem:
            logger.warning("what the worker had in hand is freed later: %s", problem, extra={"action": "stop"})


def start_turns() -> None:
    """Sees to it that somebody has each turn: at boot, and with each beat, should its holder have died."""
    names = ("relay", "collect") if settings.mode == "ondemand" else ("relay",)
    for name in names:
        if not is_taken(name, runtime().holder.id):
            with contextlib.suppress(redis.RedisError):
                broker.get_actor(name).send()


def calmly(step: Callable[[], None]) -> Callable[[], None]:
    """A full disk, a locked database, too few files: said in a sentence, and tried again by the next message."""

    @functools.wraps(step)
    def calm() -> None:
        try:
            step()
        except (OSError, *DATABASE_TROUBLE) as problem:
            if is_damage(problem):  # no other try will do: see after_process_message
                raise
            logger.warning("%s stops for now: %s", step.__name__, problem, extra={"action": step.__name__})

    return calm


def wake(topic: str) -> None:
    """A token for a lane that has just got rows. If Redis is away, the relay sends one later."""
    tokens = QueueTokens(broker)
    with contextlib.suppress(redis.RedisError):
        if tokens.queued(topic) < worker_slots():
            tokens.send(topic, 1)


def _end_process() -> None:
    """The supervisor or the master is gone: commit what is in hand, then leave at once."""
    if _current:
        runtime().stopping.set()
        time.sleep(_LAST_WORDS)
    os._exit(1)


def _end_hanging(parse: Parse) -> None:
    """Ends this process for the parse that hangs in it, after what is done was committed."""
    row, here = parse.row, runtime()
    words = "Its page held a worker up for too long."
    logger.error("parsing %s hangs; this process ends", row.url, extra=about_task("hang", row.task_id, row.topic))
    threading.Timer(_LAST_COMMIT, os._exit, (1,)).start()  # should the database not let us
    here.stopping.set()
    time.sleep(_LAST_WORDS)
    try:
        store_scrapes(here, list(parse.finished))
        free_for(here.holder.id, row.id, words)
    finally:
        os._exit(1)


watch_supervisor(_end_process)
broker = setup_broker(settings, MessageCheck(), RuntimeMiddleware())
