"""The API's description, true to the routes: `/api/openapi.json`. A test compares the two and tries each route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from lienworker import __version__
from lienworker.store.counts import OUTBOX_STATES
from lienworker.web import outbox, results, tasks
from lienworker.web.server import json_reply

_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}
_LIST = {"type": "array", "items": _OBJECT}
_COUNT = {"type": "integer"}
_FLAG = {"type": "boolean"}
_MORE = {"type": ["integer", "null"]}
_NULLABLE_OBJECT = {"type": ["object", "null"]}
_BELOW = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_TROUBLE = {
    "401": "The token is missing or wrong.",
    "404": "There is no such thing.",
    "429": "Too many wrong tokens lately.",
    "503": "The storage cannot be used.",
}


def document() -> dict[str, Any]:
    """Return the document that says what programs may ask, and what they get."""
    listing = {"rows": _LIST, "more": _MORE, "looked_at_all": _FLAG, "filter": _OBJECT}
    paths = {
        "/api/overview": _get(
            "The state of the stack",
            {
                "health": _OBJECT,
                "tasks": _OBJECT,
                "outbox": _OBJECT,
                "workers": _LIST,
                "mode": _TEXT,
                "lanes": _LIST,
                "forecast": _OBJECT,
            },
        ),
        "/api/tasks": _get(
            "A page of tasks; `more` is the next `below`, null at the end",
            {**listing, "counts": _OBJECT},
            query=_filters((*tasks.FILTERS, "import_id", "sort")),
        ),
        "/api/tasks/{task_id}": _get(
            "One task with its whole history",
            {"task": _OBJECT, "steps": _LIST, "attempts": _LIST, "pages": _LIST, "result": _NULLABLE_OBJECT},
            path={"task_id": {"type": "string", "minLength": 1, "pattern": "^[^/]+$"}},
        ),
        "/api/results": _get("A page of results", listing, query=_filters((*results.FILTERS, "import_id", "sort"))),
        "/api/outbox": _get(
            "Lanes, breakers, what is set aside, and a page of rows",
            {**listing, "lanes": _LIST, "breakers": _LIST, "parked": _LIST, "held": _LIST},
            query=_filters(outbox.FILTERS),
        ),
        "/api/outbox/{row_id}": _get(
            "One row with its errors",
            {"row": _OBJECT, "errors": _LIST},
            path={"row_id": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}},
        ),
        "/api/counties": _get("Counties", {"rows": _LIST, "n": _COUNT}, query={"text": _TEXT, "sort": _TEXT}),
        "/api/county": _get(
            "One county",
            {"row": _OBJECT, "fields": _LIST, "failures": _LIST, "forecast": _OBJECT},
            query=dict.fromkeys(("platform", "state", "county"), _TEXT),
        ),
        "/api/hosts": _get(
            "Hosts with work, or those whose names have `text` in them; each delay with whose word it is",
            {"rows": _LIST, "n": _COUNT},
            query={"text": _TEXT},
        ),
        "/api/imports": _get("Imports", {"rows": _LIST}),
        "/api/imports/{import_id}": _get(
            "One import: how far its tasks are, and why some failed",
            {"row": _OBJECT, "tasks": _OBJECT, "failures": _LIST, "forecast": _OBJECT},
            path={"import_id": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}},
        ),
        "/api/audit": _get("Who did what by hand", {"rows": _LIST}),
        "/api/search": _get(
            "Tasks whose ids begin with `q` or whose page it is, and results whose owner or address begins with it;"
            " without `brief` also results that say it elsewhere",
            {"q": _TEXT, "tasks": _LIST, "results": _LIST},
            query={"q": _TEXT, "brief": _TEXT},
        ),
        "/api/refusals": _get(
            "The last pages on which a site refused us",
            {"host": _TEXT, "reason": _TEXT, "pages": _LIST},
            query={"host": _TEXT, "reason": _TEXT},
        ),
        "/api/openapi.json": _get("This description", {"openapi": _TEXT, "paths": _OBJECT}),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "lienworker monitor", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _filters(names: tuple[str, ...]) -> dict[str, Any]:
    choices = {"status": tasks.CHOICES["status"], "queue": tasks.CHOICES["queue"], "source": tasks.CHOICES["source"]}
    if names == outbox.FILTERS:
        choices = {"state": OUTBOX_STATES, "topic": outbox.TOPICS}
    described = {name: {**_TEXT, "examples": list(choices[name])} if name in choices else _TEXT for name in names}
    return {**described, "below": _BELOW}


def _get(
    summary: str,
    facts: Mapping[str, Any],
    *,
    query: Mapping[str, Any] | None = None,
    path: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the description of one address; every filter is optional, and accepts any text."""
    given = [{"name": name, "in": "query", "schema": schema} for name, schema in (query or {}).items()]
    given += [{"name": name, "in": "path", "required": True, "schema": schema} for name, schema in (path or {}).items()]
    good = {"type": "object", "required": sorted(facts), "properties": dict(facts)}
    bad = {"type": "object", "required": ["error"], "properties": {"error": _TEXT}}
    replies = {"200": _reply("Found", good), **{code: _reply(words, bad) for code, words in _TROUBLE.items()}}
    return {"get": {"summary": summary, "parameters": given, "responses": replies}}


def _reply(words: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def add_routes(app: web.Application) -> None:
    async def describe(_request: web.Request) -> web.StreamResponse:
        return json_reply(document())

    app.router.add_get("/api/openapi.json", describe)
