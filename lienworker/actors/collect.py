"""collect: a turn of polling the Gateway for work, as long as there is room for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque

import dramatiq
import redis
from periodiq import cron

from lienworker.actors.app import broker, calmly, runtime
from lienworker.actors.quick_turns import quick_turns
from lienworker.actors.runtime import Runtime
from lienworker.actors.upload_blame import judge_calls, trouble_of_call
from lienworker.broker import BEAT
from lienworker.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.gateway.wire import WorkReply
from lienworker.intake.work import Taken, take_work
from lienworker.outbox import breaker
from lienworker.outbox.breaker import Gate
from lienworker.outbox.turns import is_held_by, turn
from lienworker.outbox.verdict import REMEMBERED
from lienworker.store.clock import now_ms
from lienworker.store.counts import task_counts
from lienworker.store.database import DATABASE_TROUBLE, one_row, write
from lienworker.store.facts import fact, set_fact

_TURN_SECONDS = 60.0
_LOOK_SECONDS = 0.25
#: When the Gateway wants to be asked again, in ms.
NEXT_POLL = "collect_next_poll"
_LONGEST_PAUSE = 3600.0
#: The Gateway takes a capacity over 100 for 100, and one of 0 for 10.
_MOST = 100

logger = logging.getLogger(__name__)


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=1, periodic=cron("* * * * *"))
@calmly
def collect() -> None:
    """A turn of polling; one at a time, and handed on through Redis as the relay's is."""
    here = runtime()
    if here.settings.mode != "ondemand":
        return
    with turn("collect", here.holder.id) as mine:
        if not mine:
            return
        here.open_gateway()
        Collector(here).run(time.monotonic() + _TURN_SECONDS)
    if not here.stopping.is_set():
        with contextlib.suppress(redis.RedisError):
            collect.send()


class Collector:
    """Polls while there is room; waits as long as the Gateway asked for, or as the breaker says."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # Answers that brought tasks are stored later: a transaction for each would cost more than it tells.
        self._answered: deque[Accepted[WorkReply]] = deque(maxlen=REMEMBERED)
        asked = fact(NEXT_POLL)
        wait = (int(asked) - now_ms()) / 1000 if asked else 0.0
        # What the Gateway asked for outlives a turn and a restart; a clock that was wrong does not.
        self._next_poll = time.monotonic() + (wait if 0 < wait <= _LONGEST_PAUSE else 0.0)

    def run(self, until: float) -> None:
        stopping = self._runtime.stopping
        while not stopping.is_set() and time.monotonic() < until and is_held_by("collect", self._runtime.holder.id):
            gate = breaker.gate("work")
            if time.monotonic() >= self._next_poll and gate is not Gate.OPEN:
                room = room_for_work(self._runtime)
                if room:
                    with quick_turns():  # a call brings few tasks, and the next has to wait for this one
                        self._poll(room, is_probe=gate is Gate.PROBE)
                    continue
            stopping.wait(_LOOK_SECONDS)
        if self._answered:
            with write("collect_answers"):
                self._remember_answers()

    def _poll(self, room: int, *, is_probe: bool) -> None:
        """Asks once. While tasks keep coming, the next poll is at once: a short reply does not mean an empty queue."""
        if is_probe:
            with write("collect_probe"):
                breaker.start_probe("work")
        outcome = self._ask(room)
        if isinstance(outcome, Accepted):
            self._answered.append(outcome)
            self._take(outcome.reply)
        else:
            self._wait_after(outcome)

    def _wait_after(self, failed: Refused | Unavailable) -> None:
        """One failed call among others is waited for as asked, or a moment; a run of them opens the breaker."""
        if isinstance(failed, Refused):  # no row was sent that could be to blame
            failed = Unavailable(Kind.UNEXPECTED, failed.words)
        logger.warning("no work from the Gateway: %s", failed.words, extra={"action": "collect"})
        first_delay = self._runtime.settings.gateway_retry
        with write("collect_trouble"):
            self._remember_answers()
            ruling = judge_calls("work", [failed], first_delay)
            if not ruling.open_until:
                self._wait_for_this_one(failed, breaker.asked_ms(failed.retry_after, first_delay) / 1000)

    def _remember_answers(self) -> None:
        """Part of a larger transaction."""
        judge_calls("work", list(self._answered), self._runtime.settings.gateway_retry)
        self._answered.clear()

    def _wait_for_this_one(self, failed: Unavailable, seconds: float) -> None:
        if seconds <= _LONGEST_PAUSE:
            self._poll_again_in(seconds)
        else:  # the next turn would take so late a poll for that of a wrong clock
            breaker.pause("work", trouble_of_call(failed), seconds)

    def _poll_again_in(self, seconds: float) -> None:
        """Part of a larger transaction."""
        self._next_poll = time.monotonic() + seconds
        set_fact(NEXT_POLL, str(now_ms() + int(1000 * seconds)))

    def _ask(self, room: int) -> Outcome[WorkReply]:
        errand = self._runtime.gateway_on_loop.work(min(room, _MOST), self._runtime.registry.names())
        return asyncio.run_coroutine_threadsafe(errand, self._runtime.loop).result()

    def _take(self, reply: WorkReply) -> None:
        if reply.tasks:  # before anything else: the Gateway never hands them out again
            taken = self._keep(reply)
            logger.info(
                "took %d tasks, %d known, %d that cannot be done",
                taken.added,
                taken.known,
                taken.undoable,
                extra={"action": "collect"},
            )
        elif not reply.cut:
            with write("collect_pause"):
                self._poll_again_in(reply.retry_after)
                self._remember_answers()
        if breaker.gate("work") is not Gate.CLOSED:
            with write("collect_success"):
                breaker.note_success("work")

    def _keep(self, reply: WorkReply) -> Taken:
        """Stores the tasks; while the database takes nothing (a full disk), they are kept in hand and tried again."""
        while True:
            try:
                return take_work(reply.tasks, self._runtime.registry, self._runtime.settings.task_expiry)
            except DATABASE_TROUBLE as problem:
                words = "%d tasks in hand cannot be stored yet: %s"
                logger.warning(words, len(reply.tasks), problem, extra={"action": "collect"})
                if self._runtime.stopping.wait(_LOOK_SECONDS):
                    raise


def room_for_work(runtime: Runtime) -> int:
    """How many more tasks this worker should take: none while intake is paused."""
    if one_row("SELECT 1 FROM pauses WHERE lane = 'intake'"):
        return 0
    counts = task_counts()
    return max(0, runtime.settings.max_waiting - counts["pending"] - counts["processing"])
