from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.node import Node
from tests.web.monitor import Monitor, monitor
from tests.web.seed import seed

ONDEMAND = {"GATEWAY_URL": "http://127.0.0.1:9", "GATEWAY_TOKEN": "t"}


@pytest.fixture
def seeded(node: Node) -> Node:
    """A folder with a completed, a failed and a parked task, run on-demand (its Gateway is away)."""
    seed(node.data)
    node.settings |= ONDEMAND
    return node


@pytest.fixture
def here(seeded: Node) -> Iterator[Monitor]:
    with monitor(seeded) as running:
        yield running
