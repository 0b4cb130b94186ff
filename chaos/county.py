"""The county of a chaos run: it can fail in every way that sites fail, and knows which pages it really served."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from chaos.witness import WatchedCounty

_SLOW, _HANG = 2.0, 30.0


class FailingCounty(WatchedCounty):
    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(**options)
        self._dice = random.Random(seed)
        self._faults: dict[int, tuple[str, float]] = {}
        #: How often each parcel's page went out whole.
        self.served: Counter[str] = Counter()
        self.failed = 0

    def fault(self, key: int, kind: str, probability: float) -> None:
        self._faults[key] = (kind, probability)

    def mend(self, key: int) -> None:
        self._faults.pop(key, None)

    def mend_all(self) -> None:
        self._faults.clear()

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await super()._record(request, handler)
        if not request.path.startswith("/parcel/"):
            return answer
        for kind, probability in list(self._faults.values()):
            if self._dice.random() < probability:
                self.failed += 1
                return await self._fail(request, answer, kind)
        if answer.status == 200:
            self.served[request.path] += 1
        return answer

    async def _fail(self, request: web.Request, answer: web.StreamResponse, kind: str) -> web.StreamResponse:
        if kind in {"500", "503", "429"}:
            return web.Response(status=int(kind), text="not now", headers={"Retry-After": "1"})
        if kind == "slow":  # late, but whole
            await asyncio.sleep(_SLOW)
            self.served[request.path] += 1
            return answer
        if kind == "hang":
            await asyncio.sleep(_HANG)
        if kind == "half":
            await self._send_half(request, answer)
        if request.transport is not None:
            request.transport.abort()
        return answer

    async def _send_half(self, request: web.Request, answer: web.StreamResponse) -> None:
        body = getattr(answer, "body", b"") or b""
        response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": str(len(body))})
        await response.prepare(request)
        await response.write(bytes(body[: len(body) // 2]))
