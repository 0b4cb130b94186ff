"""What a message may carry. It comes from whoever can write to Redis: it is checked as a row of a stranger's list is.

All messages are bare tokens but those of `scrape_url`, which name an address, and may name a platform and a queue.
"""

from __future__ import annotations

import logging
from typing import Any

from dramatiq.middleware import Middleware, SkipMessage

from lienworker.intake.fields import RowMaker
from lienworker.intake.rows import BadRowError, Defaults, ParcelRow

#: The one actor whose messages have arguments.
SCRAPE_URL = "scrape_url"

logger = logging.getLogger(__name__)


def parcel_of(url: Any, platform: Any = None, queue: Any = "default") -> ParcelRow:
    """Return the arguments of a `scrape_url` as a row; raise BadRowError for what an import would reject."""
    row = RowMaker(Defaults()).make(0, (url, platform, None, None, None, queue, None), {})
    if row.url is None:
        raise BadRowError("missing_url", "there is no URL to scrape")
    return row


class MessageCheck(Middleware):
    """Drops a message that carries anything else, with one sentence and without a trace."""

    def before_process_message(self, broker: Any, message: Any) -> None:
        if problem := _wrong_with(message.actor_name, message.args, message.kwargs):
            logger.warning("a message for %s is dropped: %s", message.actor_name, problem, extra={"action": "message"})
            raise SkipMessage


def _wrong_with(actor: str, args: Any, kwargs: Any) -> str | None:
    if actor != SCRAPE_URL:
        return "it has arguments" if args or kwargs else None
    try:
        parcel_of(*args, **kwargs)
    except BadRowError as problem:
        return problem.detail
    except TypeError:  # too many, too few, or others
        return "its arguments are not those of scrape_url"
    return None
