"""A turn of polling the Gateway for work, as long as there is room for it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass

from lienworker.db.clock import now_ms
from lienworker.db.database import DATABASE_TROUBLE, write
from lienworker.db.kv import fact, set_fact
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.hubs.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.hubs.gateway.wire import WorkReply
from lienworker.outbox import breaker
from lienworker.outbox.breaker import REMEMBERED, Gate
from lienworker.outbox.claims import is_lane_paused
from lienworker.outbox.leader import is_held_by, turn
from lienworker.outbox.leases import Holder
from lienworker.platforms import Registry
from lienworker.steps.on_loop import OnLoop
from lienworker.steps.short_switch_interval import short_switch_interval
from lienworker.steps.take_work import Taken, take_work
from lienworker.steps.upload.apply import close_after_poll, settle_polls, trouble_of
from lienworker.store.counts import task_counts

#: How long a turn lasts before it is handed on through Redis, s.
_TURN_SECONDS = 60.0
_LOOK_SECONDS = 0.25
#: When the Gateway wants to be asked again, in ms.
NEXT_POLL = "collect_next_poll"
_LONGEST_PAUSE = 3600.0
#: The Gateway takes a capacity over 100 for 100, and one of 0 for 10.
_MOST = 100

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CollectContext:
    """What polling for work needs."""

    holder: Holder
    gateway: OnLoop[GatewayClient]
    registry: Registry
    stopping: threading.Event
    #: Tasks that may wait here; no more are asked for then.
    max_waiting: int
    #: How long a task is worth doing, h.
    task_expiry: float
    #: How long is waited after a first failure, s.
    first_delay: float


def collect_turn(context: CollectContext) -> bool:
    """Poll for a turn's time; False where somebody else is at it: one at a time, in all processes."""
    with turn("collect", context.holder.id) as mine:
        if mine:
            Collector(context).run(time.monotonic() + _TURN_SECONDS)
    return mine


class Collector:
    """Polls while there is room; waits as long as the Gateway asked for, or as the breaker says."""

    def __init__(self, context: CollectContext) -> None:
        self._context = context
        self._client = context.gateway.open()
        # Answers that brought tasks are stored later: a transaction for each would cost more than it tells.
        self._answered: deque[Accepted[WorkReply]] = deque(maxlen=REMEMBERED)
        asked = fact(NEXT_POLL)
        wait = (int(asked) - now_ms()) / 1000 if asked else 0.0
        # What the Gateway asked for outlives a turn and a restart; a clock that was wrong does not.
        self._next_poll = time.monotonic() + (wait if 0 < wait <= _LONGEST_PAUSE else 0.0)

    def run(self, until: float) -> None:
        stopping = self._context.stopping
        while not stopping.is_set() and time.monotonic() < until and is_held_by("collect", self._context.holder.id):
            gate = breaker.gate("work")
            if time.monotonic() >= self._next_poll and gate is not Gate.OPEN:
                room = room_for_work(self._context.max_waiting)
                if room:
                    with short_switch_interval():  # a call brings few tasks, and the next has to wait for this one
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
        first_delay = self._context.first_delay
        with write("collect_trouble"):
            self._remember_answers()
            if not settle_polls([failed], first_delay):
                self._wait_for_this_one(failed, breaker.asked_ms(failed.retry_after, first_delay) / 1000)

    def _remember_answers(self) -> None:
        """Part of a larger transaction."""
        settle_polls(list(self._answered), self._context.first_delay)
        self._answered.clear()

    def _wait_for_this_one(self, failed: Unavailable, seconds: float) -> None:
        if seconds <= _LONGEST_PAUSE:
            self._poll_again_in(seconds)
        else:  # the next turn would take so late a poll for that of a wrong clock
            breaker.pause("work", trouble_of(failed), seconds)

    def _poll_again_in(self, seconds: float) -> None:
        """Part of a larger transaction."""
        self._next_poll = time.monotonic() + seconds
        set_fact(NEXT_POLL, str(now_ms() + int(1000 * seconds)))

    def _ask(self, room: int) -> Outcome[WorkReply]:
        return self._context.gateway.wait_for(self._client.work(min(room, _MOST), self._context.registry.names()))

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
                close_after_poll()

    def _keep(self, reply: WorkReply) -> Taken:
        """Stores the tasks; while the database takes nothing (a full disk), they are kept in hand and tried again."""
        while True:
            try:
                return take_work(reply.tasks, self._context.registry, self._context.task_expiry)
            except DATABASE_TROUBLE as problem:
                words = "%d tasks in hand cannot be stored yet: %s"
                logger.warning(words, len(reply.tasks), problem, extra={"action": "collect"})
                if self._context.stopping.wait(_LOOK_SECONDS):
                    raise


def room_for_work(max_waiting: int) -> int:
    """Return how many more tasks this worker should take: none while intake is paused."""
    if is_lane_paused("intake"):
        return 0
    counts = task_counts()
    return max(0, max_waiting - counts["pending"] - counts["processing"])
