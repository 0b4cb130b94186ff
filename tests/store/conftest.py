from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.store.database import close, open_store
from lienworker.store.folder import DataFolder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[DataFolder]:
    """An open store in an empty data folder."""
    yield open_store(tmp_path / "data")
    close()
