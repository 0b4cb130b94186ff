"""A page that a parser hangs in: its process ends, its neighbours lose nothing, and it fails with its reason."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, write_list

HANGING = """
from lienworker.platforms import Platform

class Hanging(Platform):
    name = "hanging"
    delay = 0.0
    concurrency = 32
    def parse(self, page, target):
        while True:
            pass

PLATFORM = Hanging()
"""
STUCK_IN_C = """
import re, threading, time
from lienworker.steps import watchdog
watchdog._STUCK_SECONDS, watchdog._LOOK_SECONDS = 1.0, 0.1
dog = watchdog.Watchdog()
looked = threading.Event()
wind_up = watchdog._wind_up
watchdog._wind_up = lambda seconds: (wind_up(seconds), looked.set())
dog.start(print)
looked.wait(30)
re.match("(a+)+$", "a" * 60 + "b")
"""


@pytest.mark.slow
def test_a_page_that_hangs_ends_its_worker_and_then_fails_alone_as_too_complex(
    node: Node, site: DemoSite, tmp_path: Path
) -> None:
    platforms = tmp_path / "platforms"
    platforms.mkdir()
    (platforms / "hanging.py").write_text(HANGING)
    parcels = site.parcels(40)
    parcels[20] |= {"platform": "hanging"}
    file = write_list(tmp_path / "parcels.jsonl", parcels)
    done = node.cli("run", file, timeout=170, LIENWORKER_PLATFORMS=str(platforms), LIENWORKER_PROCESSES="1")
    assert node.statuses() == {"completed": 39, "failed": 1}, done.stdout + done.stderr
    assert node.sql("SELECT reason FROM tasks WHERE status = 'failed'") == [("too_complex",)]
    # The worker was ended once; nobody but the guilty row has lost an attempt by it.
    assert node.sql("SELECT topic, reason, count(*) FROM attempts GROUP BY 1, 2 ORDER BY 2") == [
        ("scrape", "too_complex", 1),
        ("scrape", "worker_died", 1),
    ]
    node.doctor()


def test_a_process_that_is_stuck_inside_of_c_is_ended_by_the_kernel() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK_IN_C], timeout=120)
    assert done.returncode == -signal.SIGPROF
