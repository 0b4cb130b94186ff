"""A worker, a county and a Gateway, all real and all on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from tests.harness.in_process import Desk, desk
from tests.harness.node import Node


@pytest.fixture
def gateway() -> Iterator[ReferenceGateway]:
    with reference_gateway() as running:
        # The real one asks for 30 s. A strict one, so that no worker comes to rely on what it should not send.
        running.configure(retry_without_tasks=1, strict=True)
        yield running


@pytest.fixture
def worker(node: Node, gateway: ReferenceGateway) -> Node:
    """The node with the Gateway configured, and less patience than in real life."""
    node.settings |= {
        "GATEWAY_URL": gateway.url,
        "GATEWAY_TOKEN": gateway.token,
        "LIENWORKER_GATEWAY_RETRY": "0.3",
        "LIENWORKER_HEARTBEAT": "2",
    }
    return node


def gateway_tasks(site: DemoSite, n: int, start: int = 1) -> list[dict[str, Any]]:
    """Tasks as the Gateway hands them out."""
    return [
        {
            "task_id": f"task-{number}",
            "type": "scrape",
            "platform": row["platform"],
            "target": {name: row[name] for name in ("parcel_id", "state", "county", "url")},
            "priority": 1 + number % 4,
            "created_at": "2026-11-01T00:00:00Z",
        }
        for number, row in enumerate(site.parcels(n, start), start)
    ]


@pytest.fixture
def here(tmp_path: Path, gateway: ReferenceGateway) -> Iterator[Desk]:
    """A worker's hands in this process."""
    with desk(tmp_path / "data", gateway) as opened:
        yield opened
