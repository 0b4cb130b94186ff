"""Walking a flow for a claimed row: every request through the ordinary fetcher, on the event loop.

The claim has booked the first request's turn at the host; each further one books its own when it is due. Between two
requests a flow is a coroutine that waits, so it takes no thread; only looking into a page does, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar
from weakref import WeakKeyDictionary

from lienworker.db.database import DATABASE_TROUBLE, close, write
from lienworker.errors import PageError
from lienworker.failpoints import failpoint
from lienworker.fetching import Fetched, Fetcher, FetchFailed, FetchOutcome, FetchRequest, Jar, fault_of
from lienworker.fetching.turns import FarTurnError, Turn, TurnError
from lienworker.outbox.rows import Claimed
from lienworker.outbox.sessions import LeasedSession, SessionState, note_unsafe_post
from lienworker.platforms import Page, Platform, Registry, Target
from lienworker.platforms.flows import Ask, Done, Ended, Flow, OpenSession, Refused, Walk, can_walk
from lienworker.platforms.flows.walk import SESSION_LOST, UNEXPECTED_PAGE
from lienworker.steps.pacer import turn_of
from lienworker.steps.scrape import target_of

#: How long a step waits at most before it asks again for a turn at a host that is far from having one, s.
_PATIENCE = 30.0
T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FlowJob:
    """What a row's flow needs: the way, the parcel, and the session in which it is walked."""

    flow: Flow
    target: Target
    #: None where the flow keeps no session.
    session: LeasedSession | None
    #: The address is replaced by each step's; the proxy is the row's.
    request: FetchRequest


@dataclass(frozen=True, slots=True)
class Walked:
    """How a walk ended: with the parcel's pages by their parts, or with a failure; and what is left of its session."""

    parts: tuple[tuple[str, Fetched], ...]
    failed: FetchFailed | None
    requests: int
    session: LeasedSession | None
    #: What to store of the session; None where it is over.
    state: SessionState | None
    #: For how long a session lasts that this walk has opened, s; None where it has opened none.
    opened_for: float | None


def flow_of(registry: Registry, row: Claimed) -> tuple[str, Flow, Target] | None:
    """Return the platform, the flow and the target of a row whose pages a flow reaches; None where one GET does."""
    platform = _platform_of(registry, row)
    if platform is None or platform.flow is None:
        return None
    target = target_of(row)
    flow = platform.flow_for(target)
    return (platform.name, flow, target) if flow is not None and can_walk(flow, target) else None


def _platform_of(registry: Registry, row: Claimed) -> Platform | None:
    """Return the row's platform, as far as that matters here: most tasks have no flow, and must not pay for one."""
    if row.platform:
        try:
            return registry.get(row.platform)
        except PageError:
            return None
    found = next((platform for platform in registry.with_flows() if platform.matches_url(row.url)), None)
    return found if found is not None and registry.for_url(row.url) is found else None


def maker_of(flow: Flow) -> str:
    """Return a hash of what opens the flow's sessions: a session that another flow has opened is not used."""
    opening = repr((flow.open, sorted(flow.settings.items()), sorted(flow.headers.items())))
    return hashlib.sha256(opening.encode()).hexdigest()[:16]


class FlowWalker:
    """One per process. Looks into pages, and notes unsafe POSTs, in a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "flows")
        self.watch: Callable[[Ask, FetchOutcome, Jar], None] | None = None
        """Told each request with its reply, where a person looks on."""

    async def walk(self, fetcher: Fetcher, row: Claimed, job: FlowJob, stopping: threading.Event) -> Walked | None:
        """Walk the row's flow; return None where it must be walked later, as if it had never been tried.

        A session that turns out to be over is opened anew, and the flow begins again at its first step, once.
        """
        trip = _Trip(self, fetcher, row, job, stopping)
        state = job.session.state if job.session else None
        outcome = await trip.walk(state)
        if state is not None and trip.is_lost(outcome) and not trip.has_sent_unsafe:
            logger.info("the session of %s is over: it is opened anew", row.host, extra={"action": "session"})
            outcome = await trip.walk(None)
        return None if outcome is None else trip.end(outcome)

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Close the walker; not on the event loop."""
        self._thread.submit(close)
        self._thread.shutdown()


Outcome = Done | FetchFailed | None


class _Trip:
    """The walks of one row: the one in its session, and perhaps a second one in a new session."""

    def __init__(
        self, walker: FlowWalker, fetcher: Fetcher, row: Claimed, job: FlowJob, stopping: threading.Event
    ) -> None:
        self._walker = walker
        self._fetcher = fetcher
        self._row = row
        self._job = job
        self._stopping = stopping
        self._turn: Turn | None = turn_of(row)
        self._jar = Jar()
        self._opened: OpenSession | None = None
        self._is_new = False
        #: Of the pages that the walk still has: what a step only looks at is let go of.
        self._fetched: WeakKeyDictionary[Page, Fetched] = WeakKeyDictionary()
        self._requests = 0
        self.has_sent_unsafe = False

    async def walk(self, state: SessionState | None) -> Outcome:
        """Walk once; None where nothing could be asked for, or the process is to stop."""
        self._jar = Jar(state.cookies if state else ())
        walk = Walk(self._job.flow, self._job.target, OpenSession(state.values, state.url) if state else None)
        self._is_new = state is None
        try:
            return await self._follow(walk)
        finally:
            self._opened = walk.opened

    async def _follow(self, walk: Walk) -> Outcome:
        move = await self._walker.in_thread(walk.start)
        while isinstance(move, Ask):
            if self._stopping.is_set() and not self.has_sent_unsafe:
                return None
            outcome = await self._ask(move)
            if outcome is None:
                return self._unsure() if self.has_sent_unsafe else None
            if self._walker.watch:
                self._walker.watch(move, outcome, self._jar)
            page = _page_of(outcome, move.url)
            if page is None:
                assert isinstance(outcome, FetchFailed)
                return self._failed(outcome)
            if isinstance(outcome, Fetched):
                self._fetched[page] = outcome
            failpoint("flow.between_steps")
            ask, reply = move, page
            move = await self._walker.in_thread(lambda: walk.reply(reply))  # noqa: B023 - awaited at once
            if isinstance(move, Refused):
                assert isinstance(outcome, FetchFailed)
                return self._failed(replace(outcome, detail=f"{ask.label}: {outcome.detail}"))
        if isinstance(move, Ended):
            return self._failed(_failure_of(move))
        assert isinstance(move, Done)
        return move

    async def _ask(self, ask: Ask) -> FetchOutcome | None:
        """Send one request, in its turn at the host; None where there is no turn to be had."""
        if not ask.safe:
            if not await self._walker.in_thread(lambda: _note(self._row, ask.label)):
                return None
            self.has_sent_unsafe = True
        request = replace(
            self._job.request, url=ask.url, method=ask.method, body=ask.body, headers=ask.headers, jar=self._jar
        )
        while True:
            is_first, turn, self._turn = self._turn is not None, self._turn, None
            try:
                outcome = await self._fetcher.fetch(replace(request, turn=turn))
                self._requests += 1
                return outcome
            except FarTurnError as far:
                if is_first or self._stopping.is_set():
                    return None
                # A later step waits for its turn however long the site wants: to begin again would cost it more.
                await asyncio.sleep(min(far.seconds, _PATIENCE))
            except TurnError:
                return None

    def _failed(self, failed: FetchFailed) -> FetchFailed:
        """The failure; one after an unsafe POST is final, since another try would send it again."""
        if not self.has_sent_unsafe or not failed.retryable:
            return failed
        detail = (
            f"{failed.detail} A POST that the flow does not call safe was sent, so it is not tried again by itself."
        )
        return replace(failed, detail=detail, retryable=False)

    def _unsure(self) -> FetchFailed:
        detail = "The flow was interrupted after a POST that it does not call safe (`safe = true`)."
        return failure("unsafe_repeat", detail)

    def is_lost(self, outcome: Outcome) -> bool:
        return isinstance(outcome, FetchFailed) and outcome.reason == SESSION_LOST

    def end(self, outcome: Done | FetchFailed) -> Walked:
        failed = outcome if isinstance(outcome, FetchFailed) else None
        parts = (
            ()
            if isinstance(outcome, FetchFailed)
            else tuple((name, self._fetched[page]) for name, page in outcome.parts.items())
        )
        # What a page with nothing expected on it says of the session is not known: the next walk opens a new one.
        is_over = failed is not None and failed.reason in (SESSION_LOST, UNEXPECTED_PAGE)
        seconds = self._job.flow.session
        state = None
        if self._opened is not None and not is_over and seconds is not None:
            state = SessionState(self._jar.dump(), self._opened.values, self._opened.url)
        opened_for = seconds if self._is_new and state else None
        return Walked(parts, failed, self._requests, self._job.session, state, opened_for)


def _note(row: Claimed, step: str) -> bool:
    try:
        with write("flow_unsafe"):
            note_unsafe_post(row, step)
    except (OSError, *DATABASE_TROUBLE) as problem:
        logger.warning("a POST could not be noted, and waits: %s", problem, extra={"action": "storage"})
        return False
    return True


def _page_of(outcome: FetchOutcome, url: str) -> Page | None:
    """Return the reply as a page for the flow to judge; None where there was none."""
    if isinstance(outcome, Fetched):
        page = Page(outcome.url, outcome.body, outcome.content_type, outcome.charset, outcome.status)
        page.headers = outcome.headers
        return page
    if isinstance(outcome, FetchFailed) and outcome.status is not None and outcome.status >= 400:
        return Page(url, outcome.body or b"", "text/html", None, outcome.status)
    return None


def _failure_of(ended: Ended) -> FetchFailed:
    failed = failure(ended.reason, ended.detail)
    return replace(failed, retryable=ended.retryable)


def failure(reason: str, detail: str) -> FetchFailed:
    """Return a failure of the flow itself: its site has answered, so it is not the host's."""
    return FetchFailed(
        reason=reason,
        detail=detail,
        retryable=fault_of(reason).retryable,
        host_fault=False,
        retry_after=None,
        status=None,
        body=None,
        elapsed_ms=0,
    )
