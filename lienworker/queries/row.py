"""Everything about one outbox row: whose it is, what it would send, and each error."""

from __future__ import annotations

import json
from typing import Any

from lienworker.db.database import dict_rows
from lienworker.db.models import Attempt, Result, dicts
from lienworker.hubs.gateway.sanitize import Unfit, fit_result, with_raw
from lienworker.hubs.gateway.transport import raw_form, raw_listing
from lienworker.outbox.uploads import raw_pages, sent_pages
from lienworker.queries.failures import due_in_words
from lienworker.store.pending import item

_TIMES = ("due_at", "lease_until", "created_at", "finished_at")
_STORY = """
SELECT o.*, t.parcel_id, t.county, t.state AS parcel_state, t.platform, t.url, p.path AS raw_file
FROM outbox o JOIN tasks t ON t.task_id = o.task_id
LEFT JOIN pages p ON p.task_id = o.task_id AND p.generation = o.generation AND p.position = 0 WHERE o.id = ?
"""


def row_story(row_id: int) -> dict[str, Any] | None:
    """Return the row with its parcel, times as text, `would_send` and `errors`."""
    row = next(dict_rows(_STORY, (row_id,)), None)
    if row is None:
        return None
    row["payload"] = json.loads(row["payload"]) if row["payload"] else None
    tries = Attempt.select(Attempt.at, Attempt.reason, Attempt.error)
    tries = tries.where(Attempt.task_id == row["task_id"], Attempt.outbox_id == row_id)
    errors = list(dicts(tries.order_by(Attempt.id)))
    story = {**row, "would_send": _to_send(row)}
    story |= {name: due_in_words(row[name]) for name in _TIMES if row[name] is not None}
    return {**story, "errors": errors}


def _to_send(row: dict[str, Any]) -> Any:
    if row["topic"] == "upload_raw":
        return _raw(row)
    return _result(row) if row["topic"] == "upload_result" else row["payload"]


def _raw(row: dict[str, Any]) -> Any:
    page = raw_pages([row["id"]]).get(row["id"])
    if page is None or not page["path"]:
        return None  # the result was replaced, or the page is gone
    name, metadata = raw_form(row["task_id"], page)
    return {"name": name, "metadata": metadata}


def _result(row: dict[str, Any]) -> Any:
    of_row = (Result.task_id == row["task_id"], Result.generation == row["generation"])
    result = next(dicts(Result.select().where(*of_row)), None)
    if result is None:
        return None  # a newer one has replaced it
    pages = sent_pages([row["id"]]).get(row["id"], [])
    fitted = fit_result({**item(result), "data": json.loads(with_raw(result["data"], raw_listing(pages)))})
    return f"nothing, for {fitted.detail}" if isinstance(fitted, Unfit) else fitted.item
