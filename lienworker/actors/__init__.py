"""The actors: `dramatiq lienworker.actors` runs them, `periodiq lienworker.actors` keeps their schedule.

Each is thin: it calls a step and notifies the next lane. Messages carry no ids. Dramatiq needs the broker to exist when
a module of actors is imported; so this is the one module that reads the environment and does something on import, and
nothing imports it but the processes of a stack and programs that send messages.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable

import dramatiq
import redis
from dramatiq.middleware import CurrentMessage
from periodiq import cron

from lienworker.actors.process import WorkerProcess
from lienworker.broker import BEAT, FETCH, SCRAPE, UPLOAD, QueueTokens, setup_broker
from lienworker.db.database import DATABASE_TROUBLE, is_damage
from lienworker.maintenance.heartbeat import book_heartbeat, heartbeat_of, is_due, send_heartbeat
from lienworker.parent_watch import watch_supervisor
from lienworker.settings import Settings
from lienworker.steps.collect import collect_turn
from lienworker.steps.fetch import FetchLoop
from lienworker.steps.messages import MessageCheck, RegisteringActor, register_url
from lienworker.steps.relay import relay_turn
from lienworker.steps.scrape_lane import ScrapeRun
from lienworker.steps.upload.loop import upload_due

__all__ = ["broker", "collect", "fetch", "heartbeat", "relay", "scrape", "scrape_url", "upkeep", "upload"]

logger = logging.getLogger(__name__)
_settings = Settings.from_environment()
_process = WorkerProcess(_settings)
watch_supervisor(_process.end)
broker = setup_broker(_settings, MessageCheck(), _process)


def log_transient_errors(step: Callable[[], None]) -> Callable[[], None]:
    """Log a full disk, a locked database or too few file handles as one sentence; the next message tries again."""

    @functools.wraps(step)
    def logged() -> None:
        try:
            step()
        except (OSError, *DATABASE_TROUBLE) as problem:
            if is_damage(problem):  # another try is pointless: see WorkerProcess.after_process_message
                raise
            logger.warning("%s stops for now: %s", step.__name__, problem, extra={"action": step.__name__})

    return logged


def _message_id() -> str | None:
    message = CurrentMessage.get_current_message()
    return message.message_id if message else None


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=0, periodic=cron("* * * * *"))
@log_transient_errors
def relay() -> None:
    """Take a turn of the relay, which keeps tokens in Redis. One at a time: a second message is a no-op."""
    here = _process.runtime
    # Sent at once: a turn that only periodiq started again would leave a gap.
    if relay_turn(here.relay, QueueTokens(broker), _chores, _can_hand_on) and not here.stopping.is_set():
        _process.send("relay")


def _chores() -> None:
    if _settings.mode == "ondemand" and is_due(_settings.heartbeat):
        _process.send("heartbeat")
    _process.chores.do()


def _can_hand_on() -> bool:
    with contextlib.suppress(redis.RedisError):
        return bool(broker.client.ping())
    return False


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=1, periodic=cron("* * * * *"))
@log_transient_errors
def collect() -> None:
    """Take a turn of polling the Gateway; one at a time, and continued through Redis as the relay's is."""
    here = _process.runtime
    if _settings.mode == "ondemand" and collect_turn(here.collect) and not here.stopping.is_set():
        _process.send("collect")


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=0)
@log_transient_errors
def heartbeat() -> None:
    """Send a heartbeat; the relay asks for it when it is due. Never waits for pages or uploads."""
    here = _process.runtime
    if _settings.mode == "ondemand" and book_heartbeat(_settings.heartbeat):
        send_heartbeat(here.gateway, heartbeat_of(here.folder, _settings, here.registry), _settings.heartbeat)


@dramatiq.actor(broker=broker, queue_name=BEAT, priority=20, periodic=cron("*/10 * * * *"))
def upkeep() -> None:
    """Start a round of upkeep in its own thread, unless one is still running."""
    _process.upkeep.start()


@dramatiq.actor(broker=broker, queue_name=FETCH, priority=30)
@log_transient_errors
def fetch() -> None:
    """Work on a token of the fetch lane."""
    _fetch_due()


def _fetch_due() -> None:
    with _process.runtime.lease_lane(_message_id()) as lane:
        if lane is None:
            return
        loop = FetchLoop(_process.runtime.fetch, lane)
        has_more = loop.run()
    if loop.has_left_pages:
        _process.notify("scrape")
    if has_more:
        _process.notify("fetch")
    if _settings.mode == "ondemand":
        _process.notify("upload")


@dramatiq.actor(broker=broker, queue_name=SCRAPE, priority=20)
@log_transient_errors
def scrape() -> None:
    """Work on a token of the scrape lane."""
    here = _process.runtime
    with here.lease_lane(_message_id()) as lane:
        if lane is None:
            return
        has_more = ScrapeRun(here.scrape, here.slots, lane).work()
    if _settings.mode == "ondemand":
        _process.notify("upload")
    if has_more:
        _process.notify("scrape")


@dramatiq.actor(broker=broker, queue_name=UPLOAD, priority=10)
@log_transient_errors
def upload() -> None:
    """Work on a token of the lanes to the Gateway. One at a time in a process: a hanging Gateway blocks one thread."""
    here = _process.runtime
    if _settings.mode == "ondemand" and upload_due(here.upload, here.rules, _message_id()):
        _process.notify("upload")


@dramatiq.actor(broker=broker, actor_class=RegisteringActor, queue_name=FETCH, priority=30)
def scrape_url(url: str, platform: str | None = None, queue: str = "default") -> None:
    """Scrape one URL. The arguments repeat what `send` has stored; any others are new work, and checked."""
    register_url(url, platform, queue)
    _fetch_due()
