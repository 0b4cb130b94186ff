"""Tasks: the list with its filters, and one task's whole history."""

from __future__ import annotations

from typing import Any

from lienworker.outbox.rows import steps_of
from lienworker.queries.filters import TaskFilter
from lienworker.queries.formatting import label
from lienworker.queries.lists import list_tasks, page_story
from lienworker.queries.story import delivery_of, shown_record, shown_state
from lienworker.queries.suggestions import known_values
from lienworker.store import tasks as store
from lienworker.store.counts import task_counts
from lienworker.store.results import result
from lienworker.web.pages import NotThereError, Page, Place, Question, list_facts

FILTERS = ("status", "queue", "platform", "state", "county", "source", "reason", "text", "since")
CHOICES = {
    "status": store.STATUSES,
    "queue": store.QUEUES,
    "source": store.SOURCES,
}


def filter_of(question: Question) -> TaskFilter:
    texts: dict[str, Any] = {name: question.text(name) for name in FILTERS}
    return TaskFilter(**texts, import_id=question.number("import_id", 0) or None)


def task_list(_place: Place, question: Question) -> Page:
    wanted = filter_of(question)
    oldest_first = question.text("sort") == "oldest"
    facts = {
        "filter": {name: getattr(wanted, name) for name in (*FILTERS, "import_id")}
        | {"sort": "oldest" if oldest_first else None},
        "is_narrowed": not wanted.is_empty,
        # What is found directly by a text stands first, whatever its place.
        **list_facts(
            question,
            lambda below, limit: list_tasks(wanted, below, limit, oldest_first=oldest_first),
            stays=not wanted.text and not oldest_first,
        ),
        "counts": task_counts(),
        "choices": CHOICES,
        "suggest": known_values(),
    }
    return Page("tasks.html", "Tasks", facts)


def task_story(_place: Place, question: Question) -> Page:
    """Return the page of a task: its result, every step with its times, every error, the pages."""
    task_id = question.params["task_id"]
    found = store.task(task_id)
    if found is None:
        raise NotThereError(f"There is no task {task_id}.")
    made, steps, pages = result(task_id), steps_of(task_id), page_story(task_id)
    facts = {
        "task": found,
        "steps": [{**step, "shown_state": shown_state(step, found, pages)} for step in steps],
        "attempts": store.attempts_of(task_id),
        "pages": pages,
        "result": made,
        "delivery": delivery_of(steps, found["generation"]),
        "shown": shown_record(made["data"] if made else {}),
        "internals": _internals(found, made, pages),
        "is_web": found["url"].lower().startswith(("http://", "https://")),
        "can_retry": found["status"] in {"failed", "expired"},
        "can_cancel": found["status"] in {"pending", "processing"},
    }
    return Page("task.html", f"Task {task_id}", facts)


def _internals(task: dict[str, Any], made: dict[str, Any] | None, pages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return what only somebody who looks for a fault wants to see."""
    names = ("task_id", "source", "queue", "priority", "generation", "attempts", "expires_at", "proxy")
    about = [(label(name), task[name]) for name in names]
    if made:
        parsed = f"{made['parser_version']}, {made['parse_duration_ms']} ms"
        about += [("Parser", parsed), ("File of the result", made["json_path"])]
    return about + [(f"File of page {page['generation']}", page["path"]) for page in pages]
