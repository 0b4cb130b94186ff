"""A Gateway without HTTP, for trying thousands of batches: the counting habits of `/internal/results` and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from lienworker.hubs.gateway.bisect import deliver
from lienworker.hubs.gateway.outcomes import Accepted, DeliveryResult, Kind, Outcome, Refused, Unavailable
from lienworker.hubs.gateway.wire import ResultsReply
from tests.harness.gateway_calls import item

DOWN = Unavailable(Kind.DOWN, "connection refused")


class SimulatedGateway:
    """`failing` parcels fail by themselves, `refused` ones take their whole batch along."""

    def __init__(
        self,
        failing: Iterable[int] = (),
        refused: Iterable[int] = (),
        *,
        stop: int = 11,
        names: bool | Callable[[list[str]], str] = True,
        dead_from: int | None = None,
        unavailable_from: int | None = None,
    ) -> None:
        self.failing = {f"P-{n}" for n in failing}
        self.refused = {f"P-{n}" for n in refused}
        self.stop = stop
        self.names = names
        self.dead_from = dead_from  # the call from which the database is down
        self.unavailable_from = unavailable_from
        self.calls: list[list[str]] = []
        self.stored: set[str] = set()
        self.proven: set[str] = set()

    async def __call__(self, sent: list[Any]) -> Outcome[ResultsReply]:
        ids = [one["parcel_id"] for one in sent]
        assert ids, "an empty batch was sent"
        assert len(set(ids)) == len(ids), "an item was sent twice in one batch"
        assert not self.proven & set(ids), "an item that was proven stored was sent again"
        self.calls.append(ids)
        if self.unavailable_from is not None and len(self.calls) >= self.unavailable_from:
            return DOWN
        if self.refused & set(ids):
            return Refused(400, "HTTP 400: invalid JSON")
        return Accepted(self._stored(ids))

    def _stored(self, ids: list[str]) -> ResultsReply:
        dead = self.dead_from is not None and len(self.calls) >= self.dead_from
        stored, errors = 0, []
        for one in ids:
            if dead or one in self.failing:
                errors.append(f"{self.names(ids) if callable(self.names) else one}: ERROR")
                if len(errors) >= self.stop:
                    break
            else:
                self.stored.add(one)
                stored += 1
        if stored == len(ids):
            self.proven.update(ids)
        return ResultsReply(len(ids), stored, 0, len(errors), tuple(errors) if self.names else ())


def delivered(n: int, gateway: SimulatedGateway) -> list[DeliveryResult]:
    return asyncio.run(deliver([item(f"P-{number}") for number in range(n)], gateway))
