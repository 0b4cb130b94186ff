"""The queue on the event loop: so many in the air, the next as soon as one has landed, and a stop when it is wanted."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator

import pytest
from dramatiq.asyncio import EventLoopThread

from lienworker.actors.convoy import Convoy, Course
from lienworker.outbox.entries import Claimed
from tests.node import wait_until


class Harbour:
    """Errands that end when a test says so, with the course that it says."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.news = threading.Event()
        self.left: list[int] = []
        self._ends: dict[int, asyncio.Future[Course]] = {}
        self.loop = loop
        self.convoy: Convoy[int, Course] = Convoy(loop, self._send, lambda course: course, self.news)

    async def _send(self, number: int) -> Course:
        self._ends[number] = self.loop.create_future()
        self.left.append(number)
        return await self._ends[number]

    def load(self, *numbers: int, width: int) -> None:
        self.convoy.load([(row(number), number) for number in numbers], width)

    def end(self, number: int, course: Course = Course.GO_ON) -> None:
        self.loop.call_soon_threadsafe(lambda: self._ends[number].set_result(course))

    def have_left(self, *numbers: int) -> None:
        wait_until(lambda: self.left == list(numbers), what=f"{self.left}")

    def has_landed(self, number: int) -> None:
        landed: list[int] = []
        wait_until(lambda: landed.extend(found.id for found, _ in self.convoy.landed()) or landed)
        assert landed == [number]

    def nothing_more_leaves(self) -> None:
        """Whatever the loop had to do is done."""
        before = list(self.left)
        for _ in range(3):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result(60)
        assert self.left == before


def row(number: int) -> Claimed:
    return Claimed(number, "upload_raw", f"t{number}", 1, "", "default", 3, 0, None, 0, "", None, None, None, None,
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
    assert (harbour.convoy.in_air, harbour.convoy.waiting) == (2, 2)
    harbour.end(2)
    harbour.have_left(1, 2, 3)
    assert harbour.news.is_set()
    harbour.has_landed(2)
    assert len(harbour.convoy) == 3


def test_whoever_failed_rests_until_it_is_judged_and_the_others_go_on(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, 4, 5, width=2)
    harbour.have_left(1, 2)
    harbour.end(1, Course.REST)
    harbour.has_landed(1)
    harbour.end(2)
    harbour.have_left(1, 2, 3)
    harbour.nothing_more_leaves()
    harbour.load(width=2)
    harbour.have_left(1, 2, 3, 4)


def test_nobody_leaves_after_a_halt_until_it_is_judged(harbour: Harbour) -> None:
    harbour.load(1, 2, 3, 4, width=2)
    harbour.have_left(1, 2)
    harbour.end(1, Course.HALT)
    harbour.has_landed(1)
    harbour.end(2)
    harbour.has_landed(2)
    harbour.nothing_more_leaves()
    assert [found.id for found in harbour.convoy.unload()] == [3, 4]
    assert len(harbour.convoy) == 0


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
    assert {found.id for found in harbour.convoy.abandon()} == {1, 2, 3}
    harbour.nothing_more_leaves()
    assert harbour.convoy.landed() == []
    assert len(harbour.convoy) == 0
