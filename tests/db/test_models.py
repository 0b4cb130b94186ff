"""Peewee's view of the tables is the tables: every one of them, and every column."""

from __future__ import annotations

from typing import Any

from lienworker.data_folder import DataFolder
from lienworker.db import models
from lienworker.db.database import all_rows, one_row

_MODELS: list[Any] = [model for model in vars(models).values() if isinstance(model, type) and model is not models.Base]
_META = [model._meta for model in _MODELS]
_TYPES: dict[str, str] = {"AUTO": "INTEGER", "INT": "INTEGER", "FLOAT": "REAL"}


def test_every_table_has_one_model_and_every_model_a_table(folder: DataFolder) -> None:
    tables = [name for (name,) in all_rows("SELECT name FROM sqlite_master WHERE type = 'table'")]

    assert sorted(meta.table_name for meta in _META) == sorted(
        name for name in tables if not name.startswith("sqlite_")
    )


def test_models_have_the_columns_of_their_tables(folder: DataFolder) -> None:
    """Names in their order, types, what may be NULL, and defaults."""
    for meta in _META:
        described = [
            (field.column_name, _TYPES.get(field.field_type, field.field_type), field.null, field.default)
            for field in meta.sorted_fields
        ]
        assert described == _columns_of(meta.table_name), meta.table_name


def _columns_of(table: str) -> list[tuple[str, str, bool, Any]]:
    # A key is never NULL, though SQLite does not say so of a row id.
    return [
        (name, kind, not required and not key, None if default is None else one_row(f"SELECT {default}")[0])
        for _, name, kind, required, default, key, _ in all_rows(f"PRAGMA table_xinfo({table})")
    ]


def test_models_have_the_keys_of_their_tables(folder: DataFolder) -> None:
    for meta in _META:
        columns = all_rows(f"PRAGMA table_xinfo({meta.table_name})")
        key = [row[1] for row in sorted(columns, key=lambda row: row[5]) if row[5]]
        (without_rowid,) = one_row("SELECT wr FROM pragma_table_list WHERE name = ?", (meta.table_name,))

        assert [field.column_name for field in meta.get_primary_keys()] == key, meta.table_name
        assert bool(meta.without_rowid) == bool(without_rowid), meta.table_name


def test_every_model_can_be_asked(folder: DataFolder) -> None:
    for model in _MODELS:
        assert model is models.SchemaVersion or list(models.dicts(model.select())) == []
