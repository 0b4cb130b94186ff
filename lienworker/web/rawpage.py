"""Raw pages: as text, and rendered where they can reach nothing.

A county's page is a stranger's program. It is shown in a frame that runs no scripts, belongs to no origin and may load
nothing (its own policy says so, too); and what could open a connection on its own is removed before.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from lienworker.errors import PageError, StoreError
from lienworker.platforms import Page as SitePage
from lienworker.platforms import registry_with
from lienworker.platforms.catalog.provenance import origins_guarded
from lienworker.store.pages import PageRecord, latest_page, page_of, pages_of, was_purged
from lienworker.store.raw_files import raw_place, read_page
from lienworker.store.results import result
from lienworker.web.pages import NotThereError, Page, Place, Question
from lienworker.web.sanitizer import Sanitizer
from lienworker.web.server import Server, question_of

#: Characters that the task's own page shows.
_SHOWN = 300_000
_FRAME_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'; sandbox"
)
_TEXT_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
_TOO_COMPLEX = (
    "This page is too large or too complex to be shown as a page. "
    "Its text is below this frame, and the whole of it behind the link there."
)


def _find(question: Question) -> PageRecord:
    task_id = question.params["task_id"]
    generation = question.number("generation", 0)
    found = page_of(task_id, generation) if generation else latest_page(task_id)
    if found is None:
        raise NotThereError(f"No page was fetched for task {task_id}.")
    part = question.text("part")
    if part in (None, "", found.part):
        return found
    parts = {page.part: page for page in pages_of(task_id, found.generation)}
    if part not in parts:
        raise NotThereError(f"There is no page {part!r} of task {task_id}; there are {', '.join(parts)}.")
    return parts[part]


def page_text(place: Place, question: Question) -> str:
    return _site_page(place, _find(question)).text


def _site_page(place: Place, record: PageRecord) -> SitePage:
    if was_purged(record):
        raise NotThereError(
            "This raw page was purged: it was old, and its result delivered (LIENWORKER_KEEP_RAW_DAYS)."
        )
    try:
        body = read_page(raw_place(place.folder.root, record.path), record.sha256)
    except StoreError as problem:
        raise NotThereError(str(problem)) from None
    return SitePage(record.url, body, record.content_type, record.charset, record.status)


def _origins(place: Place, record: PageRecord, page: SitePage) -> list[dict[str, Any]]:
    """Where each value of this page's result stands on it; nothing for a page that is not behind the result."""
    made = result(record.task_id)
    if made is None or made["generation"] != record.generation:
        return []
    try:
        platform = registry_with(place.settings.platforms_folder).get(made["platform"])
        return [origin._asdict() for origin in origins_guarded(page, made["data"], platform)]
    except PageError as problem:
        raise NotThereError(f"Nobody can say where its values stand: {problem.detail}.") from None


def view(place: Place, question: Question) -> Page:
    """Return the page as text, with the frame beside it."""
    record = _find(question)
    page = _site_page(place, record)
    text = page.text
    facts = {
        "task_id": record.task_id,
        "generation": record.generation,
        "part": record.part,
        "url": record.url,
        "path": record.path,
        "status": record.status,
        "content_type": record.content_type,
        "fetched_at": record.fetched_at,
        "text": text[:_SHOWN],
        "is_cut": len(text) > _SHOWN,
        "is_html": "html" in record.content_type or record.content_type == "",
        # Asked for, since it costs as much as parsing the page again.
        "origins": _origins(place, record, page) if question.text("origins") else None,
    }
    return Page("rawpage.html", f"Raw page of {record.task_id}", facts)


def add_routes(server: Server, app: web.Application) -> None:
    sanitizer = Sanitizer()

    async def rendered(request: web.Request) -> web.StreamResponse:
        text = await sanitizer.sanitized(await server.call(page_text, server.place, question_of(request)))
        text = f"<p>{_TOO_COMPLEX}</p>" if text is None else text
        headers = {"Content-Security-Policy": _FRAME_POLICY, "X-Frame-Options": "SAMEORIGIN"}
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=headers)

    async def plain(request: web.Request) -> web.StreamResponse:
        text = await server.call(page_text, server.place, question_of(request))
        headers = {"Content-Security-Policy": _TEXT_POLICY}
        return web.Response(text=text, content_type="text/plain", charset="utf-8", headers=headers)

    app.router.add_get("/tasks/{task_id}/page", server.show(view))
    app.router.add_get("/tasks/{task_id}/page/rendered", rendered)
    app.router.add_get("/tasks/{task_id}/page/text", plain)
