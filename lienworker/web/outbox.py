"""The outbox: what is set aside, by error, and its rows."""

from __future__ import annotations

from typing import Any

from lienworker.outbox.breaker import breakers
from lienworker.outbox.states import NEVER_SENDABLE
from lienworker.queries.lists import TOP
from lienworker.queries.outbox import groups_aside, lanes, list_rows
from lienworker.queries.row import row_story
from lienworker.store.counts import OUTBOX_STATES
from lienworker.web.pages import NotThereError, Page, Place, Question

FILTERS = ("state", "topic", "reason", "fingerprint")
TOPICS = ("upload_raw", "upload_result", "report_failure")
#: What to do about rows that are not uploads: the drift guard holds them.
NO_UPLOAD = (
    "These are pages to fetch, held since their county changed: fix the parser and run `lienworker reparse`,"
    " or take the pages as they are with `lienworker platforms accept --all`."
)


def wanted_of(question: Question) -> dict[str, str]:
    return {name: value for name in FILTERS if (value := question.text(name))}


def outbox(_place: Place, question: Question) -> Page:
    wanted = wanted_of(question)
    listing = list_rows(wanted, question.number("below", TOP))
    groups = groups_aside()
    facts = {
        "lanes": lanes(),
        "breakers": breakers(),
        "parked": [group for group in groups if group["state"] == "parked"],
        "held": [group for group in groups if group["state"] == "held"],
        "filter": {name: wanted.get(name) for name in FILTERS},
        "rows": listing.rows,
        "more": listing.more,
        "looked_at_all": listing.looked_at_all,
        "no_upload": NO_UPLOAD,
        "never_sendable": NEVER_SENDABLE,
        "choices": {"state": OUTBOX_STATES, "topic": TOPICS},
    }
    return Page("outbox.html", "Outbox", facts)


def outbox_row(_place: Place, question: Question) -> Page:
    """Return the page about one row: what it carries, and a link to its task."""
    story = row_story(int(question.params["row_id"]))
    if story is None:
        raise NotThereError(f"There is no row {question.params['row_id']}.")
    facts = {"row": _shown(story), "errors": story["errors"], "never_sendable": NEVER_SENDABLE}
    return Page("row.html", f"Row {story['id']}", facts)


def _shown(story: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in story.items() if name not in {"errors", "lease_token"}}
