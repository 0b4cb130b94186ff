"""`periodiq lienworker.actors`, with our logging and a sign of life that `lienworker health` looks for."""

from __future__ import annotations

import sys
from typing import Any

from dramatiq.middleware import Middleware
from periodiq import main, make_argument_parser

from lienworker.db.database import open_store
from lienworker.errors import LienworkerError
from lienworker.logs import setup_logging
from lienworker.settings import Settings
from lienworker.stack.signs import record_tick


class Ticks(Middleware):
    """Records each message that the schedule sends; it sends at least one a minute."""

    def after_enqueue(self, broker: Any, message: Any, delay: Any) -> None:
        record_tick()


if __name__ == "__main__":
    settings = Settings.from_environment()
    setup_logging(settings, "schedule")
    try:
        open_store(settings.data_dir)
    except LienworkerError as problem:
        sys.exit(f"Error: {problem}")
    record_tick()
    from lienworker.actors import broker

    broker.goes_on_without_redis = True
    broker.add_middleware(Ticks())
    # No path for modules: it would be the current folder, whoever may write there.
    sys.exit(main(make_argument_parser().parse_args(["lienworker.actors", "--path"])))
