"""Scrape one target in the caller's own process, with the same steps and transactions as in a worker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from dramatiq.asyncio import EventLoopThread

from lienworker.data_folder import DataFolder
from lienworker.db.database import open_store
from lienworker.errors import InputError, PageError, StoreError
from lienworker.intake.urls import checked_url
from lienworker.operator.flow_trace import FlowTrace
from lienworker.outbox.claims import claim_task
from lienworker.outbox.pacing import Politeness
from lienworker.outbox.registration import register_task
from lienworker.outbox.rows import Claimed
from lienworker.outbox.storage_watch import refusal_message
from lienworker.platforms import Page, Platform, Registry, Target, registry_with
from lienworker.platforms.flows import can_walk
from lienworker.settings import Settings
from lienworker.steps.drift import release_page
from lienworker.steps.fetch import FetchLoop
from lienworker.steps.runtime import Runtime, running
from lienworker.steps.scrape import scrape_row, store_scrapes
from lienworker.store import tasks
from lienworker.store.pages import latest_page
from lienworker.store.raw_files import raw_place, read_page
from lienworker.store.results import result
from lienworker.store.tasks import NewTask

_LOOK_SECONDS = 0.1
_SHOWN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class ByHand:
    """The outcome. `seen` is the text of the page, for a person who wonders why it yielded nothing."""

    task: dict[str, Any]
    result: dict[str, Any] | None
    page: dict[str, Any] | None
    seen: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def queue_target(settings: Settings, target: Target) -> str:
    """Add the task and leave it to the stack; a known one is started again."""
    open_store(settings.data_dir)
    registry = registry_with(settings.platforms_folder)
    url = checked_url(target.url) if target.url else _address(registry, target)
    task = NewTask(
        source="cli",
        url=url,
        platform=target.platform,
        state=target.state,
        county=target.county,
        parcel_id=target.parcel_id,
        target=dict(target.extra),
    )
    parser = registry.get(target.platform) if target.platform else registry.for_url(url)
    politeness = Politeness(parser.delay, parser.concurrency) if parser else None
    register_task(task, refresh=True, politeness=politeness)
    release_page(task.task_id)
    return task.task_id


def _address(registry: Registry, target: Target) -> str:
    """Return the address that the target's platform builds for it."""
    try:
        url = registry.get(target.platform or "").build_url(target)
    except PageError as problem:
        raise InputError(f"{problem.detail}.") from None
    if url is None:
        needed = ", ".join(needs_of(registry.get(target.platform or ""), target))
        words = f"--target {needed}=..." if needed else "a URL"
        raise InputError(f"{target.platform} cannot tell where this parcel is: give it {words} (docs/platforms.md).")
    return checked_url(url)


def needs_of(platform: Platform, target: Target) -> list[str]:
    """Return the words that the platform's flow needs and the target does not say."""
    flow = platform.flow_for(target)
    if flow is None or can_walk(flow, target):
        return []
    missing = [name for name, value in flow.settings.items() if not value and not target.extra.get(name)]
    return missing or ["parcel_id"]


def trace_of(settings: Settings, target: Target, tell: Callable[[str], None], *, in_full: bool) -> FlowTrace | None:
    """Return what tells the steps of the target's flow; None where one GET reaches its page."""
    try:
        flow = registry_with(settings.platforms_folder).get(target.platform or "").flow_for(target)
    except PageError:  # there is no such platform, which `queue_target` says
        return None
    return FlowTrace(flow, tell, in_full=in_full) if flow else None


def scrape_now(settings: Settings, target: Target, trace: FlowTrace | None = None) -> ByHand:
    """Fetch, parse and store a target, and wait for it. A running stack may do a step first; that is as good."""
    task_id = queue_target(settings, target)
    settings = replace(settings, fetch_attempts=1)  # a person waits: a failure is reported at once
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    try:
        with running(settings, "by hand", 0, loop.loop) as here:
            here.walker.watch = trace
            _work_to_the_end(here, task_id)
            return _outcome(here.folder, task_id)
    finally:
        loop.stop()


def _work_to_the_end(here: Runtime, task_id: str) -> None:
    while (found := tasks.task(task_id)) and found["status"] in {"pending", "processing"}:
        with here.holder.lease() as token:
            fetch = claim_task(task_id, "fetch", token, here.rules)
            if fetch:
                _fetch(here, fetch, token)
            scrape = claim_task(task_id, "scrape", token, here.rules)
            if scrape:
                store_scrapes(here.scrape, [scrape_row(here.scrape, scrape)])
        if not (fetch or scrape):
            time.sleep(_LOOK_SECONDS)


def _fetch(here: Runtime, row: Claimed, token: str) -> None:
    """Fetch a page; report at once what cannot be stored, since a person waits and would wait forever."""
    loop = FetchLoop(here.fetch, here.lane(token))
    loop.run_row(row)
    if loop.refused:
        raise StoreError(refusal_message(here.folder, loop.refused).partition(";")[0] + ".")


def _outcome(folder: DataFolder, task_id: str) -> ByHand:
    task, page = tasks.task(task_id), latest_page(task_id)
    assert task is not None
    found = result(task_id) if task["status"] == "completed" else None
    seen = ""
    if page and not found:
        try:
            body = read_page(raw_place(folder.root, page.path), page.sha256)
            seen = _visible_text(Page(page.url, body, page.content_type, page.charset, page.status))
        except (PageError, StoreError) as problem:
            seen = str(problem)
    return ByHand(task, found, asdict(page) if page else None, seen)


def _visible_text(page: Page) -> str:
    """Return what a person would read on the page, without scripts and tags."""
    if page.is_json:
        return page.text[:_SHOWN_CHARACTERS]
    words = page.selector.xpath("//body//text()[not(ancestor::script) and not(ancestor::style)]").getall()
    lines = (" ".join(part.split()) for part in words)
    return "\n".join(line for line in lines if line)[:_SHOWN_CHARACTERS]
