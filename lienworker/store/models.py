"""Peewee's view of the tables, for queries that people ask (listings, filters). Hot paths use plain SQL.

The tables themselves are made by the migrations; a test compares the two.
"""

from __future__ import annotations

import peewee

from lienworker.store.database import database


class Base(peewee.Model):
    class Meta:
        database = database


class Task(Base):
    task_id = peewee.TextField(primary_key=True)
    source = peewee.TextField()
    platform = peewee.TextField(null=True)
    state = peewee.TextField(null=True)
    county = peewee.TextField(null=True)
    parcel_id = peewee.TextField(null=True)
    url = peewee.TextField(null=True)
    target_json = peewee.TextField()
    queue = peewee.TextField()
    priority = peewee.IntegerField()
    status = peewee.TextField()
    generation = peewee.IntegerField()
    attempts = peewee.IntegerField()
    reason = peewee.TextField(null=True)
    last_error = peewee.TextField(null=True)
    import_id = peewee.IntegerField(null=True)
    created_at = peewee.TextField()
    received_at = peewee.TextField()
    updated_at = peewee.TextField()
    completed_at = peewee.TextField(null=True)
    expires_at = peewee.TextField(null=True)
    proxy = peewee.TextField(null=True)

    class Meta:
        table_name = "tasks"


class Result(Base):
    task_id = peewee.TextField(primary_key=True)
    generation = peewee.IntegerField()
    parcel_id = peewee.TextField(null=True)
    platform = peewee.TextField()
    state = peewee.TextField(null=True)
    county = peewee.TextField(null=True)
    data = peewee.TextField()
    json_path = peewee.TextField(null=True)
    html_path = peewee.TextField(null=True)
    raw_sha256 = peewee.TextField()
    fetched_at = peewee.TextField()
    confirmed_at = peewee.TextField(null=True)
    parser_version = peewee.TextField()
    scraped_at = peewee.TextField()
    parse_duration_ms = peewee.IntegerField()
    synced = peewee.IntegerField()
    sync_attempts = peewee.IntegerField()
    last_error = peewee.TextField(null=True)
    stays_here = peewee.IntegerField()

    class Meta:
        table_name = "results"


class OutboxRow(Base):
    id = peewee.AutoField()
    topic = peewee.TextField()
    task_id = peewee.TextField(null=True)
    generation = peewee.IntegerField()
    host = peewee.TextField()
    queue = peewee.TextField()
    priority = peewee.IntegerField()
    rank = peewee.IntegerField()
    payload = peewee.TextField(null=True)
    state = peewee.TextField()
    due_at = peewee.IntegerField()
    attempts = peewee.IntegerField()
    alone = peewee.IntegerField()
    lease_token = peewee.TextField(null=True)
    lease_until = peewee.IntegerField(null=True)
    message_id = peewee.TextField(null=True)
    reason = peewee.TextField(null=True)
    fingerprint = peewee.TextField(null=True)
    created_at = peewee.IntegerField()
    finished_at = peewee.IntegerField(null=True)
    parcel_key = peewee.TextField(null=True)
    blame = peewee.IntegerField()
    seen_successes = peewee.IntegerField(null=True)

    class Meta:
        table_name = "outbox"
