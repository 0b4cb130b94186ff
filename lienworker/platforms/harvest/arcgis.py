"""ArcGIS layers: FeatureServer and MapServer, read by offsets, or by ranges of object ids where there are none."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from lienworker.errors import InputError, PageError
from lienworker.platforms.harvest.geometry import from_esri, is_readable, wkid_of
from lienworker.platforms.harvest.plan import (
    MOST_IN_A_PAGE,
    Cursor,
    Plan,
    Request,
    SourcePage,
    TooMuchError,
    count_note,
    edit_note,
    following,
    loaded,
    window,
)

_LAYER = re.compile(r"/(?:FeatureServer|MapServer)/\d+$", re.I)
_SERVICE = re.compile(r"/(?:FeatureServer|MapServer)$", re.I)
#: Codes by which a service says that it wants a token, or another one.
_NO_ENTRY = frozenset({401, 403, 498, 499})
_IDS_TOO_MANY = 5_000_000

Described = Generator[Request, Any, Plan]


def is_layer(url: str) -> bool:
    """Return whether an address is one of a layer or of a service of layers."""
    path = urlsplit(url).path.rstrip("/")
    return bool(_LAYER.search(_without_query(path)) or _SERVICE.search(path))


def _without_query(path: str) -> str:
    return re.sub(r"/query$", "", path.rstrip("/"), flags=re.I)


def layer_of(url: str) -> tuple[str, str | None]:
    """Return the address of a layer without a query, and the token that was in it."""
    parts = urlsplit(url)
    path = _without_query(parts.path)
    if _SERVICE.search(path):
        raise InputError(f"{url} is a service: name one of its layers, such as {url.rstrip('/')}/0.")
    if not _LAYER.search(path):
        raise InputError(f"{url} is no layer of an ArcGIS server: its address ends in FeatureServer/0 or MapServer/0.")
    token = dict(parse_qsl(parts.query)).get("token")
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), token


def _headers(secret: str | None) -> dict[str, str]:
    """A token in a header is in no address, so in no log, no page and no row."""
    return {"X-Esri-Authorization": f"Bearer {secret}"} if secret else {}


def describe(wish: Plan, secret: str | None) -> Described:
    """Ask a layer for what it is, and return the plan to read it by; each request is yielded, its JSON sent in."""
    about = yield Request(f"{wish.url}?f=json", _headers(secret))
    _refuse(about)
    columns = [column for column in about.get("fields") or () if isinstance(column, dict) and column.get("name")]
    if not columns:
        raise PageError("not_a_source", f"{wish.url} has no columns: it may be a group of layers")
    id_column = _id_column(about, columns)
    where = wish.where or "1=1"
    counted = yield Request(_query(wish.url, where=where, returnCountOnly="true"), _headers(secret))
    _refuse(counted)
    announced = counted.get("count")
    most = about.get("maxRecordCount")
    size = min(wish.size, most if isinstance(most, int) and most > 0 else 1000, wish.limit or MOST_IN_A_PAGE)
    ranges: tuple[tuple[int, int], ...] = ()
    if not (about.get("advancedQueryCapabilities") or {}).get("supportsPagination"):
        found = yield Request(_query(wish.url, where=where, returnIdsOnly="true"), _headers(secret))
        _refuse(found)
        ranges = _ranges(found.get("objectIds"), size)
        id_column = found.get("objectIdFieldName") or id_column
    return Plan(
        kind="arcgis",
        url=wish.url,
        platform="arcgis",
        columns=tuple(str(column["name"]) for column in columns),
        dates=tuple(str(column["name"]) for column in columns if column.get("type") == "esriFieldTypeDate"),
        chosen=wish.chosen,
        where=where,
        limit=wish.limit,
        size=size,
        id_column=id_column,
        ranges=ranges,
        edited=_edited(about),
        announced=announced if isinstance(announced, int) else None,
    )


def _id_column(about: dict[str, Any], columns: Sequence[dict[str, Any]]) -> str:
    named = about.get("objectIdField")
    found = next((column["name"] for column in columns if column.get("type") == "esriFieldTypeOID"), None)
    return str(named or found or "OBJECTID")


def _edited(about: dict[str, Any]) -> str | None:
    info = about.get("editingInfo")
    stamp = (info.get("dataLastEditDate") or info.get("lastEditDate")) if isinstance(info, dict) else None
    return str(stamp) if stamp else None


def _ranges(ids: Any, size: int) -> tuple[tuple[int, int], ...]:
    """Cut the ids of a layer into pages: from and to."""
    if not isinstance(ids, list) or not all(number.__class__ is int for number in ids):
        raise PageError("not_a_source", "the layer can neither skip rows nor name their ids")
    if len(ids) > _IDS_TOO_MANY:
        raise PageError("not_a_source", f"the layer has {len(ids):,} rows and cannot skip: name fewer with --where")
    ids.sort()
    return tuple((ids[at], ids[min(at + size, len(ids)) - 1]) for at in range(0, len(ids), size))


def _query(url: str, **words: str) -> str:
    return f"{url}/query?{urlencode({**words, 'f': 'json'}, quote_via=quote)}"


def _refuse(data: Any) -> None:
    """Raise PageError for an answer that is an error; Esri sends it with status 200."""
    if not isinstance(data, dict):
        raise PageError("not_a_source", "the answer is no object")
    error = data.get("error")
    if not isinstance(error, dict):
        return
    words = f"{error.get('code')} {error.get('message') or ''}".strip()[:200]
    if error.get("code") in _NO_ENTRY:
        raise PageError("login_required", f"the service answered: {words}; it wants another token (--token-file)")
    raise PageError("source_error", f"the service answered with an error: {words}", retryable=True)


class ArcGisSource:
    """The pages of a layer."""

    def request(self, plan: Plan, cursor: Cursor, secret: str | None) -> Request:
        if cursor.is_check:
            return Request(f"{plan.url}?f=json", _headers(secret))
        words = {"outFields": "*", "returnGeometry": "true", "outSR": "4326"}
        if plan.ranges:
            low, high = window(plan, cursor)
            where = f"({plan.where}) AND {plan.id_column} >= {low} AND {plan.id_column} <= {high}"
            return Request(_query(plan.url, where=where, **words), _headers(secret))
        words |= {"orderByFields": plan.id_column, "resultOffset": str(cursor.at)}
        words["resultRecordCount"] = str(cursor.size)
        return Request(_query(plan.url, where=plan.where, **words), _headers(secret))

    def read(self, plan: Plan, cursor: Cursor, body: bytes) -> SourcePage:
        data = loaded(body)
        _refuse(data)
        if cursor.is_check:
            return SourcePage(notes=edit_note(plan, _edited(data)))
        features = data.get("features")
        if not isinstance(features, list):
            raise PageError("not_a_source", "the answer has no features", retryable=True)
        is_cut = bool(data.get("exceededTransferLimit"))
        if plan.ranges and is_cut:
            raise TooMuchError("the service could not give all rows of a range")
        rows = [row for row in features if isinstance(row, dict) and isinstance(row.get("attributes"), dict)]
        last_id, notes = _order(plan, cursor, rows)
        after = cursor.read + len(features)
        has_more = is_cut or (len(features) >= cursor.size if plan.announced is None else plan.announced > after)
        next_cursor = following(plan, cursor, len(features), last_id, has_more=has_more)
        notes += count_note(plan, cursor, len(features), next_cursor)
        wkid = wkid_of(data.get("spatialReference"))
        if not is_readable(wkid):
            notes += (f"Its shapes are in the spatial reference {wkid}, though degrees were asked for: left out.",)
        most = None if plan.limit is None else plan.limit - cursor.read
        return SourcePage([(row, wkid) for row in rows[:most]], next_cursor, notes)

    def values(self, plan: Plan, row: Any) -> dict[str, Any]:
        attributes: dict[str, Any] = row[0]["attributes"]
        return attributes

    def geometry(self, plan: Plan, row: Any) -> dict[str, Any]:
        feature, wkid = row
        return from_esri(feature.get("geometry"), wkid)

    def address(self, plan: Plan, row: Any, parcel_id: str) -> str:
        return f"{plan.url}/{row[0]['attributes'].get(plan.id_column, '')}"


def _order(plan: Plan, cursor: Cursor, rows: Sequence[dict[str, Any]]) -> tuple[int | None, tuple[str, ...]]:
    """Return the last id of a page, and what its ids say: one that came before shows that rows have moved."""
    ids = [number for row in rows if (number := row["attributes"].get(plan.id_column)).__class__ is int]
    if not ids:
        return None, ()
    came_again = len(set(ids)) < len(ids) or (cursor.last_id is not None and min(ids) <= cursor.last_id)
    if not came_again:
        return max(ids), ()
    return max(ids), ("Rows came twice: it was changed while it was read, or has an object id twice.",)
