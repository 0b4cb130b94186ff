"""The outbox: what is set aside, by error, and its rows."""

from __future__ import annotations

from typing import Any

from lienworker.outbox.breaker import breakers
from lienworker.outbox.states import NEVER_SENDABLE
from lienworker.queries.formatting import label, value
from lienworker.queries.outbox import groups_aside, lanes, list_rows
from lienworker.queries.row import row_story
from lienworker.queries.story import shown_record
from lienworker.store.counts import OUTBOX_STATES
from lienworker.web.pages import NotThereError, Page, Place, Question, list_facts

FILTERS = ("state", "topic", "reason", "fingerprint")
TOPICS = ("upload_raw", "upload_result", "report_failure")
#: What nobody needs to see, and what only somebody who looks for a fault does.
_HIDDEN = {"errors", "lease_token"}
_INTERNALS = (
    "id", "task_id", "generation", "queue", "priority", "state", "reason", "fingerprint", "attempts", "created_at",
    "due_at", "lease_until", "finished_at", "host", "raw_file", "url",
)  # fmt: skip
#: What to do about rows that are not uploads: the drift guard holds them.
NO_UPLOAD = (
    "These are pages to fetch, held since their county changed: fix the parser and run `lienworker reparse`,"
    " or take the pages as they are with `lienworker platforms accept --all`."
)


def wanted_of(question: Question) -> dict[str, str]:
    return {name: value for name in FILTERS if (value := question.text(name))}


def outbox(_place: Place, question: Question) -> Page:
    wanted = wanted_of(question)
    groups = groups_aside()
    facts = {
        "lanes": lanes(),
        "breakers": breakers(),
        "parked": [group for group in groups if group["state"] == "parked"],
        "held": [group for group in groups if group["state"] == "held"],
        "filter": {name: wanted.get(name) for name in FILTERS},
        **list_facts(question, lambda below, limit: list_rows(wanted, below, limit)),
        "no_upload": NO_UPLOAD,
        "never_sendable": NEVER_SENDABLE,
        "choices": {"state": OUTBOX_STATES, "topic": TOPICS},
        "lane_columns": [(state, state, "n") for state in OUTBOX_STATES],
    }
    return Page("outbox.html", "Outbox", facts)


def outbox_row(_place: Place, question: Question) -> Page:
    """Return the page about one row: what it carries, and a link to its task."""
    story = row_story(int(question.params["row_id"]))
    if story is None:
        raise NotThereError(f"There is no row {question.params['row_id']}.")
    facts = {
        "row": {name: value for name, value in story.items() if name not in _HIDDEN},
        "shown_state": "done"
        if story["topic"] in {"fetch", "scrape"} and story["state"] == "delivered"
        else story["state"],
        "sends": _sends(story["would_send"]),
        "errors": story["errors"],
        "internals": [(label(name), value(story[name], name)) for name in _INTERNALS],
        "never_sendable": NEVER_SENDABLE,
    }
    return Page("row.html", f"Row {story['id']}", facts)


def _sends(would_send: Any) -> list[tuple[str, str]]:
    """Return what would be sent, value by value; a record's own values come after what it is about."""
    if not isinstance(would_send, dict):
        return [("", value(would_send))] if would_send else []
    plain = shown_record({name: found for name, found in would_send.items() if name not in {"data", "metadata"}})
    inner = shown_record(would_send.get("data") or would_send.get("metadata") or {})
    listed = [(label(name), f"{len(table['rows'])} listed") for name, table in inner["tables"]]
    return list(dict.fromkeys([*plain["plain"], *inner["plain"], *listed]))
