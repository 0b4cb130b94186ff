"""Broker and middleware: how Dramatiq is set up here, and what it is not used for.

Retries, dead letters and delays belong to the outbox. So Dramatiq's own `Retries` is left out (an actor that asks for
it is an error), no queue has a delay queue, and a message is only a token.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dramatiq
import redis
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import AsyncIO, CurrentMessage, Middleware
from periodiq import PeriodiqMiddleware

from lienworker.data_folder import DataFolder
from lienworker.db.database import close
from lienworker.errors import RedisAwayError, SettingsError
from lienworker.failpoints import failpoint
from lienworker.parent_watch import has_supervisor
from lienworker.redis_client import connect_redis
from lienworker.settings import Settings
from lienworker.trust import refuse_foreign_folder

#: Few queues: each one that a worker listens on costs idle polling.
BEAT, FETCH, SCRAPE, UPLOAD = "beat", "fetch", "scrape", "upload"
#: The longest pause between two polls of an idle worker, ms: short where a person waits, long elsewhere.
_IDLE_POLL_MS = {BEAT: 1000, FETCH: 200, SCRAPE: 300, UPLOAD: 200}
_NOTHING_TO_UPLOAD_MS = 1000  # not longer: a stop waits for it

#: How long a Redis may take to answer before anything is started on it, s.
_FIRST_LOOK_SECONDS = 3.0
#: The exit code of a worker that finds no Redis: the same command may work later.
_NO_REDIS = 75
#: What redis-py raises for an unknown option, or for a value that it cannot use.
_WRONG_OPTION = (TypeError, ValueError, AttributeError, redis.RedisError)

logger = logging.getLogger(__name__)


class TokenBroker(RedisBroker):
    """Dramatiq's Redis broker, for tokens: no delay queues, and short idle pauses."""

    def declare_queue(self, queue_name: str) -> None:
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Send a message: every message passes through here. The failpoints carry the actor's name."""
        failpoint(message.actor_name, "before_send")
        try:
            sent: Message[Any] = super().enqueue(message, delay=delay)
        except redis.RedisError as problem:
            if not self.goes_on_without_redis:
                raise
            logger.warning(
                "%s is not sent, Redis is unreachable: %s", message.actor_name, problem, extra={"action": "send"}
            )
            return message
        failpoint(message.actor_name, "after_send")
        return sent

    goes_on_without_redis = False  # the schedule: periodiq would exit at the first tick without Redis
    is_silent = False  # standalone: nothing is ever put into the upload queue
    data_dir: Path  # whose tasks the messages are about
    places: int | None = None  # how many steps this process runs at a time

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Any:
        """Leave tokens in the queue while this process has no free place: the relay counts those, and sends no more."""
        longest = _IDLE_POLL_MS[queue_name]
        if queue_name == UPLOAD and self.is_silent:
            longest = _NOTHING_TO_UPLOAD_MS
        if queue_name in (FETCH, SCRAPE) and self.places:
            prefetch = self.places
        return super().consume(queue_name, prefetch, longest)


class Hygiene(Middleware):
    """Closes a thread's database connection when the thread ends."""

    def before_worker_thread_shutdown(self, broker: Any, thread: Any) -> None:
        close()


class RedisCheck(Middleware):
    """Ends a worker that was started by hand, as `dramatiq lienworker.actors`, where no Redis answers.

    Dramatiq itself would try for ever, in every thread. A supervisor has looked before it starts workers, and theirs
    outlast a Redis that is away for a while.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def after_process_boot(self, broker: Any) -> None:
        if has_supervisor():
            return
        try:
            refuse_redis_away(self._settings)
        except RedisAwayError as problem:
            logger.error("%s", problem, extra={"action": "boot"})
            # Dramatiq logs any other error and carries on; for this one its master ends, too.
            raise SystemExit(_NO_REDIS) from None


def redis_url(settings: Settings) -> str:
    """Return the operator's Redis, or the socket of the private one in the data folder."""
    if settings.redis_url:
        return settings.redis_url
    socket = DataFolder(settings.data_dir).redis_socket
    if os.path.lexists(socket.parent):
        refuse_foreign_folder(socket.parent)
    return f"unix://{_in_address(socket)}"


def refuse_redis_url(settings: Settings) -> None:
    """Refuse options that redis-py does not know, once, here, instead of in every thread of every worker.

    Nothing is connected yet, so whatever goes wrong is the address's fault.
    """
    try:
        connect_redis(redis_url(settings)).connection_pool.make_connection()
    except _WRONG_OPTION:  # its message can quote a password
        words = "has an option that the Redis client does not know, or one with a wrong value."
        raise SettingsError("REDIS_URL", f"{words} `lienworker doctor` says which.") from None


def refuse_redis_away(settings: Settings) -> None:
    """Raise RedisAwayError where no Redis answers: one sentence at once, not hundreds from every thread later."""
    if not settings.redis_url and not DataFolder(settings.data_dir).redis_socket.exists():
        raise RedisAwayError(
            f"No stack runs on {settings.data_dir}, so there is no Redis: start `lienworker up`, or set REDIS_URL."
        )
    try:
        connect_redis(redis_url(settings), _FIRST_LOOK_SECONDS).ping()
    except redis.AuthenticationError:
        raise RedisAwayError(f"REDIS_URL: {_redis_place(settings)} refuses the password. Correct it.") from None
    except (redis.RedisError, OSError):
        remedy = "Start that Redis, correct REDIS_URL, or take it away: a private Redis is started then."
        raise RedisAwayError(f"REDIS_URL: no Redis answers at {_redis_place(settings)}. {remedy}") from None


def _redis_place(settings: Settings) -> str:
    """Return the address without its password and options."""
    parts = urlsplit(redis_url(settings))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _in_address(path: Path) -> str:
    """Encode a folder's name for an address: it may contain characters with a meaning there."""
    return "".join(f"%{ord(one):02X}" if one in "%?#\t\r\n" else one for one in str(path))


def setup_broker(settings: Settings, *middleware: Middleware) -> TokenBroker:
    """Make the broker that actors are declared on. periodiq's middleware must be added before the first actor."""
    broker = TokenBroker(  # type: ignore[no-untyped-call]
        client=connect_redis(redis_url(settings)),
        namespace=namespace(settings),
        middleware=[RedisCheck(settings), PeriodiqMiddleware(), AsyncIO(), CurrentMessage(), Hygiene(), *middleware],
    )
    broker.data_dir = settings.data_dir
    broker.is_silent = settings.mode == "standalone"
    dramatiq.set_broker(broker)
    return broker


def namespace(settings: Settings) -> str:
    """Return the namespace of this data folder: several may share one Redis."""
    mark = hashlib.sha256(str(settings.data_dir.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"lienworker-{mark}"


class QueueTokens:
    """Sends tokens to Redis: a topic's tokens are messages to the actor of the same name."""

    def __init__(self, broker: RedisBroker) -> None:
        self._broker = broker

    def queued(self, topic: str) -> int:
        queue_name = self._broker.get_actor(topic).queue_name
        return int(self._broker.client.llen(f"{self._broker.namespace}:{queue_name}"))

    def send(self, topic: str, n: int) -> None:
        for _ in range(n):
            self._broker.get_actor(topic).send()
