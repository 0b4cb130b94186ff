"""A log that nobody reads (a pager, a stopped terminal) stops the workers that write to it, and nobody else."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, interrupt, wait_until, write_list

pytestmark = pytest.mark.slow

_MANY = 900  # lines: several times what a pipe holds


def test_commands_go_on_beside_a_log_that_nobody_reads(node: Node, site: DemoSite, tmp_path: Path) -> None:
    stack = node.start("up", LIENWORKER_WEB_PORT="0")
    assert stack.stdout is not None
    wait_until(node.is_up)
    node.cli("import", write_list(tmp_path / "many.jsonl", site.parcels(_MANY)))
    wait_until(lambda: _stands_still(node), what="the pipe is full")
    began = time.monotonic()

    status = node.cli("status")
    more = node.cli("import", write_list(tmp_path / "more.jsonl", site.parcels(5, _MANY + 1)))

    assert status.returncode == 0, status.stderr
    assert more.returncode == 0, more.stderr
    assert time.monotonic() - began < 25  # whoever waits for the database gives up after 30 s
    assert node.statuses()["completed"] < _MANY, "the log was read after all: nothing is shown here"
    threading.Thread(target=stack.stdout.read, daemon=True).start()
    wait_until(lambda: node.statuses().get("completed") == _MANY + 5)
    interrupt(stack)
    assert stack.wait(60) == 0


def _stands_still(node: Node) -> bool:
    before = node.statuses().get("completed", 0)
    time.sleep(2)
    return 0 < before == node.statuses().get("completed", 0)
