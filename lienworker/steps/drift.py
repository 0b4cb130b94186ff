"""The drift guard: a county whose pages stop yielding what they used to is held, alone, until a person has looked.

Sites change. A parser then finds less, or nothing, and continues as if all were well. So each platform and county has a
history of which fields were present. When a field that nearly every page had collapses, the guard puts a drift hold on
the county: its place is marked as paused in `field_history`, and its waiting fetches and undelivered uploads are held,
reason `drift`. Three things end it: a reparse with a better parser whose newest pages are complete again, a person who
accepts the pages as they are, and (for one page) a person who asks for it.

Only the county is held, since the other counties of a platform often run another version of its software. Nothing is
discarded, because the guard may be wrong. Rejected: a fixed list of required fields (a county without house numbers
would never start), and a threshold over all pages ever (a slow change of many years would be an alarm).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, one_row, write
from lienworker.outbox import transitions
from lienworker.outbox.outcomes import held_or_waiting
from lienworker.outbox.pauses import DRIFT
from lienworker.outbox.rows import ASKED_FOR
from lienworker.steps import ranges
from lienworker.store.audit import record_action
from lienworker.store.history import History, Place, history_of, paused_places, save_history

_CHUNK = 1000
_NOT_ASKED_FOR = f"NOT instr(coalesce(o.payload, ''), '{ASKED_FOR}')"
_UPLOADS = "('upload_raw', 'upload_result')"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A page with the fields that were present in it; none, where it yielded no record."""

    place: Place
    task_id: str
    mask: int
    path: str
    sizes: Mapping[str, float] = field(default_factory=dict)
    """How large what is watched was; see `steps.ranges`."""


def watch(sightings: Iterable[Sighting]) -> list[Place]:
    """Record what pages yielded, in the transaction that stores it; return the places to hold."""
    places: dict[Place, list[Sighting]] = {}
    for sighting in sightings:
        places.setdefault(sighting.place, []).append(sighting)
    return [place for place, seen in places.items() if _note(place, seen)]


def _note(place: Place, seen: list[Sighting]) -> bool:
    history = history_of(place)
    if history.paused_at is None:
        take_in(history, [sighting.mask for sighting in seen])
        for sighting in seen:
            ranges.take_in(history.ranges, sighting.sizes)
        if lost := lost_fields(history):
            _pause(place, history, lost, min(seen, key=lambda sighting: sighting.mask.bit_count()))
        save_history(place, history)
    if history.paused_at is None:
        return False
    transitions.hold_for_drift(_ids_of([sighting.task_id for sighting in seen]))
    return True


def hold_uploads(sighting: Sighting) -> None:
    """Hold uploads that were added for a place that is paused."""
    if history_of(sighting.place).paused_at is not None:
        transitions.hold_for_drift(_ids_of([sighting.task_id]))


def _pause(place: Place, history: History, lost: list[str], sample: Sighting) -> None:
    history.paused_at = rfc3339()
    history.sample_task, history.sample_path = sample.task_id, sample.path
    history.words = f"{place.in_words()} is paused: {in_words(history, lost)}; see {sample.path}"
    transitions.hold_for_drift(_rows_of(place, f"o.topic IN {_UPLOADS} AND o.state IN ('waiting', 'held')"))


def hold_fetches(places: Iterable[Place]) -> None:
    """Hold the waiting fetches of places; after the pages are stored, since it may be a million rows."""
    for place in places:
        rows = _rows_of(place, f"o.topic = 'fetch' AND o.state = 'waiting' AND {_NOT_ASKED_FOR}")
        _in_chunks(rows, lambda chunk: transitions.hold(chunk, DRIFT))


def _rows_of(place: Place, condition: str) -> list[int]:
    """Return rows of a place, found by its tasks: a host may serve a hundred counties, which are not looked at."""
    start = "SELECT o.id FROM tasks t CROSS JOIN outbox o ON o.task_id = t.task_id WHERE "
    common = f" AND t.state IS ? AND (t.platform IS NULL OR t.platform = ?) AND {condition}"
    if place.county is not None:
        return _ids(start + "t.county = ?" + common, (place.county, place.state, place.platform))
    # Where no county is known, the host says whose tasks are meant: no others may be touched.
    known_by_host = "t.county IS NULL AND instr(t.url || '/', '//' || ? || '/')"
    return _ids(start + known_by_host + common, (place.host, place.state, place.platform))


def _ids(sql: str, values: Sequence[Any] = ()) -> list[int]:
    return [row_id for (row_id,) in all_rows(sql, values)]


def _in_chunks(row_ids: Sequence[int], change: Callable[[Sequence[int]], object]) -> None:
    """Change rows a chunk per transaction, so that workers can write in between."""
    for start in range(0, len(row_ids), _CHUNK):
        with write("drift_rows"):
            change(row_ids[start : start + _CHUNK])


def _ids_of(task_ids: list[str]) -> list[int]:
    sql = f"SELECT id FROM outbox WHERE task_id = ? AND topic IN {_UPLOADS}"
    return [row_id for task_id in task_ids for row_id in _ids(sql, (task_id,))]


def resume(place: Place, masks: Sequence[int] = (), *, accept: bool = False) -> bool:
    """Resume a paused place if its newest pages are as they used to be, or if a person accepts them as they are."""
    with write("drift_resume"):
        history = history_of(place)
        if history.paused_at is None:
            return False
        if accept:
            history = History()
        else:
            history.recent = list(masks)[-WINDOW:]
            if len(history.recent) < WINDOW or lost_fields(history):
                return False
        history.paused_at = history.words = history.sample_task = history.sample_path = None
        save_history(place, history)
    _release(place)
    return True


def _release(place: Place) -> None:
    """Release everything that drift holds in a place. A result still waits for its raw file."""
    held = "o.state = 'held' AND o.reason = 'drift' AND o.topic"
    _release_rows(_rows_of(place, f"{held} = 'fetch'"), _rows_of(place, f"{held} IN {_UPLOADS}"))


def release_stale_holds() -> None:
    """Release what a kill in the middle of a release left held, where nothing is paused any more."""
    held = "SELECT id FROM outbox WHERE state = 'held' AND reason = 'drift' AND topic"
    if not paused_places():
        _release_rows(_ids(f"{held} = 'fetch'"), _ids(f"{held} IN {_UPLOADS}"))


def _release_rows(fetches: Sequence[int], uploads: Sequence[int]) -> None:
    _in_chunks(fetches, transitions.release_steps)
    _in_chunks(uploads, lambda chunk: transitions.release_uploads(chunk, *held_or_waiting()))


def release_page(task_id: str) -> None:
    """Release one page of a held county, since a person asks for it."""
    with write("drift_let_go"):
        transitions.release_asked_for(task_id)


def held_tasks(import_id: int) -> int:
    """Return how many tasks of an import wait for a person: one who looks at their county, or resumes it."""
    sql = (
        "SELECT count(DISTINCT o.task_id) FROM outbox o JOIN tasks t ON t.task_id = o.task_id"
        " WHERE o.state = 'held' AND o.topic = 'fetch' AND o.reason IN ('drift', 'paused') AND t.import_id = ?"
    )
    return int(one_row(sql, (import_id,))[0])


def accept_places(platform: str | None, county: str | None) -> list[str]:
    """Accept the pages of paused places as they are, for a person; return the places' names."""
    chosen = [
        place_of(found)
        for found in paused_places()
        if (platform in (None, found["platform"])) and (county is None or county.lower() == found["county"].lower())
    ]
    accepted = [place.in_words() for place in chosen if resume(place, accept=True)]
    release_stale_holds()
    if accepted:
        with write("drift_accept"):
            record_action("accept", "; ".join(accepted)[:500], len(accepted))
    return accepted


def place_of(found: Mapping[str, str]) -> Place:
    """Return the place behind a stored key."""
    unknown = found["county"].startswith("(")
    host = found["county"].strip("()") if unknown else ""
    return Place(found["platform"], found["state"] or None, None if unknown else found["county"], host)


# What is usual on the pages of a county, and whether the newest ones still have it. Decisions only, no rows.


#: Pages that are compared with those before them.
WINDOW = 20
#: Pages that must have come before them: fewer do not show what is usual.
ENOUGH = 20
#: A field that was present in this share of pages belongs to the page.
USUAL = 0.95
#: One that was in every page and is present in no more than this share of the window has collapsed.
COLLAPSED = 0.5
#: One that was missing now and then (no house, no year built) has to fall further: of a field that two in three pages
#: have, nearly all of twenty may have it by chance, and then only half of the next twenty.
_SURELY_COLLAPSED = 0.25
#: Pages after which the past counts half: sites change slowly, too, and that is no alarm.
_LONG = 2000
# Bits of what is stored: add new names at the end.
WATCHED = (
    "parcel_id", "owner_name", "owner_address", "property_address", "city", "zip", "legal_description", "property_use",
    "acres", "land_area_sqft", "building_area_sqft", "year_built", "bedrooms", "bathrooms", "homestead", "land_value",
    "building_value", "market_value", "assessed_value", "taxable_value", "values", "tax_year", "tax_amount",
    "total_due", "tax_status", "taxes", "liens", "sales", "auction", "parcels",
)  # fmt: skip
_BIT = {name: 1 << n for n, name in enumerate(WATCHED)}


def mask_of(record: Mapping[str, Any]) -> int:
    return sum(_BIT[name] for name in record if name in _BIT)


def lost_fields(history: History) -> list[str]:
    """Return the usual fields that have collapsed; empty where all is well or too little is known."""
    if history.pages < ENOUGH or len(history.recent) < WINDOW:
        return []
    usual = [name for name in WATCHED if history.counts.get(name, 0) >= USUAL * history.pages]
    return [name for name in usual if _share_now(history, name) <= _most_of_a_collapsed(history, name)]


def _share_now(history: History, name: str) -> float:
    return sum(bool(mask & _BIT[name]) for mask in history.recent) / len(history.recent)


def _most_of_a_collapsed(history: History, name: str) -> float:
    return COLLAPSED if history.counts[name] >= history.pages else _SURELY_COLLAPSED


def take_in(history: History, masks: Sequence[int]) -> None:
    """Add newer pages to the window; what falls out of it becomes the past."""
    history.recent += masks
    old, history.recent = history.recent[:-WINDOW], history.recent[-WINDOW:]
    for mask in old:
        history.pages += 1
        for name, bit in _BIT.items():
            if mask & bit:
                history.counts[name] = history.counts.get(name, 0) + 1
    if history.pages > _LONG:
        history.pages //= 2
        history.counts = {name: n // 2 for name, n in history.counts.items()}


def rates(history: History) -> list[dict[str, Any]]:
    """Return the share of the newest pages that have each field, and the share of those before; most lost first."""
    found = []
    for name, bit in _BIT.items():
        now = sum(bool(mask & bit) for mask in history.recent) / len(history.recent) if history.recent else None
        before = history.counts.get(name, 0) / history.pages if history.pages else None
        if now or before:
            found.append({"field": name, "now": now, "before": before})
    return sorted(found, key=lambda rate: (rate["now"] or 0.0) - (rate["before"] or 0.0))


def in_words(history: History, lost: list[str]) -> str:
    empty = sum(mask == 0 for mask in history.recent)
    if empty >= COLLAPSED * len(history.recent):
        return f"{empty} of its last {len(history.recent)} pages gave nothing"
    share = max(_share_now(history, name) for name in lost)
    names = ", ".join(lost[:6]) + (f" and {len(lost) - 6} more" if len(lost) > 6 else "")
    return f"{names} came with nearly every page before, and with {share:.0%} of the last {len(history.recent)}"
