"""The lanes to the Gateway: claiming within what the breakers allow, and ending rows as the Gateway took them."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import after_commit, all_rows, dict_rows, execute, one_row, write
from lienworker.logs import about_task
from lienworker.outbox import breaker, transitions
from lienworker.outbox.breaker import Gate
from lienworker.outbox.claims import (
    Rules,
    claim_in_transaction,
    claim_probe,
    claim_these,
    claimable,
    is_paused,
    next_due,
)
from lienworker.outbox.outcomes import (
    fingerprint,
    give_back_in_transaction,
    record_try,
    report_completion,
    report_given_up,
)
from lienworker.outbox.relay import Lane
from lienworker.outbox.rows import Claimed
from lienworker.outbox.states import NEVER_SENDABLE, State, Topic, sql_list
from lienworker.store import results

#: The lanes to the Gateway, in the order in which they are worked, each with the endpoint that it goes to.
ENDPOINTS: dict[str, str] = {Topic.UPLOAD_RAW: "raw", Topic.UPLOAD_RESULT: "results", Topic.REPORT_FAILURE: "tasks"}

#: Failures of a destination that is in trouble: what waits for its probe waits for one of these. Not 401 and 429.
_OUTAGES = ("down", "reset", "timeout", "server_error", "garbage", "failed", "unexpected", "missing", "redirected")
#: What our own waits after a failure amount to at most.
_LONGEST_WAIT_MS = 400_000

_NEVER_SENDABLE = sql_list(NEVER_SENDABLE)
RAW_OF_RESULT = transitions.RAW_OF_RESULT.format("o")

#: So many rows are work for one process; the next one helps when more are waiting.
_FOR_ONE = 250
#: Whoever sends looks for more every tenth of a second; what has been due for this long is for somebody else.
_LEFT_LYING_MS = 1500

logger = logging.getLogger(__name__)


class Chosen:
    """The rows that a person has chosen, in slices: a hundred thousand at once would hold up every other writer."""

    _SLICE = 1000

    def __init__(self, ids: Sequence[int]) -> None:
        slices = [tuple(ids[start : start + self._SLICE]) for start in range(0, len(ids), self._SLICE)]
        self._left = {topic: list(slices) for topic in ENDPOINTS}

    def slices(self, topic: str) -> list[tuple[int, ...]]:
        """Those in which a row of the lane may still wait."""
        return list(self._left[topic])

    def look_again(self, topic: str, ids: tuple[int, ...]) -> None:
        """Nothing could be claimed of a slice: it is left out from now on if nothing in it will ever wait again."""
        sql = "SELECT 1 FROM outbox WHERE id IN (SELECT value FROM json_each(?)) AND topic = ? AND state IN "
        if one_row(sql + "('waiting', 'leased') LIMIT 1", (json.dumps(ids), topic)) is None:
            self._left[topic].remove(ids)


@dataclass(frozen=True, slots=True)
class Claim:
    """How rows are claimed: for whom, by which rules, and (for a person's replay) which ones only."""

    token: str
    rules: Rules
    message_id: str | None = None
    only: Chosen | None = None


def claim_uploads(topic: str, limit: int, how: Claim) -> list[Claimed]:
    """Rows that may go out now; one, where the breaker wants a probe."""
    # A look before the transaction: most of the time there is nothing, and every writer would have to wait for that.
    if not _sendable(topic, how.rules, 1):
        return []
    if how.only is None:
        return _claim_uploads(topic, limit, how, None)
    for ids in how.only.slices(topic):
        if rows := _claim_uploads(topic, limit, how, ids):
            return rows
        how.only.look_again(topic, ids)
    return []


def _claim_uploads(topic: str, limit: int, how: Claim, ids: tuple[int, ...] | None) -> list[Claimed]:
    with write("claim_upload"):
        gate = breaker.gate(ENDPOINTS[topic])
        if gate is Gate.OPEN or is_paused(topic):
            return []
        if gate is Gate.PROBE:
            rows = claim_probe(topic, how.token, ids)
        elif ids is None:
            rows = claim_in_transaction(topic, limit, how.token, how.rules, quarantined=True, message_id=how.message_id)
        else:
            rows = claim_these(topic, limit, how.token, ids)
        if rows and gate is Gate.PROBE:
            breaker.start_probe(ENDPOINTS[topic])
    return rows


def take_back(rows: Sequence[Claimed]) -> None:
    """Rows that did not get there wait again untouched; one that was to be a probe is none any more."""
    if not rows:
        return
    with write("give_back"):
        give_back_in_transaction(rows)
        for topic in {row.topic for row in rows}:
            breaker.call_off_probe(ENDPOINTS[topic])


def probe_others(endpoint: str) -> None:
    """An endpoint answers again: the others probe at once, with rows that wait for just that. Part of a transaction.

    Rows that found nobody there go now as well, also where the breaker had not opened yet.
    """
    now, waited_until = now_ms(), breaker.probe_others(endpoint)
    for topic, other in ENDPOINTS.items():
        transitions.make_due_before(Topic(topic), now, now + _LONGEST_WAIT_MS, breaker.NOBODY_THERE)
        if other in waited_until:
            transitions.make_due_before(Topic(topic), now, waited_until[other] + 1, _OUTAGES)


def waiting_for(endpoint: str) -> int:
    """Return how many rows an endpoint has yet to take, those in hand included; none wait for work."""
    sql = "SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'outbox' AND state IN ('waiting', 'leased') AND topic = ?"
    return sum(int(one_row(sql, (topic,))[0]) for topic, place in ENDPOINTS.items() if place == endpoint)


def undelivered() -> int:
    """Return how many tasks have an outcome that the Gateway should have and has not: waiting, in hand or parked.

    What can never be sent is none of them: its task was failed there.
    """
    sql = (
        "SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'outbox' AND topic IN ('upload_result', 'report_failure')"
        " AND state IN ('waiting', 'leased', 'parked')"
    )
    given_up = (
        "SELECT coalesce(sum(n), 0) FROM set_aside WHERE state = 'parked'"
        f" AND topic IN ('upload_result', 'report_failure') AND reason IN {_NEVER_SENDABLE}"
    )
    return int(one_row(sql)[0]) - int(one_row(given_up)[0])


def is_open(topic: str) -> bool:
    """Whether the breaker of a lane holds it back."""
    return breaker.gate(ENDPOINTS[topic]) is not Gate.CLOSED


def waits_as_asked(longest_ms: int) -> bool:
    """Return whether rows wait because the Gateway asked for a pause (429) that is over soon."""
    soon = now_ms() + longest_ms
    sql = (
        "SELECT 1 FROM outbox WHERE state = 'waiting' AND topic IN (SELECT value FROM json_each(?))"
        " AND reason = 'rate_limited' AND due_at < ? LIMIT 1"
    )
    return one_row(sql, (json.dumps(list(ENDPOINTS)), soon)) is not None


def record_of(row: Claimed) -> tuple[int | None, int, str | None]:
    """Return what is held against a row: the endpoint's successes at its last failure, its blame, its fingerprint."""
    seen, count, known = one_row("SELECT seen_successes, blame, fingerprint FROM outbox WHERE id = ?", (row.id,))
    return seen, count, known


def put_off(row: Claimed, kind: str, words: str, due_at: int, *, blame: int, seen_successes: int) -> None:
    """Let a row wait that did not get through. It loses no attempt; `blame` is what counts against it from now on."""
    if transitions.wait_for_hub(row, due_at, kind, fingerprint(words), blame=blame, successes=seen_successes):
        _record_failure(row, kind, words)


@dataclass(frozen=True, slots=True)
class Parked:
    """A row that was set aside, and why."""

    row: Claimed
    reason: str
    words: str


def say_parked(parked: Sequence[Parked]) -> None:
    """Log what a transaction has parked, a line for each error. Part of that transaction."""
    groups: dict[tuple[str, str, str], list[Parked]] = {}
    for one in parked:
        groups.setdefault((one.row.topic, one.reason, fingerprint(one.words)), []).append(one)
    for (topic, reason, mark), rows in groups.items():
        after_commit(functools.partial(_say_group, topic, reason, mark, rows[0], len(rows)))


def _say_group(topic: str, reason: str, mark: str, sample: Parked, n: int) -> None:
    logger.warning(
        "parked %d %s (%s), for instance of task %s: %s; `lienworker outbox list --fingerprint %s` shows all of them",
        n,
        topic,
        reason,
        sample.row.task_id,
        sample.words.rstrip("."),
        mark,
        extra=about_task("parked", sample.row.task_id, topic, reason=reason),
    )


def park(row: Claimed, reason: str, words: str, *, tries: int = 1) -> None:
    """The row's own fault: it is set aside with its reason, and its neighbours go through."""
    if not transitions.end(row, State.PARKED, reason):
        return
    transitions.set_fingerprint(row.id, fingerprint(words))
    _record_failure(row, reason, words, tries=tries)
    if row.topic == Topic.UPLOAD_RAW:
        transitions.block_results(row.id, row.task_id, row.generation)


def park_unsendable(row: Claimed, reason: str, words: str) -> None:
    """Set a result aside that can never be stored, with its raw file if that has not gone; `row` is either of the two.

    The hub is told, for the task would stay booked there.
    """
    park(row, reason, words, tries=0)
    if row.topic == Topic.UPLOAD_RAW:
        result = transitions.park_result(row.task_id, row.generation, reason, fingerprint(words))
        if result is not None:
            record_try(result, row.task_id, Topic.UPLOAD_RESULT, reason, words)
            results.record_sync_failure(row.task_id, row.generation, words, tries=0)
    report_given_up(row.task_id, row.generation, reason)


def _record_failure(row: Claimed, reason: str, words: str, *, tries: int = 1) -> None:
    record_try(row.id, row.task_id, row.topic, reason, words)
    if row.topic == Topic.UPLOAD_RESULT:
        results.record_sync_failure(row.task_id, row.generation, words, tries=tries)


def raws_delivered(rows: Sequence[tuple[Claimed, str]]) -> None:
    """End rows whose raw files the Gateway has, with the names that they have there: now their results may go."""
    ended = transitions.end_all([row for row, _ in rows])
    transitions.record_names({row.id: name for row, name in rows if row.id in ended})
    transitions.unblock_results(ended)


def release_result(row: Claimed) -> None:
    """The raw file will not go: its result, which was replaced too, may end by itself at its next claim."""
    transitions.unblock_result(row.task_id, row.generation)


def results_delivered(rows: Sequence[Claimed]) -> list[str]:
    """The Gateway has these results; gives the tasks of which it is still the newest."""
    ids = json.dumps(list(transitions.end_all(rows)))
    execute(
        "INSERT INTO delivered_parcels SELECT o.parcel_key, r.task_id, r.fetched_at, r.generation"
        " FROM json_each(?) ended JOIN outbox o ON o.id = ended.value"
        " JOIN results r ON r.task_id = o.task_id AND r.generation = o.generation WHERE o.parcel_key IS NOT NULL"
        " ON CONFLICT DO UPDATE SET task_id = excluded.task_id,"
        " fetched_at = excluded.fetched_at, generation = excluded.generation"
        " WHERE (excluded.fetched_at, excluded.generation) > (fetched_at, generation) OR fetched_at > ?",
        (ids, rfc3339()),
    )
    these = "SELECT task_id, generation FROM outbox WHERE id IN (SELECT value FROM json_each(?))"
    synced = all_rows(f"{results.SYNCED} WHERE (task_id, generation) IN ({these}) RETURNING task_id", (ids,))
    return [task_id for (task_id,) in synced]


def raw_pages(ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What there is to say about the next raw file of each row; none for one whose result was replaced.

    A parcel may have several, which go one after the other: `is_last` says of the file whether more follow. The page
    of a source (`stays_here`) has no parcel of its own, and each of its generations is wanted by the results read from
    it.
    """
    found = dict_rows(
        "SELECT o.id, r.platform, r.state, r.county, iif(r.stays_here, 'source page', r.parcel_id) AS parcel_id,"
        " p.part, p.path, p.url, p.sha256, p.fetched_at, p.content_type, p.position"
        " FROM json_each(?) wanted JOIN outbox o ON o.id = wanted.value"
        " JOIN results r ON r.task_id = o.task_id AND (r.generation = o.generation OR r.stays_here)"
        " LEFT JOIN pages p ON p.task_id = o.task_id AND p.generation = o.generation AND p.sent_name IS NULL",
        (json.dumps(list(ids)),),
    )
    pages: dict[int, dict[str, Any]] = {}
    for row in sorted(found, key=_position, reverse=True):
        pages[row["id"]] = {**row, "is_last": row["id"] not in pages}
    return pages


def _position(page: Mapping[str, Any]) -> int:
    """The order of a parcel's parts. There are few, and SQLite would sort all rows of the query for them."""
    return int(page["position"] or 0)


def raw_part_delivered(row: Claimed, position: int, name: str) -> None:
    """Record that the Gateway has one of the row's raw files, while others are still to go. Part of a transaction."""
    execute(
        "UPDATE pages SET sent_name = ? WHERE task_id = ? AND generation = ? AND position = ?",
        (name, row.task_id, row.generation, position),
    )


def sent_pages(ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Return the pages behind results whose raw files the Gateway has, by the results' rows, in their order."""
    found = dict_rows(
        "SELECT o.id, r.platform, r.state, r.county, r.parcel_id, r.source_index, p.part, p.path, p.sha256, p.position,"
        " coalesce(p.sent_name, json_extract(raw.payload, '$.name')) AS sent_name"
        " FROM json_each(?) wanted JOIN outbox o ON o.id = wanted.value"
        " JOIN results r ON r.task_id = o.task_id AND r.generation = o.generation"
        f" JOIN outbox raw ON raw.id = {RAW_OF_RESULT} AND raw.state = 'delivered'"
        " JOIN pages p ON p.task_id = raw.task_id AND p.generation = raw.generation",
        (json.dumps(list(ids)),),
    )
    pages: dict[int, list[dict[str, Any]]] = {}
    for page in sorted(found, key=_position):
        pages.setdefault(page["id"], []).append(page)
    return pages


class UploadLane(Lane):
    """The three lanes to the Gateway as one: one worker of each process works them in their order.

    One process does while little waits: each of them has its transactions, and scraping would wait for them.
    """

    def due(self, rules: Rules, most: int) -> int:
        """In rows that a token stands for: what those who are at it already will not do."""
        sendable = {topic: _sendable(topic, rules, _FOR_ONE * self.capacity()) for topic in ENDPOINTS}
        wanted = -(-sum(sendable.values()) // _FOR_ONE)
        if wanted and not any(n and _is_left_lying(topic) for topic, n in sendable.items()):
            wanted = max(0, wanted - _at_work())
        return min(most, wanted * self.batch)

    def next_due(self) -> int | None:
        times = [due for topic in ENDPOINTS if (due := _next_due(topic)) is not None]
        return min(times, default=None)

    def capacity(self) -> int:
        return max(1, int(one_row("SELECT count(*) FROM workers WHERE kind = 'worker'")[0]))


def _at_work() -> int:
    """How many processes are sending."""
    sql = (
        "SELECT count(DISTINCT lease_token) FROM outbox WHERE state = 'leased'"
        " AND topic IN (SELECT value FROM json_each(?))"
    )
    return int(one_row(sql, (json.dumps(list(ENDPOINTS)),))[0])


def _is_left_lying(topic: str) -> bool:
    """Whether those who are at it do not come back for what is due: they may be waiting for a file that hangs."""
    sql = (
        "SELECT 1 FROM backlog b WHERE b.topic = ? AND b.host = '' AND b.waiting > 0 AND EXISTS (SELECT 1 FROM outbox o"
        " WHERE o.state = 'waiting' AND o.topic = b.topic AND o.host = b.host AND o.rank = b.rank AND o.due_at < ?)"
    )
    return one_row(sql, (topic, now_ms() - _LEFT_LYING_MS)) is not None


def _sendable(topic: str, rules: Rules, most: int) -> int:
    gate = breaker.gate(ENDPOINTS[topic])
    if gate is Gate.OPEN:
        return 0
    return claimable(topic, rules, 1 if gate is Gate.PROBE else most)


def _next_due(topic: str) -> int | None:
    """When a lane has something to do next: its earliest row, or its breaker's probe if that is later."""
    due = next_due(topic)
    return None if due is None else max(due, breaker.next_probe(ENDPOINTS[topic]) or 0)


# What the database knows of the order within a parcel; `steps.upload.result` has the rule.


#: How long a result waits behind a newer one of its parcel before it is looked at again.
_STEP_BACK_MS = 1000
_MINE = "json_each(?2) wanted JOIN outbox o ON o.id = wanted.value JOIN results r ON r.task_id = o.task_id"
_OVERTAKEN = f"""
SELECT o.id FROM {_MINE} JOIN delivered_parcels d ON d.parcel_key = o.parcel_key
LEFT JOIN outbox other ON other.task_id = d.task_id AND other.topic = o.topic AND other.generation = d.generation
WHERE d.task_id <> o.task_id AND CASE WHEN (d.fetched_at > ?1) <> (r.fetched_at > ?1) THEN coalesce(other.id, 0) > o.id
    ELSE (d.fetched_at, d.generation) > (r.fetched_at, r.generation) END
"""
# One of the same parcel is in the air in another batch, or a newer one is on its way: a kill may have hidden that the
# Gateway has the newer one already.
_NOT_FIRST = f"""
SELECT o.id FROM {_MINE}
JOIN outbox other ON other.parcel_key = o.parcel_key AND other.topic = 'upload_result'
    AND other.state IN ('waiting', 'leased') AND other.id <> o.id
JOIN results s ON s.task_id = other.task_id AND s.generation = other.generation
WHERE (other.state = 'leased' AND other.id NOT IN (SELECT value FROM json_each(?2)))
    OR (coalesce(other.reason, '') <> 'raw_parked' AND CASE
        WHEN (s.fetched_at > ?1) <> (r.fetched_at > ?1) THEN other.id > o.id
        ELSE (s.fetched_at, s.generation) > (r.fetched_at, r.generation) END)
"""


def result_rows(rows: Sequence[Claimed]) -> dict[str, dict[str, Any]]:
    """The stored results of claimed rows, by task, with their data as it is stored."""
    found = dict_rows(f"SELECT r.* FROM {_MINE}", (None, json.dumps([row.id for row in rows])))
    return {row["task_id"]: row for row in found}


def overtaken(rows: Sequence[Claimed], now: str) -> set[int]:
    """Return the ids of claimed rows whose parcel has a newer result at the Gateway."""
    return {found[0] for found in all_rows(_OVERTAKEN, (now, json.dumps([row.id for row in rows])))}


def not_first(rows: Sequence[Claimed], now: str) -> set[int]:
    """Return the ids of rows, claimed together, that must let another one of their parcel go first."""
    return {found[0] for found in all_rows(_NOT_FIRST, (now, json.dumps([row.id for row in rows])))}


def supersede(row: Claimed) -> None:
    """End a row that a newer result has overtaken."""
    if transitions.end(row, State.SUPERSEDED, "newer_result"):
        report_completion(row.task_id)
        results.forget_pending_of(row.task_id, row.generation)


def step_back(row: Claimed) -> None:
    """Let a row wait a moment behind the newer one; nothing was tried."""
    transitions.step_back(row, now_ms() + _STEP_BACK_MS)
