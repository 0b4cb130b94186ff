from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import close, open_store


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[DataFolder]:
    """An open store in an empty data folder."""
    yield open_store(tmp_path / "data")
    close()
