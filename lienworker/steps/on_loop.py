"""Something that lives on the event loop and is used from worker threads: the Gateway's client, the fetcher."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

R = TypeVar("R")


class Closable(Protocol):
    """What is made here can be closed on the event loop."""

    async def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


class OnLoop(Generic[T]):
    """Made on the event loop when it is first needed: what nobody asks for opens no connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.loop = loop
        self.made: T | None = None
        self._make = make
        self._making = threading.Lock()

    def open(self) -> T:
        """Return it. Not for the event loop's own thread, which would wait for itself."""
        with self._making:
            if self.made is None:
                self.made = self.wait_for(self._make())
            return self.made

    def wait_for(self, call: Coroutine[Any, Any, R], timeout: float | None = None) -> R:
        """Run a coroutine on the event loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(timeout)

    def close(self) -> None:
        if self.made is not None:
            self.wait_for(self.made.close(), timeout=5)
