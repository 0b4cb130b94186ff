"""Results: search, columns by platform, download of what the filter shows."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from importlib.util import find_spec
from typing import IO, Any

from aiohttp import web

from lienworker.errors import LienworkerError
from lienworker.queries.export import Shape, export, flatten, selected
from lienworker.queries.filters import TaskFilter
from lienworker.queries.formatting import label
from lienworker.queries.lists import list_results
from lienworker.queries.suggestions import known_values
from lienworker.web.pages import CannotError, NotThereError, Page, Place, Question, list_facts
from lienworker.web.server import Server, question_of

FILTERS = ("platform", "state", "county", "text", "since", "doubtful")
_USUAL = ("owner_name", "property_address", "total_due")
_MOST_COLUMNS = 6
#: What the list shows in any case.
_SHOWN_ANYWAY = {"parcel_id", "state", "county", "platform"}
_FORMS = {
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
}
#: `pip install 'lienworker[excel]'` brings it; without it workbooks are not offered.
HAS_EXCEL = find_spec("xlsxwriter") is not None
_CHUNK = 256 * 1024


def filter_of(question: Question) -> TaskFilter:
    texts: dict[str, Any] = {name: question.text(name) for name in FILTERS if name != "doubtful"}
    doubtful, import_id = question.text("doubtful") is not None, question.number("import_id", 0) or None
    return TaskFilter(**texts, doubtful=doubtful, import_id=import_id)


def results(_place: Place, question: Question) -> Page:
    wanted = filter_of(question)
    oldest_first = question.text("sort") == "oldest"
    shown = list_facts(
        question,
        lambda below, limit: list_results(wanted, below, limit, oldest_first=oldest_first),
        stays=not oldest_first,
    )
    columns = _columns([row["data"] for row in shown["rows"]]) if wanted.platform else list(_USUAL)
    for row in shown["rows"]:
        flat = flatten(row["data"])
        row["cells"] = {name: flat.get(name) for name in columns}
    facts = {
        "filter": {name: getattr(wanted, name) or None for name in (*FILTERS, "import_id")}
        | {"sort": "oldest" if oldest_first else None},
        "columns": [(name, label(name), "") for name in columns],
        "suggest": known_values(),
        "has_excel": HAS_EXCEL,
        **shown,
    }
    return Page("results.html", "Results", facts)


def _columns(data: list[dict[str, Any]]) -> list[str]:
    """Return what a platform's results have in common, in their order."""
    counter: Counter[str] = Counter()
    for item in data:
        plain = (name for name, value in item.items() if value is not None and not isinstance(value, dict | list))
        counter.update(name for name in plain if name not in _SHOWN_ANYWAY)
    chosen = {name for name, _ in counter.most_common(_MOST_COLUMNS)}
    return [name for name in counter if name in chosen]


def add_routes(server: Server, app: web.Application) -> None:
    async def download(request: web.Request) -> web.StreamResponse:
        form = request.match_info["form"]
        if form not in _FORMS:
            raise NotThereError("Results come as .xlsx, .csv, .json or .jsonl.")
        wanted = filter_of(question_of(request))
        with await server.call(_written, server.place, wanted, form) as file:
            return await _send(request, file, form)

    app.router.add_get("/results.{form}", download)


def _written(place: Place, wanted: TaskFilter, form: str) -> IO[bytes]:
    """Write results to a temporary file first: there may be many, and a failure must not tear the download."""
    file = tempfile.TemporaryFile("w+b", dir=place.folder.root)  # noqa: SIM115
    try:
        export(selected(wanted), Shape(form), file)
    except LienworkerError as problem:
        file.close()
        raise CannotError(str(problem)) from None
    file.flush()
    return file


async def _send(request: web.Request, file: IO[bytes], form: str) -> web.StreamResponse:
    from lienworker.web.guard import HEADERS

    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="results.{form}"'}
    response = web.StreamResponse(headers=headers)
    response.content_type = _FORMS[form]
    response.content_length = os.fstat(file.fileno()).st_size
    await response.prepare(request)
    position = 0
    while chunk := os.pread(file.fileno(), _CHUNK, position):
        await response.write(chunk)
        position += len(chunk)
    await response.write_eof()
    return response
