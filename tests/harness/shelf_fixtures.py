"""What the tests of parsers at work share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.shelf import Shelf, check_books, shelf_in


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with shelf_in(tmp_path) as made:
        yield made
        check_books()


@pytest.fixture
def ondemand_shelf(tmp_path: Path) -> Iterator[Shelf]:
    """The same where results may go to a Gateway (nothing is sent: no worker runs)."""
    with shelf_in(tmp_path, gateway_url="http://gateway.example", gateway_token="secret") as made:
        yield made
        check_books()
