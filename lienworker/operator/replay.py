"""The manual resync: a person sends what waits, is parked or was held, from this very process."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dramatiq.asyncio import EventLoopThread

from lienworker.operator.rows import RowFilter, fates_of, find_ids, raw_files_of, ready_for_replay
from lienworker.outbox.states import NEVER_SENDABLE
from lienworker.outbox.uploads import Chosen, Claim, waits_as_asked
from lienworker.settings import Settings
from lienworker.steps.runtime import running
from lienworker.steps.upload.loop import Uploader

#: What standalone held is meant to be replayed; what a person or the drift guard held, only if asked for.
_USUAL, _ALL_HELD = ("standalone",), ("standalone", "operator", "drift", "restored")
_STATES = ("waiting", "parked", "held")
#: How long rows in another process's hands are waited for, and rows that the Gateway asked to send later, s.
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of the rows that were meant."""

    total: int
    delivered: int
    states: dict[str, int]

    @property
    def is_complete(self) -> bool:
        return self.delivered == self.total


@dataclass(frozen=True, slots=True)
class Meant:
    """The rows to replay; `along` of them are raw files that nobody named, but that named results wait for."""

    ids: list[int]
    along: int


def rows_to_replay(wanted: RowFilter, *, include_held: bool) -> Meant:
    """What is meant. What can never be sent is left where it is; a result takes its raw file along."""
    reasons = _ALL_HELD if include_held else _USUAL
    named = find_ids(wanted, _STATES, reasons, but_not=NEVER_SENDABLE)
    ids = sorted({*named, *raw_files_of(named, reasons)})
    return Meant(ids, len(ids) - len(named))


def replay(settings: Settings, ids: list[int], wanted: RowFilter, show: Callable[[int, int], None]) -> Replayed:
    """Leases and sends the rows itself; beside a running stack nothing is sent twice, since a row has one holder."""
    settings = replace(settings, standalone=False, gateway_sync="enabled")
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    try:
        with running(settings, "replay", 0, loop.loop) as here, _interrupts_stop(here.stopping):
            here.gateway.open()
            ready_for_replay(ids, wanted.in_words())
            with here.holder.lease() as token:
                # Without a filter every row is meant, so there is no need to name them.
                claim = Claim(token, here.rules, only=None if wanted.is_empty else Chosen(ids))
                return _send(Uploader(here.upload, claim), ids, show)
    finally:
        loop.stop()


@contextmanager
def _interrupts_stop(stopping: threading.Event) -> Iterator[None]:
    """Ctrl-C ends the sending in good order, as a stop ends a worker; only then it is what it always is.

    Python would raise it on any line, also in the middle of waiting for the event loop, which then waits for us.
    A second one is not waited for.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
        yield
        return
    usual = signal.getsignal(signal.SIGINT)

    def stop(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, usual)
        stopping.set()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if stopping.is_set():
        raise KeyboardInterrupt


def _send(uploader: Uploader, ids: list[int], show: Callable[[int, int], None]) -> Replayed:
    deadline, before = time.monotonic() + _PATIENCE, 0
    tick = _Ticker(ids, show)
    while True:
        has_more = uploader.work(tick=tick)
        states = tick.look()
        ended = states.get("delivered", 0) + states.get("superseded", 0)
        if ended == len(ids) or uploader.context.stopping.is_set():
            break
        if has_more or ended > before:
            deadline, before = time.monotonic() + _PATIENCE, ended
        if has_more:
            continue
        if not (states.get("leased") or waits_as_asked(int(1000 * _PATIENCE))) or time.monotonic() > deadline:
            break  # the rest cannot go now: refused, or the Gateway does not take it
        uploader.context.stopping.wait(0.2)
    return Replayed(len(ids), ended, states)


class _Ticker:
    """Shows how far it is, a few times a second at most: counting a day's rows takes a while."""

    def __init__(self, ids: list[int], show: Callable[[int, int], None]) -> None:
        self._ids = ids
        self._show = show
        self._next = 0.0

    def __call__(self) -> None:
        if time.monotonic() >= self._next:
            began = time.monotonic()
            self.look()
            self._next = time.monotonic() + max(0.3, 40 * (time.monotonic() - began))

    def look(self) -> dict[str, int]:
        states = fates_of(self._ids)
        self._show(states.get("delivered", 0) + states.get("superseded", 0), len(self._ids))
        return states
