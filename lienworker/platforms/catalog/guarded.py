"""Parsing pages that nobody has looked at: here where they are plain, in a process with limits where they are not.

`parse_guarded` is the way in for whoever has a page from outside. A page that is over a bound fails as `too_complex`
at once; one that looks heavy, is nested deeply or has brought this process to the end of its memory or its stack is
parsed in the child of `lienworker.limited`, and fails as `too_complex` if that is too little for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lienworker.errors import HeavyPageError
from lienworker.limited import OverLimitError, run_limited
from lienworker.platforms.catalog.folder import registry_with
from lienworker.platforms.catalog.registry import NO_VERDICT, ParsedPage, Registry
from lienworker.platforms.core.base import Page, Target
from lienworker.platforms.core.bounds import too_complex

logger = logging.getLogger(__name__)


def parse_guarded(registry: Registry, page: Page, target: Target) -> ParsedPage:
    """The record of the page. Raises PageError, or ShortageError where the machine has no process to spare."""
    return parse_here(registry, page, target) or parse_in_child(registry, page, target)


def parse_here(registry: Registry, page: Page, target: Target) -> ParsedPage | None:
    """The record of the page; None where only a process with limits should look at it."""
    try:
        return registry.parse(page, target)
    except HeavyPageError as problem:
        logger.info("parsed in a process with limits: %s", problem.detail)
    except NO_VERDICT as problem:
        # Says nothing of the page yet: the memory may be somebody else's, and the stack was not ours alone.
        logger.warning("%s while parsing %s: once more in a process with limits", type(problem).__name__, page.url)
    page.forget()
    return None


def parse_in_child(registry: Registry, page: Page, target: Target) -> ParsedPage:
    """The record of the page, made by a process with limits."""
    others = [[name, page_facts(part), len(part.body)] for name, part in page.more.items()]
    return ask_child(
        "lienworker.platforms.catalog.guarded:parse_job", registry, page, target, {"part": page.part, "others": others}
    )


def ask_child(
    job: str, registry: Registry, page: Page, target: Target, more: Mapping[str, Any] = MappingProxyType({})
) -> ParsedPage:
    """The record of the page, made by this job in a process with limits; `more` is what the job is told besides."""
    about = {
        "folder": str(registry.folder) if registry.folder else None,
        "page": page_facts(page),
        "target": [target.platform, target.state, target.county, target.parcel_id, target.url, dict(target.extra)],
        **more,
    }
    body = b"".join((page.body, *(part.body for part in page.more.values()))) if page.more else page.body
    parsed = json.loads(call_limited(job, about, body))
    return ParsedPage(parsed["platform"], parsed["version"], parsed["record"])


def call_limited(job: str, about: dict[str, Any], body: bytes) -> bytes:
    """A job about a page in the process with limits; what is over them is the page's fault."""
    try:
        return run_limited(job, about, body)
    except OverLimitError as problem:
        raise too_complex(f"the page cannot be parsed: {problem}") from None


def page_facts(page: Page) -> list[Any]:
    return [page.url, page.content_type, page.charset, page.status]


def page_under_limits(facts: list[Any], body: bytes) -> Page:
    """The page on the other side."""
    url, content_type, charset, status = facts
    page = Page(url, body, content_type, charset, status)
    page.under_limits = True
    return page


def parse_job(about: dict[str, Any], body: bytes) -> bytes:
    """`parse_in_child` on the other side: the bodies of all parts, one behind the other."""
    start = len(body) - sum(size for _, _, size in about["others"])
    page = page_under_limits(about["page"], body[:start] if about["others"] else body)
    page.part, more = about["part"], {}
    for name, facts, size in about["others"]:
        more[name] = page_under_limits(facts, body[start : start + size])
        start += size
    page.more = more
    return parse_page_job(about, page)


def parse_page_job(about: dict[str, Any], page: Page) -> bytes:
    """The record of a page in the process with limits, as its answer."""
    parsed = _registry(about["folder"]).parse(page, Target(*about["target"]))
    page.forget()  # the record as text needs the room
    return json.dumps({"platform": parsed.platform, "version": parsed.version, "record": parsed.record}).encode()


@cache
def _registry(folder: str | None) -> Registry:
    return registry_with(Path(folder) if folder else None)
