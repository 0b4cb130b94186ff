"""Peewee's view of the tables is the tables."""

from __future__ import annotations

import pytest

from lienworker.store import models
from lienworker.store.database import all_rows
from lienworker.store.folder import DataFolder

_MODELS = [model for model in vars(models).values() if isinstance(model, type) and issubclass(model, models.Base)]
_MODELS.remove(models.Base)


@pytest.mark.parametrize("model", _MODELS, ids=lambda model: model.__name__)
def test_a_model_has_exactly_the_columns_of_its_table(folder: DataFolder, model: type[models.Base]) -> None:
    meta = model._meta  # type: ignore[attr-defined]
    table = {
        name: (bool(key), not (required or key or generated))
        for _, name, _, required, _, key, generated in all_rows(f"PRAGMA table_xinfo({meta.table_name})")
    }
    described = {field.column_name: (field.primary_key, field.null) for field in meta.sorted_fields}

    assert table, "the table is there"
    assert described == table
