"""Counting calls by endpoint and outcome: in memory, fetched now and then by whoever keeps the figures."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from lienworker.hubs.gateway.outcomes import Outcome, Refused, Unavailable

T = TypeVar("T")
P = ParamSpec("P")


class Calls:
    """How many calls came to what since it was last asked. Calls end on one thread and are taken by another."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, endpoint: str, outcome: Outcome[Any]) -> None:
        if isinstance(outcome, Refused) and outcome.status is None:
            return  # it was never sent
        with self._lock:
            self._counts[f"{endpoint}|{word_of(outcome)}"] += 1

    def take(self) -> dict[str, int]:
        """By `endpoint|outcome`; from now on they are somebody else's to keep."""
        with self._lock:
            taken, self._counts = self._counts, Counter()
        return dict(taken)


class _Counting(Protocol):
    calls: Calls


Client = TypeVar("Client", bound=_Counting)


def counted(
    endpoint: str,
) -> Callable[
    [Callable[Concatenate[Client, P], Awaitable[Outcome[T]]]],
    Callable[Concatenate[Client, P], Coroutine[Any, Any, Outcome[T]]],
]:
    """For the methods of a client: notes what each call came to."""

    def wrap(
        method: Callable[Concatenate[Client, P], Awaitable[Outcome[T]]],
    ) -> Callable[Concatenate[Client, P], Coroutine[Any, Any, Outcome[T]]]:
        @functools.wraps(method)
        async def call(self: Client, /, *args: P.args, **more: P.kwargs) -> Outcome[T]:
            outcome = await method(self, *args, **more)
            self.calls.note(endpoint, outcome)
            return outcome

        return call

    return wrap


def word_of(outcome: Outcome[Any]) -> str:
    if isinstance(outcome, Unavailable):
        return outcome.kind.value
    return "refused" if isinstance(outcome, Refused) else "accepted"
