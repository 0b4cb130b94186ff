"""Every transition of an outbox row. This is the only module that writes to the table `outbox`.

```
                  add                                lease
       (new) ───────────> WAITING ──────────────────────────────────────> LEASED
         │                ^  ^  │  <── give_back, step_back, retry_later, ──┤ │
         │ add       replay  │  │      wait_for_hub, free_lease,            │ │
         v      (person) │   │  │      blame_for_death                      │ │
       HELD ── release ──┼───┘  │                                           │ │
         ^               │      │ hold (person, drift guard, restore)       │ │
         └───────────────┼──────┘                                           │ │
                         │                                                  │ │
                       PARKED <──────────── end(PARKED), blame_for_death ───┘ │
                         │                  discard (a result whose raw       │
                         │                  page was discarded), park_result  │
                         v                                                    v
                     DISCARDED              SUPERSEDED <─ end(SUPERSEDED)  DELIVERED <─ end, end_all,
                       discard, cancel,       supersede_reports,                        blame_for_death,
                       from WAITING, HELD,    supersede_uploads,                        end_waiting
                       PARKED                 from WAITING, HELD
```

A result that was parked because a part of its key was missing goes back to WAITING or HELD with `complete_key`.

Out of a final state there are two ways: `renew_report` (the hub hands out a task again that ended here, so it is told
the end once more) and `purge` (the row is old, nothing of it is owed to anybody, and it is counted as purged).

Rules that hold for all of them:

- They are part of the caller's write transaction, which also stores what the step made. None opens its own.
- What a worker does to a row that it holds is *fenced*: it happens only while the row is still leased under the
  worker's token. The functions return whether it was; a worker that lost its lease must throw its product away.
- What others do to a row names, in the statement itself, the states that it may come from. So of two people, or a
  person and a worker, only one succeeds. Row objects that are loaded, changed and saved were rejected for this: between
  the read and the write somebody else may have moved the row.
- `due_at`, `reason` and the like change here, too, in the functions at the end: a second module that updates rows
  would soon be a second home of the rules.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lienworker.db.clock import now_ms
from lienworker.db.database import all_rows, execute, execute_many, one_row
from lienworker.hostnames import site_of
from lienworker.outbox.rows import ASKED_FOR, DEADLINE_ORDER_MS, NEVER_DUE, Claimed, Entry, count_rows, deadline_order
from lienworker.outbox.states import NEVER_SENDABLE, SETTLED, State, Topic, sql_list

_SETTLED = sql_list(SETTLED)
_NEVER_SENDABLE = sql_list(NEVER_SENDABLE)
_UNKNOWN = f"topic NOT IN {sql_list(Topic)} OR state NOT IN {sql_list(State)}"
_FREE = "lease_token = NULL, lease_until = NULL"
#: The fence: this row, while it is still ours.
_MINE = "WHERE id = ? AND lease_token = ? AND state = 'leased'"
_THESE = "id IN (SELECT value FROM json_each(?))"
#: The row of the raw page that a result (of the outer query) waits for: its own task's, or that of its source page.
RAW_OF_RESULT = """coalesce({0}.raw_id, (SELECT own.id FROM outbox own WHERE own.task_id = {0}.task_id
    AND own.topic = 'upload_raw' AND own.generation = {0}.generation))"""
#: When an upload may be sent: a result not before its raw page was acknowledged.
_WHEN_SENDABLE = f"""CASE WHEN topic = 'upload_result' AND NOT EXISTS (
    SELECT 1 FROM outbox raw WHERE raw.id = {RAW_OF_RESULT.format("outbox")} AND raw.state = 'delivered')
    THEN {NEVER_DUE} ELSE ? END"""


# Into the table
#: The due time of a row with a deadline; NULL for others.
_BY_DEADLINE = f"due_by - {DEADLINE_ORDER_MS}"


def add(entries: Sequence[Entry]) -> None:
    """Add rows, waiting or held, and count them as added."""
    now = now_ms()
    # A row of an unknown host would wait forever; a route is paced as the site that it leads to.
    routes = {entry.host for entry in entries if entry.topic == Topic.FETCH}
    known = [(host,) for host in sorted(routes | {site_of(route) for route in routes})]
    execute_many("INSERT OR IGNORE INTO hosts (host) VALUES (?)", known)
    execute_many(
        "INSERT INTO outbox (topic, task_id, generation, host, queue, priority, payload, state, due_at, reason,"
        " created_at, parcel_key, due_by, raw_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (entry.values(now) for entry in entries),
    )
    count_rows("added", Counter(entry.topic for entry in entries))


def add_leased(topic: Topic, rows: Sequence[Claimed], lease_until: int, message_id: str | None) -> list[int]:
    """Add the next step of leased rows, leased to the same worker, and count them as added; return their ids."""
    now = now_ms()
    sql = (
        "INSERT INTO outbox (topic, task_id, generation, queue, priority, payload, state, due_at, lease_token,"
        " lease_until, message_id, created_at) VALUES (?, ?, ?, ?, ?, ?, 'leased', ?, ?, ?, ?, ?) RETURNING id"
    )
    ids = []
    for row in rows:
        step = (topic, row.task_id, row.generation, row.queue, row.priority, row.payload, now, row.token)
        ids.append(int(one_row(sql, (*step, lease_until, message_id, now))[0]))
    count_rows("added", Counter({topic: len(ids)}))
    return ids


# While a worker holds the row


def lease(row_ids: Sequence[int], token: str, lease_until: int, message_id: str | None) -> None:
    """WAITING to LEASED, for rows that the claim has just selected in the same transaction."""
    # One statement: with many, a busy event loop in this process would run after each of them.
    execute(
        f"UPDATE outbox SET state = 'leased', lease_token = ?, lease_until = ?, message_id = ? WHERE {_THESE}",
        (token, lease_until, message_id, json.dumps(list(row_ids))),
    )


def renew_leases(tokens: Iterable[str], lease_until: int) -> None:
    """Extend the leases under these tokens."""
    execute(
        "UPDATE outbox SET lease_until = ? WHERE state = 'leased' AND lease_token IN (SELECT value FROM json_each(?))",
        (lease_until, json.dumps(list(tokens))),
    )


def end(row: Claimed, state: State = State.DELIVERED, reason: str | None = None) -> bool:
    """LEASED to a final state: the row's outcome is stored. Return whether the row was still ours."""
    sql = f"UPDATE outbox SET state = ?, reason = ?, finished_at = ?, {_FREE} {_MINE}"
    return execute(sql, (state, reason, now_ms(), row.id, row.token)).rowcount == 1


def end_all(rows: Sequence[Claimed]) -> set[int]:
    """Deliver rows of one lease in one statement; return the ids of those that were still ours."""
    if not rows:
        return set()
    sql = (
        f"UPDATE outbox SET state = 'delivered', reason = NULL, finished_at = ?, {_FREE}"
        f" WHERE {_THESE} AND lease_token = ? AND state = 'leased' RETURNING id"
    )
    return {row_id for (row_id,) in all_rows(sql, (now_ms(), json.dumps([row.id for row in rows]), rows[0].token))}


def record_progress(row: Claimed, payload: str) -> bool:
    """Keep with a leased row how far its work has been stored; return whether the row was still ours."""
    return execute(f"UPDATE outbox SET payload = ? {_MINE}", (payload, row.id, row.token)).rowcount == 1


def record_names(names: Mapping[int, str]) -> None:
    """Keep with each row of a raw file under which name the hub has it."""
    execute_many("UPDATE outbox SET payload = json_object('name', ?) WHERE id = ?", [(n, i) for i, n in names.items()])


def give_back(rows: Iterable[Claimed], *, not_before: int = 0) -> list[Claimed]:
    """LEASED to WAITING for rows that were not tried, so they lose nothing; return those that were still ours."""
    sql = f"UPDATE outbox SET state = 'waiting', due_at = max(due_at, ?), {_FREE} {_MINE}"
    return [row for row in rows if execute(sql, (not_before, row.id, row.token)).rowcount]


def step_back(row: Claimed, due_at: int) -> None:
    """LEASED to WAITING behind a newer upload of the same parcel; nothing was tried."""
    execute(f"UPDATE outbox SET state = 'waiting', due_at = ?, {_FREE} {_MINE}", (due_at, row.id, row.token))


def retry_later(row: Claimed, due_at: int, reason: str, fingerprint: str) -> bool:
    """LEASED to WAITING after a try that failed: it costs an attempt. Return whether the row was still ours."""
    sql = (
        "UPDATE outbox SET state = 'waiting', attempts = attempts + 1, due_at = ?, reason = ?, fingerprint = ?,"
        f" {_FREE} {_MINE}"
    )
    return execute(sql, (due_at, reason, fingerprint, row.id, row.token)).rowcount == 1


def wait_for_hub(row: Claimed, due_at: int, reason: str, fingerprint: str, *, blame: int, successes: int) -> bool:
    """LEASED to WAITING after a failure of the hub: no attempt is lost. Return whether the row was still ours.

    `blame` is 1 where the row failed while others went through; its fingerprint then says with which error.
    """
    sql = (
        "UPDATE outbox SET state = 'waiting', due_at = ?, reason = ?,"
        " fingerprint = CASE WHEN ? OR blame = 0 THEN ? ELSE fingerprint END, blame = blame + ?, seen_successes = ?,"
        f" {_FREE} {_MINE}"
    )
    return execute(sql, (due_at, reason, blame, fingerprint, blame, successes, row.id, row.token)).rowcount == 1


# Rows of dead workers


def free_lease(row_id: int) -> None:
    """LEASED to WAITING for a worker that can no longer do it; nobody is blamed."""
    execute(f"UPDATE outbox SET state = 'waiting', {_FREE} WHERE id = ?", (row_id,))


def free_all_leases() -> None:
    """LEASED to WAITING in a copy of the database, whose workers no longer exist."""
    execute(f"UPDATE outbox SET state = 'waiting', {_FREE} WHERE state = 'leased'")


def blame_for_death(row_id: int, state: State) -> None:
    """LEASED to WAITING (isolated from now on), or to a final state where its worker died once too often."""
    execute(
        "UPDATE outbox SET state = ?, attempts = attempts + 1, alone = alone + 1, reason = 'worker_died',"
        f" {_FREE}, finished_at = ? WHERE id = ?",
        (state, None if state == State.WAITING else now_ms(), row_id),
    )


def end_waiting(row_id: int, reason: str) -> None:
    """WAITING to DELIVERED without a try: the task has failed, for instance because its host was given up."""
    execute(
        "UPDATE outbox SET state = 'delivered', reason = ?, finished_at = ? WHERE id = ? AND state = 'waiting'",
        (reason, now_ms(), row_id),
    )


# Held and released


def hold(row_ids: Iterable[int], reason: str) -> int:
    """WAITING to HELD; return how many."""
    sql = "UPDATE outbox SET state = 'held', reason = ? WHERE id = ? AND state = 'waiting'"
    return execute_many(sql, ((reason, row_id) for row_id in row_ids))


def hold_for_drift(row_ids: Iterable[int]) -> None:
    """WAITING to HELD for uploads of a county with drift.

    Also for uploads that standalone mode holds, which a replay would otherwise send.
    """
    execute_many(
        "UPDATE outbox SET state = 'held', reason = 'drift' WHERE id = ?"
        " AND (state = 'waiting' OR state = 'held' AND reason = 'standalone')",
        ((row_id,) for row_id in row_ids),
    )


def hold_all_uploads(reason: str) -> int:
    """WAITING to HELD for everything to be sent to the hub; return how many."""
    sql = (
        "UPDATE outbox SET state = 'held', reason = ? WHERE state = 'waiting'"
        " AND topic IN ('upload_raw', 'upload_result', 'report_failure')"
    )
    return execute(sql, (reason,)).rowcount


def release_steps(row_ids: Iterable[int]) -> None:
    """HELD to WAITING for fetches: they are due at once."""
    execute_many(
        f"UPDATE outbox SET state = 'waiting', reason = NULL, due_at = coalesce({_BY_DEADLINE}, ?) WHERE id = ?"
        " AND state = 'held'",
        ((now_ms(), row_id) for row_id in row_ids),
    )


def release_uploads(row_ids: Iterable[int], state: State, reason: str | None) -> int:
    """HELD to where uploads begin: WAITING, or in standalone mode HELD for that reason. Return how many changed."""
    sql = (
        f"UPDATE outbox SET state = ?, reason = ?, due_at = {_WHEN_SENDABLE}"
        " WHERE id = ? AND state = 'held' AND (state, reason) IS NOT (?1, ?2)"
    )
    return execute_many(sql, ((state, reason, now_ms(), row_id) for row_id in row_ids))


def release_asked_for(task_id: str) -> None:
    """HELD with its county to WAITING for a task whose page a person asks for; its payload says so from now on."""
    execute(
        f"UPDATE outbox SET state = 'waiting', reason = NULL, due_at = coalesce({_BY_DEADLINE}, ?),"
        f" payload = json_set(coalesce(payload, '{{}}'), '$.{ASKED_FOR}', json('true'))"
        " WHERE task_id = ? AND topic = 'fetch' AND state = 'held' AND reason IN ('drift', 'paused')",
        (now_ms(), task_id),
    )


# What people decide


def replay(row_ids: Iterable[int]) -> int:
    """WAITING, PARKED, HELD to WAITING, forgiven and due; return how many.

    What can never be sent stays parked: a result whose raw page was discarded would wait forever, without a reason.
    """
    sql = (
        "UPDATE outbox SET state = 'waiting', reason = NULL, blame = 0, seen_successes = NULL, finished_at = NULL,"
        f" due_at = {_WHEN_SENDABLE} WHERE id = ? AND state IN ('waiting', 'parked', 'held')"
        f" AND coalesce(reason, '') NOT IN {_NEVER_SENDABLE}"
    )
    return execute_many(sql, ((now_ms(), row_id) for row_id in row_ids))


def complete_key(task_id: str, parcel_key: str, state: State, reason: str | None) -> int:
    """Give a task's results the key that they lacked; PARKED for that to where uploads begin, with their raw pages.

    Return how many results were parked.
    """
    execute(
        "UPDATE outbox SET parcel_key = ? WHERE task_id = ? AND topic = 'upload_result' AND parcel_key IS NULL"
        " AND state IN ('waiting', 'held', 'parked')",
        (parcel_key, task_id),
    )
    freed = all_rows(
        f"UPDATE outbox SET state = ?, reason = ?, blame = 0, finished_at = NULL, due_at = {_WHEN_SENDABLE}"
        " WHERE task_id = ? AND topic IN ('upload_raw', 'upload_result') AND state = 'parked'"
        " AND reason = 'incomplete_key' RETURNING topic",
        (state, reason, now_ms(), task_id),
    )
    return sum(topic == Topic.UPLOAD_RESULT for (topic,) in freed)


def discard(row_ids: Sequence[int]) -> int:
    """WAITING, HELD, PARKED to DISCARDED; return how many.

    A result is never sent without its raw page: where that is discarded, the result is PARKED.
    """
    now = now_ms()
    n = execute_many(
        "UPDATE outbox SET state = 'discarded', reason = 'operator', finished_at = ?"
        " WHERE id = ? AND state IN ('waiting', 'held', 'parked')",
        ((now, row_id) for row_id in row_ids),
    )
    execute_many(
        "UPDATE outbox SET state = 'parked', reason = 'raw_discarded', finished_at = ?"
        " WHERE topic = 'upload_result' AND state IN ('waiting', 'held') AND (task_id, generation) = ("
        " SELECT task_id, generation FROM outbox WHERE id = ? AND topic = 'upload_raw' AND state = 'discarded')",
        ((now, row_id) for row_id in row_ids),
    )
    execute_many(
        "UPDATE outbox SET state = 'parked', reason = 'raw_discarded', finished_at = ? WHERE raw_id = ?"
        " AND state IN ('waiting', 'held') AND (SELECT raw.state FROM outbox raw WHERE raw.id = outbox.raw_id)"
        " = 'discarded'",
        ((now, row_id) for row_id in row_ids),
    )
    return n


def cancel_steps(task_id: str) -> int:
    """WAITING to DISCARDED for the fetch or scrape of a task; return how many. A leased one is left alone."""
    return execute(
        "UPDATE outbox SET state = 'discarded', reason = 'cancelled', finished_at = ?"
        " WHERE task_id = ? AND topic IN ('fetch', 'scrape') AND state = 'waiting'",
        (now_ms(), task_id),
    ).rowcount


def discard_archived(task_id: str) -> None:
    """HELD to DISCARDED for a task whose result a person has in an archive."""
    execute(
        "UPDATE outbox SET state = 'discarded', reason = 'archived', finished_at = ?"
        " WHERE task_id = ? AND state = 'held'",
        (now_ms(), task_id),
    )


def discard_steps_without_address(reason: str) -> None:
    """Open to DISCARDED for steps of tasks whose address was lost with the database."""
    execute(
        "UPDATE outbox SET state = 'discarded', reason = ?, finished_at = ? WHERE topic IN ('fetch', 'scrape')"
        " AND state IN ('waiting', 'leased', 'held') AND task_id IN (SELECT task_id FROM tasks WHERE url = '')",
        (reason, now_ms()),
    )


# Overtaken


def supersede_reports(task_id: str) -> None:
    """WAITING, HELD to SUPERSEDED for reports of a task that is being tried again."""
    execute(
        "UPDATE outbox SET state = 'superseded', reason = 'tried_again', finished_at = ?"
        " WHERE task_id = ? AND topic = 'report_failure' AND state IN ('waiting', 'held')",
        (now_ms(), task_id),
    )


def supersede_uploads(task_id: str, before_generation: int) -> None:
    """WAITING, HELD to SUPERSEDED for uploads of a task's earlier generations."""
    execute(
        "UPDATE outbox SET state = 'superseded', reason = 'newer_result', finished_at = ? WHERE task_id = ?"
        " AND topic IN ('upload_raw', 'upload_result', 'report_failure') AND generation < ?"
        " AND state IN ('waiting', 'held')",
        (now_ms(), task_id, before_generation),
    )


def renew_report(row_id: int, state: State, reason: str | None, payload: str) -> None:
    """From any state to WAITING or HELD: the hub has handed out a task again, so there is more to tell it.

    One that is in the air is told twice then; a task that is closed already is closed by that no more than it was.
    """
    execute(
        "UPDATE outbox SET state = ?, reason = ?, payload = ?, due_at = ?, finished_at = NULL, attempts = 0, blame = 0,"
        f" seen_successes = NULL, {_FREE} WHERE id = ?",
        (state, reason, payload, now_ms(), row_id),
    )


# Out of the table


def purge(row_id: int) -> None:
    """Remove a settled row. The caller counts it as purged, with the others of its transaction."""
    execute(f"DELETE FROM outbox WHERE id = ? AND state IN {_SETTLED}", (row_id,))


def purge_task(task_id: str) -> Counter[str]:
    """Remove all rows of a task for which nothing is owed any more, and count them as purged; return their topics."""
    topics: Counter[str] = Counter()
    for topic, n in all_rows("SELECT topic, count(*) FROM outbox WHERE task_id = ? GROUP BY 1", (task_id,)):
        topics[topic] = n
    execute("DELETE FROM outbox WHERE task_id = ?", (task_id,))
    count_rows("purged", topics)
    return topics


def remove_unknown() -> None:
    """Remove rows whose topic or state damage has made unreadable: no step would ever claim them."""
    execute(f"DELETE FROM outbox WHERE {_UNKNOWN}")


def count_unknown() -> int:
    """Return how many rows have a topic or state that does not exist."""
    return int(one_row(f"SELECT count(*) FROM outbox WHERE {_UNKNOWN}")[0])


# The same state with another due time or reason


def make_urgent(task_ids: Iterable[str]) -> None:
    """Let the waiting steps of these tasks overtake."""
    execute_many(
        "UPDATE outbox SET queue = 'urgent' WHERE task_id = ? AND topic IN ('fetch', 'scrape') AND state = 'waiting'"
        " AND queue <> 'urgent'",
        ((task_id,) for task_id in task_ids),
    )


def retries_to_sort_in(now: int) -> list[int]:
    """Return the rows with a deadline whose backoff is over, and that wait where it has put them."""
    sql = (
        "SELECT id FROM outbox INDEXED BY outbox_deadline_retries WHERE state = 'waiting' AND due_by IS NOT NULL"
        " AND attempts > 0 AND due_at BETWEEN ? AND ? LIMIT 5000"
    )
    return [row_id for (row_id,) in all_rows(sql, (now - DEADLINE_ORDER_MS // 4, now))]


def sort_by_deadline(row_ids: Iterable[int]) -> None:
    """Sort waiting rows in by their deadlines."""
    sql = f"UPDATE outbox SET due_at = {_BY_DEADLINE} WHERE id = ? AND state = 'waiting' AND due_by IS NOT NULL"
    execute_many(sql, ((row_id,) for row_id in row_ids))


def give_deadline(task_ids: Iterable[str], due_by: int) -> None:
    """Give waiting fetches of known tasks a deadline, unless they have an earlier one."""
    execute_many(
        "UPDATE outbox SET due_by = ?1, due_at = min(due_at, ?2) WHERE task_id = ?3 AND topic = 'fetch'"
        " AND state IN ('waiting', 'held') AND coalesce(due_by, ?1) >= ?1",
        ((due_by, deadline_order(due_by), task_id) for task_id in task_ids),
    )


def postpone(row_ids: Iterable[int], due_at: int) -> None:
    """Let waiting rows wait at least until `due_at`."""
    sql = "UPDATE outbox SET due_at = max(due_at, ?) WHERE id = ? AND state = 'waiting'"
    execute_many(sql, ((due_at, row_id) for row_id in row_ids))


def make_due(topic: Topic, now: int, from_ms: int, limit: int) -> None:
    """Make waiting rows due now whose due time is absurdly far ahead, up to `limit` of them."""
    execute(
        "UPDATE outbox SET due_at = ? WHERE id IN (SELECT id FROM outbox WHERE state = 'waiting' AND topic = ?"
        f" AND due_at > ? AND due_at < {NEVER_DUE} LIMIT ?)",
        (now, topic, from_ms, limit),
    )


def make_due_before(topic: Topic, now: int, until: int, reasons: Sequence[str]) -> None:
    """Let rows be due now that were to wait until then at most, for one of these reasons."""
    execute(
        "UPDATE outbox SET due_at = ? WHERE state = 'waiting' AND topic = ? AND host = '' AND due_at > ?"
        " AND due_at <= ? AND reason IN (SELECT value FROM json_each(?))",
        (now, topic, now, until, json.dumps(list(reasons))),
    )


def bring_forward(now: int, by_ms: int) -> None:
    """Bring the due times of waiting rows forward, but not before now."""
    execute(
        "UPDATE outbox SET due_at = max(?, due_at - ?) WHERE state = 'waiting'"
        f" AND due_at > ? AND due_at < {NEVER_DUE}",
        (now, by_ms, now),
    )


def move_to_host(moves: Iterable[tuple[str, int]]) -> None:
    """Give rows another host: pairs of the host and the row's id."""
    execute_many("UPDATE outbox SET host = ? WHERE id = ?", moves)


def set_fingerprint(row_id: int, fingerprint: str) -> None:
    """Store which error a parked row had."""
    execute("UPDATE outbox SET fingerprint = ? WHERE id = ?", (fingerprint, row_id))


def block_results(raw_id: int, task_id: str, generation: int) -> None:
    """Show on waiting results that their raw page was parked, without which they may not be sent."""
    execute(
        "UPDATE outbox SET reason = 'raw_parked' WHERE task_id = ? AND generation = ? AND topic = 'upload_result'"
        " AND state = 'waiting'",
        (task_id, generation),
    )
    execute("UPDATE outbox SET reason = 'raw_parked' WHERE raw_id = ? AND state = 'waiting'", (raw_id,))


def park_result(task_id: str, generation: int, reason: str, fingerprint: str) -> int | None:
    """WAITING, HELD to PARKED for a result that can never be sent, before its raw page goes; return the row's id."""
    sql = (
        "UPDATE outbox SET state = 'parked', reason = ?, fingerprint = ?, finished_at = ? WHERE task_id = ?"
        " AND generation = ? AND topic = 'upload_result' AND state IN ('waiting', 'held') RETURNING id"
    )
    row = one_row(sql, (reason, fingerprint, now_ms(), task_id, generation))
    return int(row[0]) if row else None


def unblock_results(raw_row_ids: Iterable[int]) -> None:
    """Let results be sent whose raw pages were acknowledged."""
    ended = json.dumps(list(raw_row_ids))
    execute(
        "UPDATE outbox SET due_at = ?, reason = CASE reason WHEN 'raw_parked' THEN NULL ELSE reason END WHERE id IN ("
        " SELECT result.id FROM json_each(?) ended JOIN outbox raw ON raw.id = ended.value"
        " JOIN outbox result ON result.task_id = raw.task_id AND result.topic = 'upload_result'"
        " AND result.generation = raw.generation AND result.state IN ('waiting', 'held', 'parked')"
        " UNION ALL SELECT result.id FROM json_each(?) ended JOIN outbox result ON result.raw_id = ended.value"
        " AND result.state IN ('waiting', 'held', 'parked'))",
        (now_ms(), ended, ended),
    )


def unblock_result(task_id: str, generation: int) -> None:
    """Let a result be claimed whose raw page will not be sent: it was superseded, too, and ends when claimed."""
    execute(
        "UPDATE outbox SET due_at = ? WHERE task_id = ? AND generation = ? AND topic = 'upload_result'",
        (now_ms(), task_id, generation),
    )
