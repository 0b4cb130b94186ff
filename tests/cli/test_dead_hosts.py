"""A run with sites that never answer: it says whom it waits for, stops waiting, and blames the right ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, write_list

pytestmark = pytest.mark.slow
#: Ports of this machine that nobody listens on.
DEAD = ("127.0.0.1:1", "127.0.0.1:9")


def test_a_run_waits_for_dead_hosts_no_longer_than_a_person_would(node: Node, site: DemoSite, tmp_path: Path) -> None:
    rows = [*site.parcels(3), *({"url": f"http://{host}/{k}"} for host in DEAD for k in range(5))]
    node.settings |= {"LIENWORKER_RUN_GIVE_UP": "0.3", "LIENWORKER_FETCH_ATTEMPTS": "50"}
    done = node.cli("run", write_list(tmp_path / "parcels.jsonl", rows))

    assert done.returncode == 1, done.stderr
    assert "3 completed, 10 failed" in done.stdout
    for host in DEAD:
        assert re.search(rf"5  host_down: {host} has not answered once in 18 seconds \(connect\w+\)", done.stdout)
    assert re.search(r"silent since \d\d:\d\d UTC, given up at \d\d:\d\d UTC", done.stderr), done.stderr
