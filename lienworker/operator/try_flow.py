"""Walk a flow once, to look at: nothing is stored, and no session is kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from lienworker.fetching import Fetcher, FetchFailed, FetchOutcome, FetchRequest, Jar
from lienworker.operator.flow_trace import FlowTrace, reply_of
from lienworker.platforms import Page, Target
from lienworker.platforms.flows import Ask, Done, Ended, Flow, Refused, Walk
from lienworker.settings import Settings
from lienworker.steps.runtime import make_fetcher


@dataclass(frozen=True, slots=True)
class Tried:
    """The pages by their parts, or why there are none."""

    parts: dict[str, Page]
    problem: str


def try_flow(settings: Settings, flow: Flow, target: Target, delay: float, trace: FlowTrace) -> Tried:
    """Walk the flow for the target, so many seconds between two requests."""
    return asyncio.run(_try(settings, flow, target, delay, trace))


async def _try(settings: Settings, flow: Flow, target: Target, delay: float, trace: FlowTrace) -> Tried:
    fetcher = await make_fetcher(settings)
    try:
        return await _walk(fetcher, Walk(flow, target), FetchRequest("", proxy=settings.proxy), delay, trace)
    finally:
        await fetcher.close()


async def _walk(fetcher: Fetcher, walk: Walk, request: FetchRequest, delay: float, trace: FlowTrace) -> Tried:
    jar, move = Jar(), walk.start()
    while isinstance(move, Ask):
        if walk.requests > 1:
            await asyncio.sleep(delay)
        asked = replace(request, url=move.url, method=move.method, body=move.body, headers=move.headers, jar=jar)
        outcome = await fetcher.fetch(asked)
        trace(move, outcome, jar)
        page = reply_of(move, outcome)
        if page is None:
            return Tried({}, f"{move.label}: {_detail(outcome)}")
        move = walk.reply(page)
        if isinstance(move, Refused):
            return Tried({}, f"{move.label}: {_detail(outcome)}")
    if isinstance(move, Ended):
        return Tried({}, f"{move.reason}: {move.detail}")
    assert isinstance(move, Done)
    return Tried(dict(move.parts), "")


def _detail(outcome: FetchOutcome) -> str:
    return outcome.detail if isinstance(outcome, FetchFailed) else "the site did not send the page"
