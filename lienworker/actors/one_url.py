"""scrape_url: the way in for one URL. Its `send` puts the task into SQLite first, then wakes the workers."""

from __future__ import annotations

import logging
from typing import Any

import dramatiq
import redis
from dramatiq import Actor, Message

from lienworker.actors.app import broker, runtime, settings
from lienworker.actors.fetch import work_fetch_lane
from lienworker.actors.messages import parcel_of
from lienworker.broker import FETCH
from lienworker.errors import InputError
from lienworker.intake.rows import BadRowError
from lienworker.intake.urls import UrlChecker
from lienworker.outbox.registration import register_task
from lienworker.store.database import open_store
from lienworker.store.tasks import NewTask

logger = logging.getLogger(__name__)


class RegisteringActor(Actor[..., None]):
    """An actor whose messages are in SQLite before they are in Redis."""

    def send_with_options(
        self, *, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, delay: Any = None, **options: Any
    ) -> Message[None]:
        """Registers the task, then sends. A Redis that is away costs a delay, not the task."""
        open_store(settings.data_dir)
        _register(*args, **(kwargs or {}))
        message = self.message_with_options(args=args, kwargs=kwargs, **options)
        try:
            return self.broker.enqueue(message)
        except redis.RedisError as problem:
            logger.warning("the task is stored, but Redis is away (%s); it is fetched when a stack runs", problem)
            return message


def checked_url(url: str) -> str:
    """The URL if we would fetch it; else an InputError that says why not."""
    try:
        checked = UrlChecker()(url)
    except BadRowError as problem:
        raise InputError(f"{url!r} cannot be scraped: {problem}") from None
    if checked is None:
        raise InputError("there is no URL to scrape")
    return checked


def _register(*args: Any, **kwargs: Any) -> None:
    """The sender is told what is wrong; what comes by a message has been looked at before (`messages.py`)."""
    try:
        row = parcel_of(*args, **kwargs)
    except BadRowError as problem:
        raise InputError(f"this cannot be scraped: {problem}") from None
    register_task(NewTask(source="cli", url=row.url or "", platform=row.platform, queue=row.queue or "default"))


@dramatiq.actor(broker=broker, actor_class=RegisteringActor, queue_name=FETCH, priority=30)
def scrape_url(url: str, platform: str | None = None, queue: str = "default") -> None:
    """Scrapes one URL. The arguments repeat what `send` has stored; somebody else's are new work, and checked alike."""
    _register(url, platform, queue)
    work_fetch_lane(runtime())
