"""Actions: show how many rows are chosen, ask, do it, report how many it was.

Each action is the same function that the command line calls, and is in the audit. A confirmed action that would touch
more than was shown asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lienworker.operator import rows
from lienworker.operator.reparse import Reparse
from lienworker.operator.rows import STATES_OF, RowFilter, find_ids, ids_for, left_out_by
from lienworker.operator.tasks import cancel_tasks, retry_tasks
from lienworker.outbox.pauses import set_pause_by_hand
from lienworker.platforms import registry_with
from lienworker.queries.lists import ids_with_status, task_ids
from lienworker.queries.outbox import count_aside
from lienworker.queries.row import row_story
from lienworker.steps.drift import accept_places
from lienworker.store import audit as records
from lienworker.store.history import paused_places
from lienworker.store.runs import PageFilter, tasks_with_pages
from lienworker.text_safety import plural
from lienworker.web import hosts, tasks
from lienworker.web.outbox import NO_UPLOAD, TOPICS, wanted_of
from lienworker.web.pages import CannotError, Meant, NotThereError, Page, Place, Question

_FROM_HERE = "monitor: "


_ROW_VERBS: dict[str, tuple[Callable[[Sequence[int], str], int], str]] = {
    "replay": (rows.replay_with_raw_files, "They are sent as soon as possible, with the raw files that they wait for."),
    "hold": (rows.hold_rows, "They are not sent until they are released."),
    "release": (rows.release_rows, "They are sent as soon as possible."),
    "discard": (
        rows.discard_rows,
        "They will never be sent, and tasks of the Gateway are failed there. The results themselves stay.",
    ),
}
_RELEASE_ALONE = "This stack is standalone: they are held like everything else; `lienworker outbox replay` sends them."
_LEFT_OUT = {
    "replay": "The Gateway can never take them as they are: their page was discarded, or a part of their key is missing"
    " or too long. `lienworker tasks retry --all` fetches the page anew.",
    "release": "This stack is standalone and sends nothing on its own: `lienworker outbox replay` does it.",
}
#: Everything that can be done here, by what it is done to.
ACTIONS: dict[str, frozenset[str]] = {
    "outbox": frozenset(_ROW_VERBS),
    "tasks": frozenset({"retry", "cancel"}),
    "counties": frozenset({"accept", "reparse", *hosts.COUNTY_VERBS}),
    "hosts": frozenset(hosts.HOST_VERBS),
    "lanes": frozenset({"pause", "resume"}),
}
_LANES = ("intake", "fetch", "upload")
_ACCEPT = (
    "Its pages are taken as right: what was held is fetched and sent, and what is usual there is learned anew. After a"
    " fix of the parser, read the stored pages again instead."
)
#: Stored pages that are read for a trial: as many as the drift guard looks at.
_TRIAL = 20


def meant(place: Place, question: Question) -> Meant:
    kind, verb = question.params["kind"], question.params["verb"]
    if verb not in ACTIONS.get(kind, ()):
        raise NotThereError("There is no such action.")
    if kind == "outbox":
        return _rows(place, verb, question)
    if kind == "tasks":
        return _tasks(verb, question)
    if kind == "hosts":
        return hosts.on_host(place, verb, question)
    if kind == "counties" and verb in hosts.COUNTY_VERBS:
        return hosts.on_county(verb, question)
    return _county(place, verb, question) if kind == "counties" else _lanes(verb, question)


def _rows(place: Place, verb: str, question: Question) -> Meant:
    if verb == "replay" and place.settings.mode != "ondemand":
        raise CannotError("In standalone mode nothing is sent automatically: `lienworker outbox replay` does it.")
    act, warning = _ROW_VERBS[verb]
    if verb == "release" and place.settings.mode != "ondemand":
        warning = _RELEASE_ALONE
    states, wanted = STATES_OF[verb], _row_filter(question)
    if wanted.topic not in (None, *TOPICS):
        raise CannotError(NO_UPLOAD)
    if wanted.state not in (None, *states):
        raise CannotError(f"Rows that are {wanted.state} cannot be chosen to {verb}.")
    is_group = not wanted.ids and wanted.state in {"held", "parked"}
    n = count_aside(wanted_of(question), left_out_by(verb)) if is_group else len(ids_for(verb, wanted))
    if not n:
        _say_why_none(verb, wanted)
    words = wanted.in_words()
    return Meant(n, "row", words, warning, lambda: act(ids_for(verb, wanted), _FROM_HERE + words))


def _say_why_none(verb: str, wanted: RowFilter) -> None:
    """Refuse chosen rows that the action cannot be done to, instead of doing it to none of them."""
    if find_ids(wanted, STATES_OF[verb]):
        raise CannotError(_LEFT_OUT[verb])
    story = row_story(wanted.ids[0]) if wanted.ids else None
    if story is not None and story["topic"] not in TOPICS:
        raise CannotError(NO_UPLOAD)


def _row_filter(question: Question) -> RowFilter:
    row_id = question.number("id", 0)
    chosen = wanted_of(question)
    wanted = RowFilter(
        ids=(row_id,) if row_id else (),
        state=chosen.get("state"),
        topic=chosen.get("topic"),
        reason=chosen.get("reason"),
        fingerprint=chosen.get("fingerprint"),
    )
    if replace(wanted, state=None).is_empty:
        raise CannotError("Say which rows: a group of failures, or one row.")
    return wanted


def _tasks(verb: str, question: Question) -> Meant:
    statuses = ("failed", "expired") if verb == "retry" else ("pending", "processing")
    wanted = tasks.filter_of(question)
    if not question.ids and wanted.is_empty:
        raise CannotError("Say which tasks: choose some in the list, or use a filter.")
    ids = ids_with_status(question.ids, statuses) if question.ids else task_ids(wanted, statuses)
    words = _in_words(question.ids) if question.ids else wanted.in_words()
    act = retry_tasks if verb == "retry" else cancel_tasks
    warning = (
        "Their pages are fetched again."
        if verb == "retry"
        else "They end as failed, reason `cancelled`. What a worker holds is left alone."
    )
    return Meant(len(ids), "task", words, warning, lambda: act(ids, _FROM_HERE + words).changed)


def _in_words(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f"id {', '.join(ids[:3])}{more}"


def _county(place: Place, verb: str, question: Question) -> Meant:
    """Release what the drift guard holds of a county: its pages are right, or its parser was fixed."""
    platform, county = question.text("platform"), question.text("county")
    key = (platform, (county or "").lower())
    held = [one for one in paused_places() if (one["platform"], one["county"].lower()) == key]
    if not held:
        raise CannotError("The drift guard does not hold this county (any more).")
    words = f"{platform}, {county}"
    if verb == "accept":
        return Meant(len(held), "place", words, _ACCEPT, lambda: len(accept_places(platform, county)))
    registry, wanted = registry_with(place.settings.platforms_folder), PageFilter(platform, county)
    trial = Reparse(place.folder, registry, replace(wanted, newest=_TRIAL), dry_run=True).work()
    warning = (
        f"A trial with the newest {trial.pages} stored pages: {trial.changed} would change, {trial.unchanged} would"
        f" not, {trial.failed} cannot be read. Nothing is fetched. If its newest pages are complete again, the county"
        " goes on; otherwise it stays held."
    )

    def do() -> int:
        return Reparse(place.folder, registry, wanted).work().pages

    return Meant(len(tasks_with_pages(wanted)), "stored page", words, warning, do, is_audited=False)


def _lanes(verb: str, question: Question) -> Meant:
    lane = question.text("lane")
    lanes = [lane] if lane in _LANES else list(_LANES)
    warning = "It lasts through restarts." if verb == "pause" else "A full disk still pauses what it must."

    def do() -> int:
        set_pause_by_hand([str(name) for name in lanes], paused=verb == "pause")
        return len(lanes)

    return Meant(len(lanes), "lane", " ".join(str(name) for name in lanes), warning, do)


def confirm(place: Place, question: Question, again: bool = False) -> Page:
    """Return the page that asks for confirmation."""
    if place.read_only:
        raise CannotError("This monitor was started with --read-only: it changes nothing.")
    chosen = meant(place, question)
    facts: dict[str, Any] = {
        "verb": question.params["verb"],
        "kind": question.params["kind"],
        "n": chosen.n,
        "noun": chosen.noun,
        "words": chosen.words,
        "warning": chosen.warning + (" It will be in the audit." if chosen.is_audited else ""),
        "fields": {name: value for name, value in question.query.items() if name not in {"csrf", "n", "back", "id"}},
        "ids": question.ids,
        "back": question.query["back"],
        "again": again,
    }
    return Page("confirm.html", f"{question.params['verb'].capitalize()}?", facts)


def perform(place: Place, question: Question) -> tuple[str, str] | Page:
    """Do it; return where to go and what to say there, or the question again where more rows match by now."""
    chosen = meant(place, question)
    if chosen.n > question.number("n", 0):
        return confirm(place, question, again=True)
    n = chosen.do()
    noun = plural(n, chosen.noun)
    return question.query["back"], f"{question.params['verb']}: {noun}"


_SHOWN = 200


def audit(_place: Place, _question: Question) -> Page:
    """Return the page of who did what, and to how many rows."""
    return Page("audit.html", "Audit", {"rows": records.actions(_SHOWN), "shown": _SHOWN})
