"""What all models share, and the schema's own versions."""

from __future__ import annotations

from peewee import IntegerField, Model, TextField

from lienworker.store.database import database


class Base(Model):
    class Meta:
        database = database


class SchemaVersion(Base):
    """A migration that was applied to this file."""

    version = IntegerField(primary_key=True)
    name = TextField()
    applied_at = TextField()

    class Meta:
        table_name = "schema_versions"
