"""Work that is in the air: coroutines on the event loop whose outcomes are gathered in groups by a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from lienworker.actors.groups import Group
from lienworker.outbox.entries import Claimed

T = TypeVar("T")


class Flights(Generic[T]):
    """Rows whose errands are under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._in_air: dict[int, tuple[Claimed, Future[T]]] = {}
        self._arrived: Group[tuple[Claimed, Future[T]]] = Group()

    def __len__(self) -> int:
        return len(self._in_air)

    @property
    def rows(self) -> list[Claimed]:
        return [row for row, _ in self._in_air.values()]

    def launch(self, row: Claimed, errand: Coroutine[Any, Any, T]) -> None:
        flight = asyncio.run_coroutine_threadsafe(errand, self._loop)
        self._in_air[row.id] = (row, flight)
        flight.add_done_callback(lambda done: self._arrived.put((row, done)))

    def gather(self, most: int, patience: float) -> list[tuple[Claimed, Future[T]]]:
        """What has arrived: waits for the first, then a moment for others that are in the air."""
        arrived = self._arrived.gather(min(most, len(self._in_air)), patience)
        return [(row, flight) for row, flight in arrived if self._in_air.pop(row.id, None)]

    def abandon(self) -> list[Claimed]:
        """Stops waiting; gives the rows that were still in the air."""
        rows = self.rows
        for _, flight in self._in_air.values():
            flight.cancel()
        self._in_air.clear()
        return rows
