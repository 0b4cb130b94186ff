"""What triggers and counters maintain, so that a count costs the same at a million rows."""

from __future__ import annotations

from peewee import CompositeKey, IntegerField, TextField

from lienworker.db.models.base import Base


class Backlog(Base):
    """What waits, by lane, host and rank."""

    topic = TextField()
    host = TextField()
    rank = IntegerField()
    waiting = IntegerField()  # rows
    not_before = IntegerField()  # the earliest time at which one of them can be due

    class Meta:
        table_name = "backlog"
        primary_key = CompositeKey("topic", "host", "rank")
        without_rowid = True


class WaitingSince(Base):
    """What waits, by the minute in which it was added."""

    topic = TextField()
    host = TextField()
    place = TextField()  # platform|state|county of a fetch, else ''
    minute = IntegerField()
    n = IntegerField()

    class Meta:
        table_name = "waiting_since"
        primary_key = CompositeKey("topic", "host", "place", "minute")
        without_rowid = True


class Tally(Base):
    """Tasks by status and outbox rows by state."""

    kind = TextField()  # task or outbox
    topic = TextField()  # '' for tasks
    state = TextField()
    n = IntegerField()

    class Meta:
        table_name = "tally"
        primary_key = CompositeKey("kind", "topic", "state")
        without_rowid = True


class Counter(Base):
    """Outbox rows ever added and purged, kept by the code that does it: the balance is checked against these."""

    name = TextField()  # added or purged
    topic = TextField()
    n = IntegerField()

    class Meta:
        table_name = "counters"
        primary_key = CompositeKey("name", "topic")
        without_rowid = True


class Rollup(Base):
    """What happened, by minute; folded into hours and eventually into minute 0, which means "ever"."""

    name = TextField()
    key = TextField()
    minute = IntegerField()
    n = IntegerField()  # how often, or a level (`disk_free_mb`)
    total = IntegerField(default=0)  # the sum of what was measured: bytes, ms or s

    class Meta:
        table_name = "rollups"
        primary_key = CompositeKey("name", "key", "minute")
        without_rowid = True


class SetAside(Base):
    """Held and parked rows, grouped: one line for the same error on many of them."""

    state = TextField()
    topic = TextField()
    reason = TextField()
    fingerprint = TextField()
    n = IntegerField()
    first_at = IntegerField()
    last_at = IntegerField()
    sample_id = IntegerField()  # a row of the outbox

    class Meta:
        table_name = "set_aside"
        primary_key = CompositeKey("state", "topic", "reason", "fingerprint")
        without_rowid = True


class FailedTasks(Base):
    """Failed tasks by reason."""

    reason = TextField(primary_key=True)
    n = IntegerField()
    sample = TextField()  # the newest one's task_id
    last_at = TextField()

    class Meta:
        table_name = "failed_tasks"
        without_rowid = True
