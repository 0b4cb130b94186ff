"""The queue on the event loop: so many in the air, the next as soon as one has landed, and a stop when it is wanted."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator

import pytest
from dramatiq.asyncio import EventLoopThread

from lienworker.outbox.rows import Claimed
from lienworker.steps.in_flight import AfterCall, InFlight
from tests.harness.node import PATIENCE, wait_until


class Harbour:
    """Errands that end when a test says so, with the after that it says."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.news = threading.Event()
        self.left: list[int] = []
        self._ends: dict[int, asyncio.Future[AfterCall]] = {}
        self.loop = loop
        self.in_flight: InFlight[int, AfterCall] = InFlight(loop, self._send, lambda after: after, self.news)

    async def _send(self, number: int) -> AfterCall:
        self._ends[number] = self.loop.create_future()
        self.left.append(number)
        return await self._ends[number]

    def load(self, *numbers: int, width: int) -> None:
        self.in_flight.load([(row(number), number) for number in numbers], width)

    def end(self, number: int, after: AfterCall = AfterCall.CONTINUE) -> None:
        self.loop.call_soon_threadsafe(lambda: self._ends[number].set_result(after))

    def have_left(self, *numbers: int) -> None:
        wait_until(lambda: self.left == list(numbers), what=f"{self.left}")

    def has_landed(self, number: int) -> None:
        landed: list[int] = []
        wait_until(lambda: landed.extend(found.id for found, _ in self.in_flight.landed()) or landed)
        assert landed == [number]

    def nothing_more_leaves(self) -> None:
        """Whatever the loop had to do is done."""
        before = list(self.left)
        for _ in range(3):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result(60)
        assert self.left == before


def row(number: int) -> Claimed:
    return Claimed(number, "upload_raw", f"t{number}", 1, "", "default", 3, 0, None, 0, "", None, 0, None, None, None,
                   "gateway", "{}", None, None, None, "x.1", 0)  # fmt: skip


@pytest.fixture
def harbour() -> Iterator[Harbour]:
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    yield Harbour(loop.loop)
    loop.stop()


def test_so_many_are_in_the_air_and_the_next_leaves_without_the_threads_help(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, 4, width=2)
    harbour.have_left(1, 2)
    harbour.nothing_more_leaves()
    assert (harbour.in_flight.under_way, harbour.in_flight.waiting) == (2, 2)
    harbour.end(2)
    harbour.have_left(1, 2, 3)
    assert harbour.news.is_set()
    harbour.has_landed(2)
    assert len(harbour.in_flight) == 3


def test_whoever_failed_rests_until_it_is_judged_and_the_others_go_on(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, 4, 5, width=2)
    harbour.have_left(1, 2)
    harbour.end(1, AfterCall.REST)
    harbour.has_landed(1)
    harbour.end(2)
    harbour.have_left(1, 2, 3)
    harbour.nothing_more_leaves()
    harbour.load(width=2)
    harbour.have_left(1, 2, 3, 4)


def test_nobody_leaves_after_a_halt_until_it_is_judged(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, 4, width=2)
    harbour.have_left(1, 2)
    harbour.end(1, AfterCall.HALT)
    harbour.has_landed(1)
    harbour.end(2)
    harbour.has_landed(2)
    harbour.nothing_more_leaves()
    assert [found.id for found in harbour.in_flight.unload()] == [3, 4]
    assert len(harbour.in_flight) == 0


def test_a_narrower_way_is_kept_to(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, 4, 5, width=3)
    harbour.have_left(1, 2, 3)
    harbour.load(width=1)
    harbour.end(1)
    harbour.end(2)
    harbour.nothing_more_leaves()
    harbour.end(3)
    harbour.have_left(1, 2, 3, 4)


def test_what_is_abandoned_lands_no_more(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, width=2)
    harbour.have_left(1, 2)
    assert {found.id for found in harbour.in_flight.abandon()} == {1, 2, 3}
    harbour.nothing_more_leaves()
    assert harbour.in_flight.landed() == []
    assert len(harbour.in_flight) == 0


def test_a_group_is_waited_for_until_it_is_large_enough_or_complete(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, width=3)
    harbour.have_left(1, 2, 3)
    harbour.end(1)
    harbour.end(2)
    harbour.in_flight.wait_for_group(2, PATIENCE)
    assert len(harbour.in_flight.landed()) == 2
    harbour.end(3)
    began = time.monotonic()
    harbour.in_flight.wait_for_group(2, PATIENCE)
    assert time.monotonic() - began < PATIENCE, "there is no second one to wait for"
    assert len(harbour.in_flight.landed()) == 1


def test_after_a_group_a_single_one_is_news_again(harbour: Harbour) -> None:
    harbour.load(1, 2, width=2)
    harbour.have_left(1, 2)
    harbour.in_flight.wait_for_group(2, 0.0)
    harbour.news.clear()
    harbour.end(1)
    assert harbour.news.wait(PATIENCE)
