"""What may be purged: tasks that have ended and of which nothing is still to be delivered.

Undelivered is what waits, is leased, held or parked, and every result that no Gateway has. Two kinds of results have
nowhere to go and count as settled: one that a newer of its parcel has overtaken, and a list, whose parcels are tasks of
their own. In standalone mode everything is held, so nothing of it is ever settled by itself; a person can say that
what `results archive` has packed is done with.
"""

from __future__ import annotations

# Conditions for queries in which `t` is the task; `x`, `r` and `u` are theirs.

ENDED = "('completed', 'failed', 'expired')"
_OPEN = "('waiting', 'leased', 'held', 'parked')"

_OVERTAKEN = """EXISTS (SELECT 1 FROM outbox u WHERE u.task_id = r.task_id AND u.topic = 'upload_result'
    AND u.generation = r.generation AND u.state = 'superseded')"""

#: Of the result of task `t`: no Gateway has it.
UNSYNCED = "EXISTS (SELECT 1 FROM results r WHERE r.task_id = t.task_id AND r.synced = 0 AND r.stays_here = 0)"
#: Of the rows of task `t`: one is not over.
OPEN_ROWS = f"EXISTS (SELECT 1 FROM outbox x WHERE x.task_id = t.task_id AND x.state IN {_OPEN})"
#: Of task `t`.
SETTLED = f"""(t.status IN {ENDED} AND NOT {OPEN_ROWS} AND NOT EXISTS (
    SELECT 1 FROM results r WHERE r.task_id = t.task_id AND r.synced = 0 AND r.stays_here = 0 AND NOT {_OVERTAKEN}))"""
#: Of task `t`: its result is in an archive, and only standalone mode keeps it from being delivered.
ARCHIVED = f"""(t.status IN {ENDED} AND EXISTS (
    SELECT 1 FROM results r WHERE r.task_id = t.task_id AND r.synced = 0 AND r.stays_here = 0 AND r.json_path IS NULL)
    AND NOT EXISTS (SELECT 1 FROM outbox x WHERE x.task_id = t.task_id AND x.state IN {_OPEN}
        AND NOT (x.state = 'held' AND x.reason = 'standalone')))"""
