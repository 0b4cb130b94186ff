"""The tables as Peewee models: what each row is, and what each field means.

Queries for people and for reports are written with these. Hot paths (claims, transitions, registration, the relay's
checks) use plain SQL: building a query object takes 50 to 100 µs, more than many of them take to run.

The migrations make the tables; a test compares every column of every table with the fields here.

Times are of two kinds. A field of type TEXT is RFC 3339 in UTC with milliseconds (`2026-01-31T08:00:00.000Z`), for
people and for the Gateway; a field of type INTEGER is milliseconds since 1970, for comparisons in hot queries. A minute
is minutes since 1970. What is 0 or 1 is a flag. Paths are relative to the data folder.
"""

from __future__ import annotations

from lienworker.db.models.base import Base, SchemaVersion, dicts, tuples
from lienworker.db.models.outbox import (
    Attempt,
    Breaker,
    DeliveredParcel,
    Host,
    HostPace,
    OutboxRow,
    Pause,
    PausedCounty,
    Session,
    Turn,
    UnsafePost,
    Worker,
)
from lienworker.db.models.records import (
    Action,
    Fact,
    FieldHistory,
    Import,
    ListColumn,
    PendingDelete,
    ResultColumn,
    Run,
    RunPage,
)
from lienworker.db.models.tallies import Backlog, Counter, FailedTasks, Rollup, SetAside, Tally, WaitingSince
from lienworker.db.models.work import Harvest, Page, Result, Task

__all__ = [
    "Action",
    "Attempt",
    "Backlog",
    "Base",
    "Breaker",
    "Counter",
    "DeliveredParcel",
    "Fact",
    "FailedTasks",
    "FieldHistory",
    "Harvest",
    "Host",
    "HostPace",
    "Import",
    "ListColumn",
    "OutboxRow",
    "Page",
    "Pause",
    "PausedCounty",
    "PendingDelete",
    "Result",
    "ResultColumn",
    "Rollup",
    "Run",
    "RunPage",
    "SchemaVersion",
    "Session",
    "SetAside",
    "Tally",
    "Task",
    "Turn",
    "UnsafePost",
    "WaitingSince",
    "Worker",
    "dicts",
    "tuples",
]
