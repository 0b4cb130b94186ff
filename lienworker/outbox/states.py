"""The vocabulary of the outbox: what a row is for (`Topic`) and where it stands (`State`).

The database stores the values of these enums as text and does not check them. Which function moves a row from one state
to another is in `lienworker.outbox.transitions`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Topic(StrEnum):
    """What a row asks a worker to do. One task has at most one row of a topic in each generation."""

    #: Get the task's page from its site. Added when a task is registered, retried or refreshed.
    FETCH = "fetch"
    #: Parse a stored page into a result. Added by the fetch step, in the transaction that stores the page.
    SCRAPE = "scrape"
    #: Upload a raw page to the hub. Added with its result; sent first.
    UPLOAD_RAW = "upload_raw"
    #: Upload a result to the hub, once its raw page was acknowledged.
    UPLOAD_RESULT = "upload_result"
    #: Tell the hub how a task ended that has no result: failed, or overtaken by a newer one.
    REPORT_FAILURE = "report_failure"


class State(StrEnum):
    """Where a row stands. The first three are open, the last four are final unless a person decides otherwise."""

    #: To be done at `due_at`. Every row begins here or in HELD; a worker that gives a row back puts it here.
    WAITING = "waiting"
    #: Held by one worker process, which renews its lease while it lives. Only a claim moves a row here.
    LEASED = "leased"
    #: Not to be done until a person releases it; the reason is `standalone`, `operator`, `drift` or `restored`.
    HELD = "held"
    #: Over, its outcome stored: a page, a result, an acknowledgement, or a failure that was counted. The worker that
    #: holds the lease moves it here, in the transaction that stores the outcome.
    DELIVERED = "delivered"
    #: Over without being sent: a newer result of the same parcel replaced it, or the task was tried again.
    SUPERSEDED = "superseded"
    #: Set aside with its reason: the hub refused this row itself, or it failed too often while others went through.
    #: A person may replay or discard it.
    PARKED = "parked"
    #: Given up by a person (or for a page whose address was lost); never sent.
    DISCARDED = "discarded"


#: Topics that make a result here, and topics that send something to the hub, in the order in which they are sent.
STEPS = (Topic.FETCH, Topic.SCRAPE)
UPLOADS = (Topic.UPLOAD_RAW, Topic.UPLOAD_RESULT, Topic.REPORT_FAILURE)
#: A row in one of these still needs work or a decision.
OPEN = (State.WAITING, State.LEASED, State.HELD)
#: Nothing is owed for a row in one of these. A parked row is neither open nor settled: it waits for a person.
SETTLED = (State.DELIVERED, State.SUPERSEDED, State.DISCARDED)

#: Reasons of parked rows that the hub can never take as they are: no replay helps. A new result of the task does
#: (`reparse`, `tasks retry`), and takes their place.
NEVER_SENDABLE = (
    "raw_discarded", "incomplete_key", "key_too_long", "key_not_text", "key_not_storable", "task_id_missing",
    "scraped_at_unreadable", "data_not_object", "not_an_object", "too_deep", "unfit", "cannot_be_closed_by_url",
)  # fmt: skip


def sql_list(words: Iterable[str]) -> str:
    """Return the words as a list for SQL's IN. They are constants of this module, never input."""
    return "(" + ", ".join(f"'{word}'" for word in words) + ")"
