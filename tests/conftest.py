"""What all tests share: a data folder of their own, and the demo county on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lienworker.db import database
from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.node import Node

#: The same examples each time, and no verdict on how long one took: the suite says the same twice, on any machine.
#: `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the developer's own shell or `.env` reaches a test."""
    import os

    for name in list(os.environ):
        if name.startswith(("LIENWORKER_", "GATEWAY_")) or name in {"REDIS_URL", "STANDALONE", "WORKER_ID"}:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _close_database() -> Iterator[None]:
    yield
    database.close()


@pytest.fixture
def site() -> Iterator[DemoSite]:
    with demo_site(slow_seconds=1.0) as running:
        yield running


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A data folder with everything that may run on it; nothing is left over afterwards."""
    here = Node(tmp_path / "data")
    yield here
    leftover = here.processes()
    here.kill_everything()
    assert not leftover, f"left over: {leftover}"
