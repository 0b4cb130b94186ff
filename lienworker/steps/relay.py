"""A turn of the relay: tokens in Redis for the rows that are due."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lienworker.outbox.claims import Rules
from lienworker.outbox.leases import WorkerLease, is_held_by, turn
from lienworker.outbox.relay import Lane, Relay, Tokens
from lienworker.outbox.uploads import UploadLane

#: How long a turn lasts before it is passed on through Redis, s. periodiq's minute is the safety net.
_TURN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RelayContext:
    """What the relay needs."""

    holder: WorkerLease
    rules: Rules
    #: Rows per token.
    batch: int
    #: Whether there is a Gateway to send to.
    is_ondemand: bool
    stopping: threading.Event


def relay_turn(
    context: RelayContext, tokens: Tokens, chores: Callable[[], None], can_hand_on: Callable[[], bool]
) -> bool:
    """Relay for one turn, with the chores every second or so; return False where another process has the turn.

    A turn ends after its time once Redis can take the hand-over (`can_hand_on`), or when it was taken from us.
    """
    end = time.monotonic() + _TURN_SECONDS

    def is_over() -> bool:
        if not is_held_by("relay", context.holder.id):
            return True
        return time.monotonic() >= end and can_hand_on()

    with turn("relay", context.holder.id) as mine:
        if mine:
            lanes: list[Lane] = [Lane(topic, context.batch) for topic in ("fetch", "scrape")]
            if context.is_ondemand:
                lanes.append(UploadLane("upload", context.batch))
            Relay(lanes, tokens, context.rules, chores).run(context.stopping, is_over)
    return mine
