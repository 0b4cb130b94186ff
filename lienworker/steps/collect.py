"""A turn of polling the Gateway for work, as long as there is room for it."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import DATABASE_TROUBLE, fact, set_fact, storable, write
from lienworker.errors import PageError
from lienworker.hostnames import host_of
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.hubs.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.hubs.gateway.work import WorkReply, WorkTask
from lienworker.intake.rows import BadRowError
from lienworker.intake.urls import UrlChecker
from lienworker.outbox import breaker
from lienworker.outbox.breaker import REMEMBERED, Gate
from lienworker.outbox.claims import is_lane_paused
from lienworker.outbox.leases import WorkerLease, is_held_by, turn
from lienworker.outbox.outcomes import close_again, report_failure
from lienworker.outbox.pacing import Politeness
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.uploads import undelivered
from lienworker.platforms import Registry, Target
from lienworker.steps.in_flight import OnLoop
from lienworker.steps.lane import short_switch_interval
from lienworker.steps.platform_rotation import PlatformRotation
from lienworker.steps.upload.apply import close_after_poll, failure_of, record_change, settle_polls
from lienworker.store import tasks
from lienworker.store.counts import task_counts
from lienworker.store.tasks import NewTask

#: How long a turn lasts before it is handed on through Redis, s.
_TURN_SECONDS = 60.0
_LOOK_SECONDS = 0.25
#: How long tasks in hand that cannot be stored are tried again after a stop was asked for, s.
_LAST_TRIES_SECONDS = 5.0
#: When the Gateway wants to be asked again, in ms.
NEXT_POLL = "collect_next_poll"
_LONGEST_PAUSE = 3600.0
#: The Gateway takes a capacity over 100 for 100, and one of 0 for 10.
_MOST = 100
#: Room for so many tasks is worth a call.
_LEAST_ROOM = 20

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CollectContext:
    """What polling for work needs."""

    holder: WorkerLease
    gateway: OnLoop[GatewayClient]
    registry: Registry
    stopping: threading.Event
    #: Held from the request of a poll until its reply is stored: the Gateway never hands those tasks out again.
    polling: threading.Lock
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
        self._rotation = PlatformRotation(context.registry.names())
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
                if room >= least_room(self._context.max_waiting):
                    self._poll_unless_stopping(room, is_probe=gate is Gate.PROBE)
                    continue
            stopping.wait(_LOOK_SECONDS)
        if self._answered:
            with write("collect_answers"):
                self._remember_answers()

    def _poll_unless_stopping(self, room: int, *, is_probe: bool) -> None:
        """Whoever stops this process sets `stopping` and then waits for the lock: no poll leaves after that."""
        with self._context.polling:
            if not self._context.stopping.is_set():
                with short_switch_interval():  # a call brings few tasks, and the next has to wait for this one
                    self._poll(room, is_probe=is_probe)

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
            before = breaker.outage("work")
            breaker.pause("work", failure_of(failed), seconds)
            record_change("work", before)

    def _poll_again_in(self, seconds: float) -> None:
        """Part of a larger transaction."""
        self._next_poll = time.monotonic() + seconds
        set_fact(NEXT_POLL, str(now_ms() + int(1000 * seconds)))

    def _ask(self, room: int) -> Outcome[WorkReply]:
        capacity = min(room, _MOST)
        outcome = self._context.gateway.wait_for(self._client.work(capacity, self._rotation.names(capacity)))
        if isinstance(outcome, Accepted):
            self._rotation.learn([task.platform for task in outcome.reply.tasks], capacity)
        return outcome

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
        """Stores the tasks; while the database takes nothing (a full disk), they are kept in hand and tried again.

        After a stop was asked for only for a moment: whoever waits for this process kills it in the end.
        """
        give_up_at = math.inf
        while True:
            try:
                return take_work(reply.tasks, self._context.registry, self._context.task_expiry)
            except DATABASE_TROUBLE as problem:
                words = "%d tasks in hand cannot be stored yet: %s"
                logger.warning(words, len(reply.tasks), problem, extra={"action": "collect"})
                if self._context.stopping.is_set():
                    give_up_at = min(give_up_at, time.monotonic() + _LAST_TRIES_SECONDS)
                if time.monotonic() >= give_up_at:
                    raise
                time.sleep(_LOOK_SECONDS)


def room_for_work(max_waiting: int) -> int:
    """Return how many more tasks this worker should take: none while intake is paused.

    What is done and not delivered counts: it is booked at the Gateway, which gets slower with every booking.
    """
    if is_lane_paused("intake"):
        return 0
    counts = task_counts()
    return max(0, max_waiting - counts["pending"] - counts["processing"] - undelivered())


def least_room(max_waiting: int) -> int:
    """Return the room from which on a poll is worth it: of room for one task, one platform has all.

    Where little may wait, a quarter of it: what is in hand lasts until the reply comes.
    """
    return max(1, min(_LEAST_ROOM, max_waiting // 4))


# Tasks from the Gateway: all of a reply into the store at once, since it never hands a task out again.


#: The kinds of task that a worker can do. An empty one is what early Gateways sent.
_FIRST_YEAR = 2000
_NO_PROXY: tuple[Any, ...] = (None, "", {})
_LONGEST_PROXY = 2048
_PROXY_SCHEMES = {"http", "https", "socks4", "socks5", "socks5h"}
_TYPES = {"", "scrape", "scrape_parcel", "parcel"}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a reply brought."""

    added: int
    known: int
    undoable: int


def take_work(work: Sequence[WorkTask], registry: Registry, expiry_hours: float) -> Taken:
    """One transaction: tasks that can be done with their first step, the others failed with their reason."""
    doable, undoable = [], []
    politeness: dict[str, Politeness] = {}
    for task in work:
        new = _new_task(task, expiry_hours)
        try:
            new.url = _url_of(task, registry)
            new.proxy = _proxy_of(task)
            platform = registry.get(task.platform) if task.platform else registry.for_url(new.url)
            if platform:
                politeness[host_of(new.url)] = Politeness(platform.delay, platform.concurrency)
            doable.append(new)
        except PageError as problem:
            undoable.append((new, problem))
    handed_out = Counter(new.task_id for new in (*doable, *(new for new, _ in undoable)))
    with write("collect"):
        known = tasks.known_ids(list(handed_out))
        registered = register_in_transaction(doable, politeness=politeness)
        failed = sum(_fail_at_once(new, problem) for new, problem in undoable)
        for task_id in (handed_out - Counter(handed_out.keys() - set(known))).elements():
            close_again(task_id)  # booked more often than the one time that its end will close
    return Taken(registered.added, registered.known + len(undoable) - failed, failed)


def _new_task(task: WorkTask, expiry_hours: float) -> NewTask:
    received = now_ms()
    # Counted from when it was created, or from when it came where that is absurd.
    is_absurd = task.created_at is None or task.created_at.year < _FIRST_YEAR
    base = received if is_absurd or task.created_at is None else int(task.created_at.timestamp() * 1000)
    created, base = rfc3339(base), min(base, received)
    return NewTask(
        source="gateway",
        url=task.url or "",
        platform=task.platform or None,
        state=task.state or None,
        county=task.county or None,
        parcel_id=task.parcel_id or None,
        queue="urgent" if task.priority == 1 else "default",
        priority=task.priority,
        target={key: value for key, value in task.target.items() if key != "proxy"},
        task_id=task.task_id or _made_up_id(task),
        created_at=created,
        expires_at=rfc3339(base + int(timedelta(hours=expiry_hours).total_seconds() * 1000)),
        proxy=None,
    )


def _made_up_id(task: WorkTask) -> str:
    """A task without an id is kept under one of its content; the Gateway cannot be told about it."""
    return "nameless-" + hashlib.sha256(task.raw_json.encode()).hexdigest()[:32]


def _url_of(task: WorkTask, registry: Registry) -> str:
    if not task.task_id:
        raise PageError("bad_task", "the task has no id")
    if not task.is_readable:
        raise PageError("bad_task", "; ".join(task.problems))
    if task.type.lower() not in _TYPES:
        raise PageError("unknown_type", f"tasks of type {task.type!r} cannot be done")
    if task.url:
        try:
            checked = UrlChecker()(task.url)
        except BadRowError as problem:
            raise PageError("bad_url", str(problem)) from None
        if checked:
            registry.get(task.platform or "generic")
            return checked
    if not task.platform:
        raise PageError("no_url", "the task has neither a url nor a platform that could build one")
    target = Target(task.platform, task.state, task.county, task.parcel_id, None, task.target)
    url = registry.get(task.platform).build_url(target)
    if not url:
        raise PageError("no_url", f"platform {task.platform!r} cannot build a URL from this target")
    return url


def _proxy_of(task: WorkTask) -> str | None:
    """The proxy that a task brings, beside its target or in it; one that cannot be read is not passed over."""
    proxy = task.proxy if task.proxy not in _NO_PROXY else task.target.get("proxy")
    if proxy in _NO_PROXY:
        return None
    url = proxy_url(proxy)
    if url is None:
        raise PageError("bad_proxy", "the task names a proxy that cannot be read; without it the page is not fetched")
    return url


def _fail_at_once(new: NewTask, problem: PageError) -> bool:
    """Kept, failed and reported; False where it was known already."""
    if tasks.known_ids([new.task_id]):
        return False
    tasks.insert_tasks({new.task_id: new})
    tasks.mark_failed(new.task_id, problem.reason, problem.detail)
    report_failure(new.task_id, problem.reason)
    return True


def proxy_url(proxy: Any) -> str | None:
    """A proxy as one address, from a text or from its parts; None where it cannot be read."""
    try:
        url = proxy.strip() if isinstance(proxy, str) else _proxy_of_parts(proxy)
        parts = urlsplit(url or "")
        is_good = parts.scheme in _PROXY_SCHEMES and parts.hostname and storable(url or "") == url
        is_good = is_good and len(url or "") <= _LONGEST_PROXY
        return url if is_good else None
    except ValueError:  # half a character, a broken port
        return None


def _proxy_of_parts(proxy: Any) -> str | None:
    if not isinstance(proxy, dict):
        return None
    if isinstance(proxy.get("url"), str) and proxy["url"].strip():
        return str(proxy["url"]).strip()
    host, port = proxy.get("host"), proxy.get("port")
    if not isinstance(host, str) or not host:
        return None
    scheme = str(proxy.get("scheme") or proxy.get("protocol") or proxy.get("type") or "http").lower()
    user, password = str(proxy.get("username") or ""), str(proxy.get("password") or "")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    return f"{scheme}://{login}{host}{f':{port}' if port else ''}"
