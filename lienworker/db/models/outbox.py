"""The outbox, and what decides when one of its rows may be worked on: hosts, breakers, pauses, workers."""

from __future__ import annotations

from peewee import AutoField, CompositeKey, FloatField, IntegerField, TextField

from lienworker.db.models.base import Base


class OutboxRow(Base):
    """One step to do for a task, and where it stands (`Topic` and `State` in outbox.states)."""

    id = AutoField()
    topic = TextField()
    task_id = TextField(null=True)
    generation = IntegerField()
    host = TextField(default="")  # of a fetch; followed by a space and the proxy where the task has its own
    queue = TextField()
    priority = IntegerField()
    rank = IntegerField(null=True)  # generated from queue and priority: 1..4 urgent, 11..14 default
    payload = TextField(null=True)  # what a report says, as a JSON object
    state = TextField()
    due_at = IntegerField()
    attempts = IntegerField(default=0)
    alone = IntegerField(default=0)  # flag: the process that held it died, so it is claimed in isolation
    lease_token = TextField(null=True)  # the id of the holder and the number of its claim
    lease_until = IntegerField(null=True)
    message_id = TextField(null=True)  # the last message that led to a claim
    reason = TextField(null=True)
    fingerprint = TextField(null=True)  # the same for the same error on many rows
    created_at = IntegerField()
    finished_at = IntegerField(null=True)
    parcel_key = TextField(null=True)  # the parcel of an upload: uploads of one parcel keep their order
    blame = IntegerField(default=0)  # how often it failed while others went through
    seen_successes = IntegerField(null=True)  # Breaker.successes when it last failed
    raw_id = IntegerField(null=True)  # the row of the source page's raw file, which must be acknowledged first
    due_by = IntegerField(null=True)  # until when its task is to be done (outbox.rows.deadline_order)

    class Meta:
        table_name = "outbox"


class Attempt(Base):
    """A failed try of a step."""

    id = AutoField()
    outbox_id = IntegerField()
    task_id = TextField()
    topic = TextField()
    at = TextField()
    reason = TextField()
    error = TextField()

    class Meta:
        table_name = "attempts"


class Host(Base):
    """A site, and when it may be asked again."""

    host = TextField(primary_key=True)
    delay = FloatField(null=True)  # seconds between two requests, as the platform asks; NULL: as the settings say
    concurrency = IntegerField(null=True)  # open requests; NULL: as the settings say
    next_allowed_at = IntegerField(default=0)
    cooling_until = IntegerField(default=0)
    failures_in_a_row = IntegerField(default=0)
    failing_since = IntegerField(null=True)
    reason = TextField(null=True)  # why it is cooling
    robots_delay = FloatField(null=True)  # seconds, as robots.txt asks: the longer of the two applies
    served = IntegerField(default=0)  # successful fetches, ever
    failed = IntegerField(default=0)
    flow_width = IntegerField(null=True)  # flows that may be open at a time; NULL: its pages are reached by one GET
    requests = FloatField(null=True)  # that a parcel costs there, a moving average; NULL: one
    operator_delay = FloatField(null=True)  # seconds, as an operator says: counts before the platform's word
    operator_concurrency = IntegerField(null=True)
    over_robots = IntegerField(default=0)  # flag: the operator's delay counts before that of robots.txt, too
    paused_at = IntegerField(null=True)  # since when an operator has paused it
    ended = IntegerField(default=0)  # fetches that ended, well or not; tries are served + failed

    class Meta:
        table_name = "hosts"
        without_rowid = True


class HostPace(Base):
    """The pace that a site really keeps, seen while there was work for it (maintenance.paces)."""

    site = TextField(primary_key=True)
    at = IntegerField()  # when it was last looked at; the next three are as of then
    tries = IntegerField()
    ended = IntegerField()
    was_busy = IntegerField()  # flag: work was due
    ms_per_try = FloatField(null=True)  # a moving average, as is the next
    tries_per_task = FloatField(null=True)
    seen = FloatField(default=0)  # of how many tries they are made

    class Meta:
        table_name = "host_paces"
        without_rowid = True


class Session(Base):
    """A session at a site, used by one flow at a time: the fetch row that has it, while that row is leased."""

    platform = TextField()
    route = TextField()  # the host, and the proxy by which it is reached
    number = IntegerField()
    secret = TextField(null=True)  # cookies and captured values as a JSON object; NULL: still to be opened
    made_by = TextField(null=True)  # a hash of the flow that opened it: another one does not use it
    opened_at = IntegerField(null=True)
    ends_at = IntegerField(null=True)
    row_id = IntegerField(null=True)
    token = TextField(null=True)

    class Meta:
        table_name = "sessions"
        primary_key = CompositeKey("platform", "route", "number")
        without_rowid = True


class UnsafePost(Base):
    """A POST that must not be sent twice, noted before it was sent."""

    task_id = TextField(primary_key=True)
    generation = IntegerField()
    step = TextField()
    at = IntegerField()

    class Meta:
        table_name = "unsafe_posts"
        without_rowid = True


class Breaker(Base):
    """Whether calls to an endpoint of the Gateway go out."""

    endpoint = TextField(primary_key=True)
    is_open = IntegerField(default=0)  # flag
    is_probing = IntegerField(default=0)  # flag
    retry_at = IntegerField(default=0)  # when the next probe may go out, or when this one counts as lost
    failures = IntegerField(default=0)  # in a row
    successes = IntegerField(default=0)  # ever
    recent_tries = FloatField(default=0)  # first tries of rows, with older ones fading: how lossy the connection is
    recent_failures = FloatField(default=0)
    kind = TextField(null=True)
    words = TextField(null=True)
    since = TextField(null=True)
    last_calls = TextField(default="")  # one letter per call, the newest last
    last_call_at = IntegerField(default=0)

    class Meta:
        table_name = "breakers"
        without_rowid = True


class DeliveredParcel(Base):
    """The newest result of a parcel that the Gateway has; an older one is never sent after it."""

    parcel_key = TextField(primary_key=True)
    task_id = TextField()
    fetched_at = TextField()
    generation = IntegerField()

    class Meta:
        table_name = "delivered_parcels"
        without_rowid = True


class Pause(Base):
    """Why a lane is paused."""

    lane = TextField()  # intake, fetch or upload
    cause = TextField()
    since = TextField()
    words = TextField()

    class Meta:
        table_name = "pauses"
        primary_key = CompositeKey("lane", "cause")
        without_rowid = True


class PausedCounty(Base):
    """A county that an operator has paused: its fetches are held."""

    state = TextField()  # without case, as is the county
    county = TextField()
    since = TextField()

    class Meta:
        table_name = "paused_counties"
        primary_key = CompositeKey("state", "county")
        without_rowid = True


class Worker(Base):
    """A process that may hold leases (outbox.leases.WorkerLease)."""

    holder = TextField(primary_key=True)
    kind = TextField()
    pid = IntegerField()
    slots = IntegerField()  # batches that it works on at once
    beat = IntegerField(default=0)  # counts up while the process lives
    started_at = TextField()
    seen_at = TextField()  # for people; leases depend on the beat

    class Meta:
        table_name = "workers"
        without_rowid = True


class Turn(Base):
    """Which process does what only one process may do at a time."""

    name = TextField(primary_key=True)
    holder = TextField()
    taken_at = TextField()

    class Meta:
        table_name = "turns"
        without_rowid = True
