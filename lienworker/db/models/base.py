"""What all models share, and the schema's own versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peewee import BaseQuery, IntegerField, Model, TextField

from lienworker.db.database import database, dict_rows, execute


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


def dicts(query: BaseQuery) -> Iterator[dict[str, Any]]:
    """Return the rows of a query as dictionaries, one at a time: for listings and exports of any length.

    Peewee builds the statement; the values and their order are SQLite's own.
    """
    return dict_rows(*query.sql())


def tuples(query: BaseQuery) -> Iterator[Any]:
    """Return the rows of a query as tuples, one at a time."""
    return execute(*query.sql())
