"""Walks a flow against a real site with a plain client: what the fetch loop does, without politeness and storage."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp

from lienworker.platforms import Page, Record, Target, default_registry
from lienworker.platforms.flows import Ask, Done, Ended, Flow, OpenSession, Refused, Walk

AGENT = "Mozilla/5.0 (county research)"


class Walker:
    """One cookie jar and one session, kept over several walks of a flow."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client
        self._session: OpenSession | None = None
        self.asked: list[tuple[str, str]] = []

    async def walk(self, flow: Flow, target: Target) -> Done | Ended | Refused:
        walk = Walk(flow, target, self._session)
        move = walk.start()
        while isinstance(move, Ask):
            self.asked.append((move.label, f"{move.method} {move.url}"))
            move = walk.reply(await self._send(move))
        self._session = walk.opened if flow.session and isinstance(move, Done) else None
        if self._session is None:
            self._client.cookie_jar.clear()
        return move

    async def _send(self, ask: Ask) -> Page:
        async with self._client.request(ask.method, ask.url, headers=ask.headers, data=ask.body) as reply:
            page = Page(str(reply.url), await reply.read(), reply.content_type, reply.charset, reply.status)
            page.headers = reply.headers
            return page


def walk_all(flow: Flow, targets: list[Target]) -> list[Done | Ended | Refused]:
    """Walk the flow for each target in turn; a lost session is opened again once, as the fetch loop does."""

    async def run() -> list[Done | Ended | Refused]:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar, headers={"User-Agent": AGENT}) as client:
            walker, moves = Walker(client), []
            for target in targets:
                move = await walker.walk(flow, target)
                if isinstance(move, Ended) and move.reason == "session_lost":
                    move = await walker.walk(flow, target)
                moves.append(move)
            return moves

    return asyncio.run(run())


def walk_one(flow: Flow, target: Target) -> Done | Ended | Refused:
    return walk_all(flow, [target])[0]


def record_of(parts: Mapping[str, Page], target: Target) -> Record:
    return default_registry().parse(in_parts(parts), target).record


def in_parts(parts: Mapping[str, Page]) -> Page:
    """Return the parcel's own page, with the others beside it."""
    (name, first), *more = parts.items()
    first.part, first.more = name, dict(more)
    return first


def target_of(row: Mapping[str, Any]) -> Target:
    """Return the target of a row for an import."""
    known = ("platform", "state", "county", "parcel_id", "url")
    extra = {name: value for name, value in row.items() if name not in known}
    return Target(**{name: row.get(name) for name in known}, extra=extra)
