"""The search box, on every page: parcels, tasks, addresses and owners."""

from __future__ import annotations

from lienworker.queries.search import results_that_begin, results_that_say, tasks_that_begin
from lienworker.web.pages import Page, Place, Question

#: Suggestions while somebody types.
_SUGGESTIONS = 8
_SHOWN = ("owner_name", "property_address")


def search(_place: Place, question: Question) -> Page:
    """Return what fits: tasks by their ids and results by owner and address at once, then whatever results say."""
    text = question.text("q") or ""
    if question.text("brief"):
        tasks, begun = tasks_that_begin(text, _SUGGESTIONS), results_that_begin(text, _SUGGESTIONS)
        return Page("search.html", "Search", {"q": text, "tasks": tasks, "results": begun})
    tasks, begun, said = tasks_that_begin(text), results_that_begin(text), results_that_say(text)
    known = {row["task_id"] for row in (*tasks, *begun)}
    others = [row for row in said.rows if row["task_id"] not in known]
    facts = {
        "q": text,
        "tasks": tasks,
        "results": begun + [{**row, **{name: row["data"].get(name) for name in _SHOWN}} for row in others],
        "more": said.more,
    }
    return Page("search.html", f"Search {text}", facts)
