"""A page only to look at, from a file or from its address; nothing is stored."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from pathlib import Path

from lienworker.errors import InputError
from lienworker.fetching import Fetched, FetchFailed, FetchRequest
from lienworker.intake.urls import checked_url
from lienworker.platforms import Page
from lienworker.settings import Settings
from lienworker.steps.runtime import make_fetcher

_TYPES = {".json": "application/json", ".csv": "text/csv", ".txt": "text/plain"}


def page_from_file(path: Path, url: str = "") -> Page:
    """Read a saved page, or one of the store's own (`.html.gz`); `url` is where it came from."""
    try:
        body = path.read_bytes()
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return Page(url, body, _TYPES.get(suffix.lower(), ""))


def page_from_url(settings: Settings, url: str) -> Page:
    return asyncio.run(_fetch(settings, checked_url(url)))


async def _fetch(settings: Settings, url: str) -> Page:
    fetcher = await make_fetcher(settings)
    try:
        outcome = await fetcher.fetch(FetchRequest(url, proxy=settings.proxy))
    finally:
        await fetcher.close()
    if isinstance(outcome, Fetched):
        return Page(outcome.url, outcome.body, outcome.content_type, outcome.charset, outcome.status)
    detail = outcome.detail if isinstance(outcome, FetchFailed) else "the site did not send the page"
    raise InputError(f"{url} cannot be fetched: {detail}")
