"""What people do to rows to be sent to the Gateway: find, hold, release, discard, make them ready for a replay.

Each action changes only what it names, returns how many rows that was, and is in the audit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import all_rows, dict_rows, one_row, write
from lienworker.outbox import breaker, transitions
from lienworker.outbox.outcomes import held_or_waiting, report_given_up
from lienworker.outbox.states import NEVER_SENDABLE, UPLOADS, State, sql_list
from lienworker.outbox.uploads import ENDPOINTS
from lienworker.queries.lists import spellings
from lienworker.store.audit import record_action

_UPLOADS = sql_list(UPLOADS)
_RAW = transitions.RAW_OF_RESULT.format("mine")
#: Rows in one transaction, so that workers can write in between.
_CHUNK = 1000
#: Which states each verb applies to.
STATES_OF: dict[str, tuple[State, ...]] = {
    "replay": (State.WAITING, State.PARKED, State.HELD),
    "hold": (State.WAITING,),
    "release": (State.HELD,),
    "discard": (State.WAITING, State.HELD, State.PARKED),
}


@dataclass(frozen=True, slots=True)
class RowFilter:
    """What to look for; a criterion that is None is ignored."""

    ids: tuple[int, ...] = ()
    state: str | None = None
    topic: str | None = None
    reason: str | None = None
    county: str | None = None
    fingerprint: str | None = None
    since_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        return self == RowFilter()

    def in_words(self) -> str:
        names = ("state", "topic", "reason", "county", "fingerprint")
        said = [f"{name}={value}" for name in names if (value := getattr(self, name)) is not None]
        said += [f"ids {' '.join(map(str, self.ids))[:500]}"] if self.ids else []
        said += [f"since {rfc3339(self.since_ms)}"] if self.since_ms is not None else []
        return " ".join(said) or "all"


def _conditions(wanted: RowFilter) -> tuple[str, list[Any]]:
    parts, values = [f"o.topic IN {_UPLOADS}"], []
    for name in ("state", "topic", "reason", "fingerprint"):
        if (value := getattr(wanted, name)) is not None:
            parts.append(f"o.{name} = ?")
            values.append(value)
    if wanted.county is not None:
        parts.append("t.county = ? COLLATE NOCASE")
        values.append(wanted.county)
    if wanted.since_ms is not None:
        parts.append("coalesce(o.finished_at, o.created_at) >= ?")
        values.append(wanted.since_ms)
    if wanted.ids:
        parts.append("o.id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.ids))
    return " AND ".join(parts), values


def count_rows(wanted: RowFilter) -> int:
    """Return how many rows fit."""
    condition, values = _conditions(wanted)
    sql = f"SELECT count(*) FROM outbox o JOIN tasks t ON t.task_id = o.task_id WHERE {condition}"
    return int(one_row(sql, values)[0])


def find_rows(wanted: RowFilter, limit: int, *, oldest_first: bool = False) -> list[dict[str, Any]]:
    """Return rows that fit, newest first unless told otherwise."""
    if _fits_nothing(wanted):
        return []
    condition, values = _conditions(wanted)
    order = "o.id" if oldest_first else "o.id DESC"
    sql = (
        "SELECT o.id, o.topic, o.state, o.reason, o.task_id, t.county, t.parcel_id, o.attempts, o.blame, o.due_at,"
        " o.created_at, o.finished_at, o.fingerprint FROM outbox o JOIN tasks t ON t.task_id = o.task_id"
        f" WHERE {condition} ORDER BY {order} LIMIT ?"
    )
    return list(dict_rows(sql, (*values, limit)))


def _fits_nothing(wanted: RowFilter) -> bool:
    """Return whether tallies and counties alone tell that no row fits: millions need not be looked at."""
    sql = (
        f"SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'outbox' AND topic IN {_UPLOADS}"
        " AND (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR topic = ?2)"
    )
    is_empty = one_row(sql, (wanted.state, wanted.topic))[0] == 0
    return is_empty or (wanted.county is not None and not spellings("tasks", wanted.county))


def find_ids(
    wanted: RowFilter,
    states: Sequence[str],
    reasons: Sequence[str] | None = None,
    *,
    but_not: Sequence[str] = (),
) -> list[int]:
    """Return the ids of matching rows in one of these states (held ones for one of these reasons)."""
    condition, values = _conditions(wanted)
    sql = (
        f"SELECT o.id FROM outbox o JOIN tasks t ON t.task_id = o.task_id WHERE {condition}"
        " AND o.state IN (SELECT value FROM json_each(?))"
        " AND coalesce(o.reason, '') NOT IN (SELECT value FROM json_each(?))"
        " AND (o.state <> 'held' OR ? IS NULL OR o.reason IN (SELECT value FROM json_each(?))) ORDER BY o.id"
    )
    chosen = json.dumps(list(reasons)) if reasons is not None else None
    lists = (json.dumps(list(states)), json.dumps(list(but_not)), chosen, chosen or "[]")
    return [row_id for (row_id,) in all_rows(sql, (*values, *lists))]


def raw_files_of(ids: Sequence[int], reasons: Sequence[str]) -> list[int]:
    """Return the rows of the raw files that these results wait for (held ones for one of these reasons)."""
    sql = (
        "SELECT DISTINCT raw.id FROM json_each(?) chosen JOIN outbox mine ON mine.id = chosen.value"
        f" AND mine.topic = 'upload_result' JOIN outbox raw ON raw.id = {_RAW}"
        " AND (raw.state IN ('waiting', 'parked')"
        " OR raw.state = 'held' AND raw.reason IN (SELECT value FROM json_each(?))) ORDER BY raw.id"
    )
    return [row_id for (row_id,) in all_rows(sql, (json.dumps(list(ids)), json.dumps(list(reasons))))]


def left_out_by(verb: str) -> tuple[str, ...]:
    """Return the reasons that make a verb pointless for a row.

    What can never be stored is not sent, and what standalone holds stays held while it is standalone.
    """
    standalone = held_or_waiting()[1]
    return {"replay": NEVER_SENDABLE, "release": (standalone,) if standalone else ()}.get(verb, ())


def ids_for(verb: str, wanted: RowFilter) -> list[int]:
    """Return the matching rows that the verb changes."""
    return find_ids(wanted, STATES_OF[verb], but_not=left_out_by(verb))


def why_not_sent(row_id: int) -> str | None:
    """Return why a named row is not among those to replay; None for one that the Gateway has or no longer needs."""
    found = one_row("SELECT topic, state, reason FROM outbox WHERE id = ?", (row_id,))
    if found is None:
        return f"There is no row {row_id}. `lienworker outbox list` shows what there is."
    topic, state, reason = found
    if topic not in ENDPOINTS:
        return f"Row {row_id} is not an upload ({topic})."
    if state in {State.DELIVERED, State.SUPERSEDED}:
        return None
    rest = {
        State.HELD: "; `--include-held` sends it",
        State.LEASED: "; another process is sending it",
        State.WAITING: ", and the other options leave it out",
        State.PARKED: " and can never be sent as it is; `lienworker tasks retry --all` makes new results",
    }
    return f"Row {row_id} is {state}{f' ({reason})' if reason else ''}{rest.get(state, '')}."


def hold_rows(ids: Sequence[int], what: str) -> int:
    return _change(ids, "hold", what, lambda chunk: transitions.hold(chunk, "operator"))


def release_rows(ids: Sequence[int], what: str) -> int:
    """Release rows. In standalone mode they become held like everything else, and are sent with it."""
    return _change(ids, "release", what, lambda chunk: transitions.release_uploads(chunk, *held_or_waiting()))


def discard_rows(ids: Sequence[int], what: str) -> int:
    """Discard rows. A result is never sent without its raw file: it is parked if that is discarded.

    The tasks of results that will never go are failed at the Gateway, where they would stay booked.
    """
    return _change(ids, "discard", what, _discard)


_GIVEN_UP = """
SELECT result.task_id, result.generation,
    CASE WHEN mine.topic = 'upload_raw' THEN 'raw_discarded' WHEN mine.state = 'parked' THEN mine.reason
    ELSE 'discarded' END
FROM json_each(?) chosen JOIN outbox mine ON mine.id = chosen.value AND mine.state IN ('waiting', 'held', 'parked')
JOIN outbox result ON result.task_id = mine.task_id AND result.generation = mine.generation
    AND result.topic = 'upload_result' AND result.state IN ('waiting', 'held', 'parked')
WHERE mine.topic IN ('upload_raw', 'upload_result') ORDER BY mine.topic = 'upload_raw', result.id
"""


def _discard(ids: Sequence[int]) -> int:
    given_up = all_rows(_GIVEN_UP, (json.dumps(list(ids)),))
    n = transitions.discard(ids)
    for task_id, generation, reason in given_up:
        report_given_up(task_id, generation, reason or "discarded")
    return n


def ready_for_replay(ids: Sequence[int], what: str) -> int:
    """Make rows due, forgiven, since a person asks for them now, and let every breaker probe at once.

    What can never be sent stays parked.
    """
    n = _change(ids, "replay", what, transitions.replay)
    with write("replay_probe"):
        breaker.probe_now()
    return n


def replay_with_raw_files(ids: Sequence[int], what: str) -> int:
    """The same for rows of which no more is known: a result takes the raw file along that it waits for.

    Where somebody holds that, the result waits for it.
    """
    along = set(raw_files_of(ids, ("standalone",))) - set(ids)
    return ready_for_replay([*ids, *sorted(along)], what)


def _change(ids: Sequence[int], action: str, what: str, transition: Callable[[Sequence[int]], int]) -> int:
    """Take rows through a transition, a chunk a transaction; return how many changed."""
    changed = 0
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        with write("rows_by_hand"):
            n = transition(chunk)
            if n:
                record_action(action, what, n)
        changed += n
    return changed


def fates_of(ids: Sequence[int]) -> dict[str, int]:
    """Return how many of these rows are in which state."""
    counts: dict[str, int] = {}
    for start in range(0, len(ids), 10_000):
        sql = "SELECT state, count(*) FROM outbox WHERE id IN (SELECT value FROM json_each(?)) GROUP BY 1"
        for state, n in all_rows(sql, (json.dumps(list(ids[start : start + 10_000])),)):
            counts[state] = counts.get(state, 0) + n
    return counts


def lanes_in_figures() -> list[dict[str, Any]]:
    """Return for each lane to the Gateway how many rows are in which state, and the age of the oldest waiting one."""
    lanes = []
    for topic, endpoint in ENDPOINTS.items():
        counts = dict(all_rows("SELECT state, n FROM tally WHERE kind = 'outbox' AND topic = ? AND n > 0", (topic,)))
        # To the minute, from the kept table: searching a million rows takes seconds.
        minute = one_row("SELECT min(minute) FROM waiting_since WHERE topic = ? AND host = '' AND n > 0", (topic,))[0]
        # What it surely has waited: from the end of its minute on.
        age = max(0, now_ms() // 1000 - minute * 60 - 59) if minute else None
        lanes.append({"topic": topic, "endpoint": endpoint, "states": counts, "oldest_seconds": age})
    return lanes
