"""Tasks: the list with its filters, and one task's whole history."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lienworker.outbox.rows import steps_of
from lienworker.queries.export import flatten
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import TOP, list_tasks, page_story
from lienworker.store import tasks as store
from lienworker.store.counts import task_counts
from lienworker.store.results import result
from lienworker.web.pages import NotThereError, Page, Place, Question

FILTERS = ("status", "queue", "platform", "state", "county", "source", "reason", "text")
CHOICES = {
    "status": store.STATUSES,
    "queue": store.QUEUES,
    "source": store.SOURCES,
}


def filter_of(question: Question) -> TaskFilter:
    texts: dict[str, Any] = {name: question.text(name) for name in FILTERS}
    return TaskFilter(**texts)


def task_list(_place: Place, question: Question) -> Page:
    wanted = filter_of(question)
    listing = list_tasks(wanted, question.number("below", TOP))
    facts = {
        "filter": asdict(wanted),
        "rows": listing.rows,
        "more": listing.more,
        "looked_at_all": listing.looked_at_all,
        "counts": task_counts(),
        "choices": CHOICES,
        "is_first": "below" not in question.query,
    }
    return Page("tasks.html", "Tasks", facts)


def task_story(_place: Place, question: Question) -> Page:
    """Return the page of a task: every step with its times, every error, the result, the pages."""
    task_id = question.params["task_id"]
    found = store.task(task_id)
    if found is None:
        raise NotThereError(f"There is no task {task_id}.")
    made = result(task_id)
    facts = {
        "task": found,
        "steps": steps_of(task_id),
        "attempts": store.attempts_of(task_id),
        "pages": page_story(task_id),
        "result": made,
        "fields": _fields(made),
        "can_retry": found["status"] in {"failed", "expired"},
        "can_cancel": found["status"] in {"pending", "processing"},
    }
    return Page("task.html", f"Task {task_id}", facts)


def _fields(made: dict[str, Any] | None) -> list[tuple[str, Any]]:
    return sorted(flatten(made["data"]).items()) if made else []
