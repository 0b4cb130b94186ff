"""Socrata resources: tables of open-data portals, read by offsets in the order of their row ids."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from lienworker.errors import InputError, PageError
from lienworker.platforms.harvest.arcgis import Described
from lienworker.platforms.harvest.geometry import described
from lienworker.platforms.harvest.plan import (
    Cursor,
    Plan,
    Request,
    SourcePage,
    count_note,
    edit_note,
    following,
    loaded,
)

_RESOURCE = re.compile(r"/([a-z0-9]{4}-[a-z0-9]{4})(?:\.json|/|$)", re.I)
_SHAPES = frozenset({"Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"})
#: Columns of a portal's own, beside those of the table.
_OWN = ":@computed"


def is_resource(url: str) -> bool:
    """Return whether an address names a resource by its id, such as abcd-1234."""
    return bool(_RESOURCE.search(urlsplit(url).path))


def resource_of(url: str) -> str:
    """Return the address of a resource without a query."""
    parts = urlsplit(url)
    found = _RESOURCE.search(parts.path)
    if found is None:
        raise InputError(f"{url} is no resource of a Socrata portal: its address has an id such as abcd-1234.")
    return f"{parts.scheme}://{parts.netloc}/resource/{found[1].lower()}.json"


def _about(url: str) -> str:
    """Return where a portal describes a resource."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/api/views/{parts.path.rpartition('/')[2]}"


def _headers(secret: str | None) -> dict[str, str]:
    return {"X-App-Token": secret} if secret else {}


def _query(url: str, **words: str) -> str:
    return f"{url}?{urlencode({f'${name}': value for name, value in words.items() if value}, quote_via=quote)}"


def describe(wish: Plan, secret: str | None) -> Described:
    """Ask a portal for what a resource is, and return the plan to read it by."""
    about = yield Request(_about(wish.url), _headers(secret))
    _refuse(about)
    columns = [column for column in about.get("columns") or () if isinstance(column, dict) and column.get("fieldName")]
    names = tuple(str(column["fieldName"]) for column in columns if not column["fieldName"].startswith(_OWN))
    if not names:
        raise PageError("not_a_source", f"{wish.url} has no columns")
    counted = yield Request(_query(wish.url, select="count(*)", where=wish.where), _headers(secret))
    _refuse(counted)
    return Plan(
        kind="socrata",
        url=wish.url,
        platform="socrata",
        columns=names,
        chosen=wish.chosen,
        where=wish.where,
        limit=wish.limit,
        size=min(wish.size, wish.limit or wish.size),
        id_column=":id",
        edited=_edited(about),
        announced=_count(counted),
    )


def _edited(about: Any) -> str | None:
    stamp = about.get("rowsUpdatedAt") if isinstance(about, dict) else None
    return str(stamp) if stamp else None


def _count(counted: Any) -> int | None:
    """Return the one number in `[{"count": "1200"}]`."""
    first = counted[0] if isinstance(counted, list) and counted else None
    number = next(iter(first.values()), None) if isinstance(first, dict) else None
    return int(number) if isinstance(number, str | int) and str(number).isdecimal() else None


def _refuse(data: Any) -> None:
    if isinstance(data, dict) and data.get("error"):
        words = str(data.get("message") or data.get("code") or "no reason given")[:200]
        raise PageError("source_error", f"the portal answered with an error: {words}", retryable=True)


class SocrataSource:
    """The pages of a resource."""

    def request(self, plan: Plan, cursor: Cursor, secret: str | None) -> Request:
        if cursor.is_check:
            return Request(_about(plan.url), _headers(secret))
        words = {"where": plan.where, "order": ":id", "limit": str(cursor.size), "offset": str(cursor.at)}
        return Request(_query(plan.url, **words), _headers(secret))

    def read(self, plan: Plan, cursor: Cursor, body: bytes) -> SourcePage:
        data = loaded(body)
        _refuse(data)
        if cursor.is_check:
            return SourcePage(notes=edit_note(plan, _edited(data)))
        if not isinstance(data, list):
            raise PageError("not_a_source", "the answer is no list of rows", retryable=True)
        after = cursor.read + len(data)
        has_more = len(data) >= cursor.size if plan.announced is None else plan.announced > after
        next_cursor = following(plan, cursor, len(data), None, has_more=has_more)
        most = None if plan.limit is None else plan.limit - cursor.read
        rows = [row for row in data if isinstance(row, dict)][:most]
        return SourcePage(rows, next_cursor, count_note(plan, cursor, len(data), next_cursor))

    def values(self, plan: Plan, row: Any) -> dict[str, Any]:
        return {name: value for name, value in row.items() if not isinstance(value, dict | list)}

    def geometry(self, plan: Plan, row: Any) -> dict[str, Any]:
        for value in row.values():
            if isinstance(value, dict) and value.get("type") in _SHAPES:
                return described({"type": value["type"], "coordinates": value.get("coordinates")})
        return {}

    def address(self, plan: Plan, row: Any, parcel_id: str) -> str:
        return f"{plan.url}#{quote(parcel_id)}"
