"""What a message may carry. Anybody who can write to Redis can send one: it is checked like a stranger's list.

All messages are bare tokens except those of `scrape_url`, which name an address, and may name a platform and a queue.
"""

from __future__ import annotations

import logging
from typing import Any

import redis
from dramatiq import Actor, Message
from dramatiq.middleware import Middleware, SkipMessage

from lienworker.db.database import open_store
from lienworker.errors import InputError
from lienworker.intake.fields import RowMaker
from lienworker.intake.rows import BadRowError, Defaults, ParcelRow
from lienworker.outbox.registration import register_task
from lienworker.store.tasks import NewTask

#: The one actor whose messages have arguments.
SCRAPE_URL = "scrape_url"

logger = logging.getLogger(__name__)


def parcel_of(url: Any, platform: Any = None, queue: Any = "default") -> ParcelRow:
    """Return the arguments of a `scrape_url` as a row; raise BadRowError for what an import would reject."""
    row = RowMaker(Defaults()).make(0, (url, platform, None, None, None, queue, None), {})
    if row.url is None:
        raise BadRowError("missing_url", "there is no URL to scrape")
    return row


def register_url(*args: Any, **kwargs: Any) -> None:
    """Register the task of a `scrape_url`; tell the sender what is wrong with its arguments."""
    try:
        row = parcel_of(*args, **kwargs)
    except BadRowError as problem:
        raise InputError(f"this cannot be scraped: {problem}") from None
    register_task(NewTask(source="cli", url=row.url or "", platform=row.platform, queue=row.queue or "default"))


class RegisteringActor(Actor[..., None]):
    """An actor whose messages are stored in SQLite before they are in Redis."""

    def send_with_options(
        self, *, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, delay: Any = None, **options: Any
    ) -> Message[None]:
        """Register the task, then send. An unreachable Redis costs a delay, not the task."""
        open_store(self.broker.data_dir)  # type: ignore[attr-defined]
        register_url(*args, **(kwargs or {}))
        message = self.message_with_options(args=args, kwargs=kwargs, **options)
        try:
            return self.broker.enqueue(message)
        except redis.RedisError as problem:
            logger.warning("the task is stored, but Redis is unreachable (%s); a running stack will fetch it", problem)
            return message


class MessageCheck(Middleware):
    """Drops a message that carries anything else, with one sentence and without a stack trace."""

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
