"""Hosts: how often each site is asked, on whose word, and what keeps it back; and what an operator says of them."""

from __future__ import annotations

from collections.abc import Callable

from lienworker.errors import InputError
from lienworker.operator import hosts as operator
from lienworker.queries import hosts as store
from lienworker.web.pages import CannotError, Meant, NotThereError, Page, Place, Question

#: Hosts that are looked through, and that are shown.
_MOST, _SHOWN = 5_000, 100
#: What is done to a county, and what a person is told before.
COUNTY_VERBS: dict[str, tuple[Callable[[operator.County], int], str]] = {
    "pause": (operator.pause_county, "What waits to be fetched there is held until it is resumed."),
    "resume": (operator.resume_county, "What was held is fetched as soon as possible."),
}
#: The same for a host. `set` without a figure takes back what was said.
HOST_VERBS: dict[str, tuple[Callable[[str], None], str]] = {
    "pause": (operator.pause_host, "It is asked for nothing more until it is resumed."),
    "resume": (operator.resume_host, "It is asked again at once, and what it failed before is forgiven."),
    "forget": (operator.forget_host, "Its failures, its robots.txt's delay and what operators said are forgotten."),
    "set": (operator.unset_host, "What an operator said of its pace is taken back."),
}


def hosts(place: Place, question: Question) -> Page:
    """Return the page of hosts: those with work, or those whose name has the given text in it."""
    text = (question.text("text") or "").lower()
    rows = [row for row in store.hosts(place.settings, _MOST, busy=not text) if text in row["host"]]
    for row in rows[:_SHOWN]:
        row |= {"pace": store.pace_in_words(row), "state": store.state_in_words(row)}
    return Page("hosts.html", "Hosts", {"rows": rows[:_SHOWN], "n": len(rows), "text": text})


def on_county(verb: str, question: Question) -> Meant:
    """Return the action that pauses or resumes a county."""
    act, warning = COUNTY_VERBS[verb]
    try:
        county = operator.county_named(f"{question.text('state') or ''}/{question.text('county') or ''}")
    except InputError as problem:
        raise CannotError(str(problem)) from None

    def do() -> int:
        act(county)
        return 1

    return Meant(1, "county", str(county), warning, do)


def on_host(place: Place, verb: str, question: Question) -> Meant:
    """Return the action on one host; `set` says its delay, the number of its open requests, or both."""
    act, warning = HOST_VERBS[verb]
    site = question.text("host") or ""
    if store.host_named(site, place.settings) is None:
        raise NotThereError(f"There is no host {site}.")
    delay, most_open = _figures(question) if verb == "set" else (None, None)
    is_said = delay is not None or most_open is not None

    def do() -> int:
        if is_said:
            operator.set_host(site, delay, most_open)
        else:
            act(site)
        return 1

    words = [f"a request every {delay:g} s"] if delay is not None else []
    words += [f"{most_open} open at most"] if most_open is not None else []
    said = "It counts before its platform's word, never before its robots.txt." if is_said else warning
    return Meant(1, "host", ", ".join([site, *words]), said, do)


def _figures(question: Question) -> tuple[float | None, int | None]:
    """Return the delay and the number of open requests that the form says."""
    delay, most_open = question.text("delay"), question.text("concurrency")
    try:
        figures = float(delay) if delay else None, int(most_open) if most_open else None
        operator.check_pace(*figures)
    except (ValueError, InputError) as problem:
        words = str(problem) if isinstance(problem, InputError) else "A delay and open requests are numbers."
        raise CannotError(words) from None
    return figures
