"""Try known sources: one polite request each, as the workers fetch, and the outcome stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.errors import PageError
from lienworker.fetching import Fetched, Fetcher, FetchFailed, FetchRequest, Jar
from lienworker.fetching.turns import TurnError
from lienworker.hostnames import host_of
from lienworker.platforms import Page, Registry, Target
from lienworker.platforms.vendors.arcgis.layer import describe_url, learn
from lienworker.settings import Settings
from lienworker.steps.pacer import HostPacer
from lienworker.steps.runtime import make_fetcher
from lienworker.store.parcel_sources import ParcelSource, Tried, record_tried

#: Sites that are asked at a time; each is asked one thing at a time.
_SITES_AT_ONCE = 16
#: Outcomes that are stored together: a kill loses at most so many, and they are asked again.
_BATCH = 50
#: A number that hardly any parcel has: the site's answer to it says that the site answers.
_NO_PARCEL = "0"
#: What is no failure here: a site without this parcel, and a file as large as a roll is.
_ANSWERS = frozenset({("page", "http_404"), ("file", "too_large")})
Note = Callable[[ParcelSource, Tried], None]


def check_sources(
    settings: Settings, folder: DataFolder, registry: Registry, sources: Iterable[ParcelSource], note: Note
) -> None:
    """Ask each source once and store how it went. `note` is told of each; the store must be open."""
    pacer = HostPacer(settings.host_delay)
    try:
        asyncio.run(_check_all(settings, folder, pacer, _by_site(registry, sources), note))
    finally:
        pacer.close()


Request = tuple[ParcelSource, str]


def _by_site(registry: Registry, sources: Iterable[ParcelSource]) -> list[list[Request]]:
    """Group the requests by site: two at once would only wait for each other's turn."""
    sites: dict[str, dict[str, Request]] = {}
    for source in sources:
        url = _address(registry, source)
        sites.setdefault(host_of(url), {}).setdefault(source.key, (source, url))
    return [list(requests.values()) for requests in sites.values()]


def _address(registry: Registry, source: ParcelSource) -> str:
    if source.kind == "layer":
        return describe_url(source.url)
    if source.kind == "page" and source.platform:
        target = Target(source.platform, source.state, source.county, _NO_PARCEL, None, source.settings)
        try:
            return registry.get(source.platform).build_url(target) or source.url
        except PageError:  # an unknown platform is said when a parcel is asked for
            return source.url
    return source.url


async def _check_all(
    settings: Settings, folder: DataFolder, pacer: HostPacer, sites: Sequence[list[Request]], note: Note
) -> None:
    fetcher = await make_fetcher(settings, pacer)
    done: dict[str, Tried] = {}
    free = asyncio.Semaphore(_SITES_AT_ONCE)

    def keep(source: ParcelSource, tried: Tried) -> None:
        note(source, tried)
        done[source.key] = tried
        if len(done) >= _BATCH:
            record_tried(folder, done)
            done.clear()

    async def visit(requests: list[Request]) -> None:
        async with free:
            for source, url in requests:
                keep(source, await _check(fetcher, source, url, settings.proxy))

    try:
        async with asyncio.TaskGroup() as visits:
            for requests in sites:
                visits.create_task(visit(requests))
    finally:
        if done:
            record_tried(folder, done)
        await fetcher.close()


async def _check(fetcher: Fetcher, source: ParcelSource, url: str, proxy: str | None) -> Tried:
    request = FetchRequest(url, proxy=proxy)
    if source.kind == "file":  # its size does not matter, and nobody wants it yet
        request = FetchRequest(url, proxy=proxy, method="HEAD", jar=Jar())
    try:
        outcome = await fetcher.fetch(request)
    except TurnError as later:
        return Tried(rfc3339(), False, f"not asked: {later}")
    if isinstance(outcome, FetchFailed):
        answers = (source.kind, outcome.reason) in _ANSWERS
        return Tried(rfc3339(), answers, "the site answers" if answers else f"{outcome.reason}: {outcome.detail}")
    if source.kind != "layer" or not isinstance(outcome, Fetched):
        return Tried(rfc3339(), True, "the site answers")
    return _judge_layer(source, outcome)


def _judge_layer(source: ParcelSource, reply: Fetched) -> Tried:
    page = Page(reply.url, reply.body, reply.content_type, reply.charset, reply.status)
    try:
        learned = learn(page, source.settings.get("field"))
    except PageError as problem:
        return Tried(rfc3339(), False, f"{problem.reason}: {problem.detail}")
    return Tried(rfc3339(), True, f"the layer answers; its parcel ids are in {learned['field']}", learned)
