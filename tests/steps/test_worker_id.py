"""The Gateway books tasks by the worker's name: another one leaves them booked, and that is said with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.db.database import open_store
from lienworker.steps.runtime import warn_of_new_worker_id
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import desk


def test_a_new_worker_id_is_told_once_with_the_command_that_moves_the_bookings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_store(tmp_path / "data")
    for worker_id in ("one", "one", "the other", "the other"):
        warn_of_new_worker_id(worker_id)
    (line,) = [record.message for record in caplog.records if "WORKER_ID" in record.message]
    assert "WORKER_ID was one and is the other now" in line
    assert "redis-cli RENAMENX processing:one 'processing:the other'" in line


def test_it_is_told_when_a_worker_starts(
    tmp_path: Path, gateway: ReferenceGateway, caplog: pytest.LogCaptureFixture
) -> None:
    for worker_id in ("one", "other"):
        with desk(tmp_path / "data", gateway, WORKER_ID=worker_id):
            pass
    assert [record for record in caplog.records if "WORKER_ID was one and is other now" in record.message]
