"""Imports: what each file added, what was rejected, and receiving a file that is dropped on the page."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import BodyPartReader, web

from lienworker.db.database import DATABASE_TROUBLE
from lienworker.errors import LienworkerError, OperatorError
from lienworker.intake import RejectsFile
from lienworker.intake.rows import plain_name
from lienworker.maintenance.disk_limits import refuse_new_work, watch_import
from lienworker.platforms import registry_with
from lienworker.queries.forecast.facts import forecast_of_import
from lienworker.queries.forecast.words import as_facts
from lienworker.steps.import_file import How, Importer
from lienworker.steps.parcel_sources import KnownSources
from lienworker.store.counts import failures, import_counts
from lienworker.store.imports import import_numbered
from lienworker.store.imports import imports as all_imports
from lienworker.web.pages import CannotError, NotThereError, Page, Place, Question
from lienworker.web.results import HAS_EXCEL
from lienworker.web.server import Server

_SHOWN = 100
_CHUNK = 256 * 1024
#: After this many bytes of an incoming file the free room is checked again.
_LOOK_AT_DISK = 16 * 1024 * 1024
#: A file that sends nothing for this long is given up, s.
_STALL_SECONDS = 30.0

logger = logging.getLogger(__name__)


def imports(_place: Place, _question: Question) -> Page:
    return Page(
        "imports.html", "Imports", {"rows": [_shown(row, import_counts(row["id"])) for row in all_imports(_SHOWN)]}
    )


def one_import(place: Place, question: Question) -> Page:
    """Return the page of one import: how far its tasks are, and why some failed."""
    number = int(question.params["import_id"])
    found = import_numbered(number)
    if found is None:
        raise NotThereError(f"There is no import {number}.")
    counts = import_counts(number)
    facts = {
        "row": _shown(found, counts),
        "tasks": counts,
        "forecast": as_facts(forecast_of_import(place.settings, number)),
        "failures": [{"reason": reason, "n": n, "sample": sample} for reason, n, sample in failures(number)],
        "has_excel": HAS_EXCEL,
    }
    return Page("import.html", f"Import {number}", facts)


def _shown(row: dict[str, Any], counts: dict[str, int]) -> dict[str, Any]:
    """Return an import with what became of its tasks: in words, and as the share that has ended."""
    n = sum(counts.values())
    left = counts["pending"] + counts["processing"]
    said = [f"{number:,} {status}" for status, number in counts.items() if number]
    return {
        **row,
        "name": Path(row["name"]).name,
        "rejects_path": Path(row["rejects_path"]).name if row["rejects_path"] else None,
        "share": (n - left) / n if n else None,
        "outcome": ", ".join(said) or "no new tasks",
    }


def rejects_file(place: Place, import_id: int) -> Path:
    """Return the file of an import's rejects in its current folder: a restored folder is rarely at the same path."""
    found = import_numbered(import_id)
    path = place.folder.rejects / Path(found["rejects_path"]).name if found and found["rejects_path"] else None
    if path is None or not path.is_file():
        raise NotThereError("This import has no rejects file (any more).")
    return path


def add_routes(server: Server, app: web.Application) -> None:
    running: set[asyncio.Task[None]] = set()

    async def rejects(request: web.Request) -> web.StreamResponse:
        path = await server.call(rejects_file, server.place, int(request.match_info["import_id"]))
        headers = {"Content-Disposition": f'attachment; filename="{plain_name(path.name)}"', "Content-Type": "text/csv"}
        return web.FileResponse(path, headers=headers)

    async def take(request: web.Request) -> web.StreamResponse:
        """Store the file, answer, and import it while the visitor watches the list."""
        await server.call(_check_room, server.place)
        path, name = await _received(request, server)
        importing = asyncio.create_task(server.call(_import, server.place, path, name))
        running.add(importing)
        importing.add_done_callback(running.discard)
        # A small file, or one that cannot be read, is answered at once.
        await asyncio.wait({importing}, timeout=2)
        if importing.done():
            importing.result()
        importing.add_done_callback(_say_trouble)
        raise web.HTTPSeeOther("/imports")

    app.router.add_get(r"/imports/{import_id:[0-9]{1,18}}/rejects", rejects)
    app.router.add_post("/imports", take)


def _say_trouble(importing: asyncio.Task[Any]) -> None:
    """Log why a long import stopped, since nobody waits for it any more; the list shows that it did."""
    if not importing.cancelled() and (problem := importing.exception()):
        logger.warning("an import stopped: %s", problem, extra={"action": "import"})


async def _received(request: web.Request, server: Server) -> tuple[Path, str]:
    """Store the first file of the form in the data folder, piece by piece; return its path and name."""
    async for part in _parts_of(request):
        if isinstance(part, BodyPartReader) and part.filename:
            path = server.place.folder.root / f".upload-{secrets.token_hex(6)}.part"
            try:
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    while chunk := await _next_chunk(part):
                        out.write(chunk)
                        if out.tell() // _LOOK_AT_DISK != (out.tell() - len(chunk)) // _LOOK_AT_DISK:
                            await server.call(_check_room, server.place)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            return path, Path(part.filename).name[:200]
    raise CannotError("No file was sent.")


async def _next_chunk(part: BodyPartReader) -> bytes:
    """Return the next piece; a large file may take its time, but it has to make progress."""
    try:
        async with asyncio.timeout(_STALL_SECONDS):
            return bytes(await part.read_chunk(_CHUNK))
    except TimeoutError:
        raise CannotError("The file stopped coming.") from None


async def _parts_of(request: web.Request) -> AsyncIterator[Any]:
    try:
        async for part in await request.multipart():
            yield part
    except (ValueError, LookupError, AssertionError, web.RequestPayloadError):
        raise CannotError("This is not a form with a file.") from None


def _import(place: Place, path: Path, name: str) -> None:
    """Import a file with the same importer as the command line."""
    rejects = RejectsFile.of_import(place.folder.rejects, name)
    try:
        check_room = watch_import(place.folder, place.settings)
        registry = registry_with(place.settings.platforms_folder)
        importer = Importer(registry, path, name, How(), KnownSources(place.folder, registry))
        importer.run(rejects, lambda tally: check_room())
    except LienworkerError as problem:
        raise CannotError(f"{name} cannot be imported: {problem}") from None
    except DATABASE_TROUBLE:
        logger.exception("import of %s failed", name, extra={"action": "import"})
        raise
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _check_room(place: Place) -> None:
    try:
        refuse_new_work(place.folder, place.settings)
    except OperatorError as problem:
        raise CannotError(str(problem)) from None
