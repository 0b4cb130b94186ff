"""A worker process from boot to shutdown: where its actors find their runtime."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from contextlib import ExitStack
from typing import Any

import redis
from dramatiq.asyncio import get_event_loop_thread
from dramatiq.middleware import Middleware

from lienworker.broker import QueueTokens, TokenBroker
from lienworker.db.database import DATABASE_TROUBLE, is_damage
from lienworker.logs import Repeats, setup_logging
from lienworker.maintenance.upkeep import Chores, Upkeep
from lienworker.outbox.leases import is_taken
from lienworker.outbox.relay import worker_slots
from lienworker.parent_watch import watch_parent
from lienworker.settings import Settings
from lienworker.steps.lane import RESERVED_THREADS
from lienworker.steps.runtime import Runtime, running
from lienworker.steps.scrape import give_up_hanging
from lienworker.steps.stopping import Stopping
from lienworker.steps.watchdog import Parse
from lienworker.store.damage import DamageFilter, record_damage

#: How long a process in which a parse hangs may take to commit what else it has in hand, s.
_LAST_WORDS = 2.0
#: How long it may take at most to end because of a parse that hangs, s.
_LAST_COMMIT = 15.0
#: The exit code of a worker whose storage cannot be used; the supervisor restarts it.
_CANNOT_START = 3

logger = logging.getLogger(__name__)


class WorkerProcess(Middleware):
    """Opens the store and becomes a holder of leases when a worker boots; ends both when it stops."""

    broker: TokenBroker
    runtime: Runtime
    stop: Stopping
    upkeep: Upkeep
    chores: Chores

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._is_running = False

    def after_process_boot(self, broker: Any) -> None:
        watch_parent(self.end)
        if not logging.getLogger().handlers:  # the stack leaves logging to us; started by hand, Dramatiq has set it up
            # Not through the master, which would copy each line.
            setup_logging(self._settings, "worker", sys.__stderr__)
        for handler in logging.getLogger().handlers:
            handler.addFilter(DamageFilter())
            if not any(isinstance(there, Repeats) for there in handler.filters):
                handler.addFilter(Repeats())

    def before_worker_boot(self, broker: Any, worker: Any) -> None:
        self.broker = broker
        broker.places = max(1, worker.worker_threads - RESERVED_THREADS)
        try:  # Dramatiq would continue: a worker that receives messages and can do nothing with them
            self._start(broker.places)
        except Exception as problem:
            logger.error("the worker cannot start: %s", problem, extra={"action": "boot"})
            os._exit(_CANNOT_START)

    def _start(self, slots: int) -> None:
        thread = get_event_loop_thread()
        if thread is None:  # the AsyncIO middleware comes before this one
            raise RuntimeError("there is no event loop")
        here = self._stack.enter_context(running(self._settings, "worker", slots, thread.loop, self.start_turns))
        self.runtime, self.stop = here, Stopping(here.stopping, here.polling)
        self.stop.on_signals()
        self.upkeep = Upkeep(here.folder, here.settings, here.holder, here.stopping)
        self.chores = Chores(here.folder, here.settings)
        self._is_running = True
        here.watchdog.start(self._end_hanging)
        self._stack.callback(here.watchdog.stop)

    def after_worker_boot(self, broker: Any, worker: Any) -> None:
        self.start_turns()
        self.send("upkeep")  # a stack that never runs for long is maintained, too

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        """Report a broken database to the supervisor, which stops the stack: another try does not help."""
        if is_damage(exception) and record_damage(self.runtime.folder, str(exception)):
            self.runtime.stopping.set()

    def before_worker_shutdown(self, broker: Any, worker: Any) -> None:
        self.stop.take_nothing_new()

    def after_worker_shutdown(self, broker: Any, worker: Any) -> None:
        # `after_` hooks run in reverse order: the event loop, on which the fetcher is closed, still runs.
        try:
            self._stack.close()
        except (OSError, *DATABASE_TROUBLE) as problem:
            logger.warning("what the worker held is freed later: %s", problem, extra={"action": "stop"})

    def start_turns(self) -> None:
        """Make sure that each turn is taken: at boot, and with each beat, in case its holder has died."""
        names = ("relay", "collect") if self._settings.mode == "ondemand" else ("relay",)
        for name in names if self._is_running else ():
            if not is_taken(name, self.runtime.holder.id):
                self.send(name)

    def send(self, name: str) -> None:
        """Send a message to an actor. If Redis is unreachable, the schedule or the next beat does it later."""
        with contextlib.suppress(redis.RedisError):
            self.broker.get_actor(name).send()

    def notify(self, topic: str) -> None:
        """Send a token for a lane that just got rows. If Redis is unreachable, the relay sends one later."""
        tokens = QueueTokens(self.broker)
        with contextlib.suppress(redis.RedisError):
            if tokens.queued(topic) < worker_slots():
                tokens.send(topic, 1)

    def end(self) -> None:
        """Commit what is held and exit: the supervisor or the master is gone."""
        if self._is_running:
            self.stop.leave()
        os._exit(1)

    def _end_hanging(self, parse: Parse) -> None:
        """End this process because of a parse that hangs in it, after committing what is done."""
        threading.Timer(_LAST_COMMIT, os._exit, (1,)).start()  # in case the database blocks us
        self.runtime.stopping.set()
        time.sleep(_LAST_WORDS)
        try:
            give_up_hanging(self.runtime.scrape, self.runtime.holder.id, parse)
        finally:
            os._exit(1)
