"""One task as a person reads it: what became of it, and its record as values and tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lienworker.outbox.uploads import ENDPOINTS
from lienworker.queries.formatting import label, value

Row = Mapping[str, Any]

#: Worst first: one of these states of an upload says what became of the whole.
_WORST = ("parked", "discarded", "held", "leased", "waiting", "delivered", "superseded")
_DELIVERY = {
    "parked": "not delivered",
    "discarded": "discarded",
    "held": "held",
    "leased": "being sent",
    "waiting": "to be sent",
    "delivered": "delivered",
    "superseded": "replaced by a newer one",
}
#: Uploads in these states are a person's to look at.
_ASIDE = ("parked", "held")
#: Of a list with objects of many kinds, the columns that are shown.
_MOST_COLUMNS = 12


def delivery_of(steps: Sequence[Row], generation: int) -> dict[str, Any] | None:
    """Return where the result of this round is: the state of its worst upload; None where nothing is to be sent."""
    mine = (step for step in steps if step["topic"] in ENDPOINTS and step["generation"] == generation)
    uploads = [step for step in mine if step["reason"] != "standalone"]
    if not uploads:
        return None
    worst = min(uploads, key=lambda step: _WORST.index(step["state"]))
    state = worst["state"]
    is_aside = state in _ASIDE
    return {
        "state": state,
        "words": _DELIVERY[state],
        "reason": worst["reason"] if is_aside else None,
        "row": worst["id"] if is_aside else None,
    }


def shown_state(step: Row, task: Row, pages: Sequence[Row]) -> str:
    """Return the state of a step in words that are so: a fetch that brought no page was not "delivered"."""
    if step["topic"] in ENDPOINTS or step["state"] != "delivered":
        return {"leased": "in hand"}.get(step["state"], str(step["state"]))
    is_last = step["generation"] == task["generation"]
    has_page = any(page["generation"] == step["generation"] for page in pages)
    has_failed = task["status"] in {"failed", "expired"} and is_last
    if step["topic"] == "fetch":
        return "done" if has_page or not has_failed else "failed"
    return "failed" if has_failed else "done"


def shown_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record for people: `plain` values, `tables` of what is listed, and the `rest` that the page says."""
    plain: list[tuple[str, str]] = []
    tables: list[tuple[str, dict[str, Any]]] = []
    for name, found in record.items():
        if name == "fields":
            continue
        if isinstance(found, list) and found and all(isinstance(one, dict) for one in found):
            tables.append((name, _table(found)))
        elif isinstance(found, dict):
            plain += [(label(f"{name}.{key}"), value(one, key)) for key, one in found.items()]
        else:
            plain.append((label(name), value(found, name)))
    fields = record.get("fields") or {}
    pairs = fields.items() if isinstance(fields, dict) else enumerate(fields, 1)
    return {"plain": plain, "tables": tables, "rest": [(str(name), value(found)) for name, found in pairs]}


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for row in rows for name in row))[:_MOST_COLUMNS]
    columns = [(name, label(name), "n" if _is_amount(name, rows) else "") for name in names]
    return {"columns": columns, "rows": [{name: row.get(name) for name in names} for row in rows]}


def _is_amount(name: str, rows: list[dict[str, Any]]) -> bool:
    """Return whether a column has numbers to compare; a year is a name."""
    found = [row[name] for row in rows if row.get(name) is not None]
    return "year" not in name and bool(found) and all(isinstance(one, int | float) for one in found)
