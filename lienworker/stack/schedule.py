"""`periodiq lienworker.actors`, with our way of logging and a sign of life that `lienworker health` looks for."""

from __future__ import annotations

import logging
import sys
from typing import Any

from dramatiq.middleware import Middleware
from periodiq import main, make_argument_parser

from lienworker.logs import setup_logging
from lienworker.settings import Settings
from lienworker.store.clock import now_ms
from lienworker.store.database import DATABASE_TROUBLE, open_store, write
from lienworker.store.facts import fact, set_fact

#: When the schedule last sent a message, in ms.
LAST_TICK = "schedule_at"

logger = logging.getLogger(__name__)


class Ticks(Middleware):
    """Notes each message that the schedule sends; it sends one a minute at least."""

    def after_enqueue(self, broker: Any, message: Any, delay: Any) -> None:
        note_tick()


def note_tick() -> None:
    try:
        with write("schedule"):
            set_fact(LAST_TICK, str(now_ms()))
    except DATABASE_TROUBLE as problem:  # the schedule goes on: its messages are what counts
        logger.warning("the schedule cannot note its sign of life: %s", problem, extra={"action": "schedule"})


def seconds_since_tick() -> float | None:
    """None where no schedule ever ran on this folder."""
    last = fact(LAST_TICK)
    return None if last is None else (now_ms() - int(last)) / 1000


if __name__ == "__main__":
    settings = Settings.from_environment()
    setup_logging(settings.log_level)
    open_store(settings.data_dir)
    note_tick()
    from lienworker.actors import broker

    broker.add_middleware(Ticks())
    sys.exit(main(make_argument_parser().parse_args(["lienworker.actors"])))
