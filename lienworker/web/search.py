"""The search box, on every page: parcels, tasks, addresses and owners."""

from __future__ import annotations

from lienworker.queries.search import results_that_say, tasks_that_begin
from lienworker.web.pages import Page, Place, Question

#: Suggestions while somebody types.
_SUGGESTIONS = 8


def search(_place: Place, question: Question) -> Page:
    """Return what fits: tasks by their ids at once, then results by what they say."""
    text = question.text("q") or ""
    if question.text("brief"):
        return Page("search.html", "Search", {"q": text, "tasks": tasks_that_begin(text, _SUGGESTIONS)})
    tasks, said = tasks_that_begin(text), results_that_say(text)
    known = {row["task_id"] for row in tasks}
    facts = {
        "q": text,
        "tasks": tasks,
        "results": [row for row in said.rows if row["task_id"] not in known],
        "more": said.more,
    }
    return Page("search.html", f"Search {text}", facts)
