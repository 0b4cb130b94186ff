"""Standalone is silent: a plain listening socket in the Gateway's place sees not one connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.db.database import close, write
from lienworker.outbox.outcomes import report_failure
from lienworker.outbox.registration import register_in_transaction
from lienworker.store.tasks import NewTask
from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import reference_gateway
from tests.harness.in_process import desk
from tests.harness.node import Node, interrupt, wait_until, write_list

pytestmark = pytest.mark.slow


class Ear:
    """A socket that listens and counts."""

    def __init__(self) -> None:
        self.heard = 0
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.heard += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(60)


@pytest.fixture
def ear() -> Iterator[Ear]:
    listening = Ear()
    yield listening
    listening.close()


@pytest.fixture
def silent(node: Node, ear: Ear) -> Node:
    node.settings |= {
        "GATEWAY_URL": ear.url,
        "GATEWAY_TOKEN": "secret",
        "STANDALONE": "true",
        "LIENWORKER_HEARTBEAT": "1",
        "LIENWORKER_GATEWAY_RETRY": "0.1",
    }
    return node


def test_the_ear_hears(ear: Ear) -> None:
    socket.create_connection(("127.0.0.1", int(ear.url.rsplit(":", 1)[1]))).close()
    wait_until(lambda: ear.heard == 1)


def test_a_whole_run_is_silent(silent: Node, ear: Ear, site: DemoSite, tmp_path: Path) -> None:
    silent.settings |= {"STANDALONE": "", "GATEWAY_SYNC": "disabled"}
    done = silent.cli("run", write_list(tmp_path / "parcels.jsonl", site.parcels(10) + site.odd_parcels()[:1]))
    assert done.returncode == 1, done.stdout  # one does not exist
    assert silent.sql("SELECT DISTINCT state, reason FROM outbox WHERE topic LIKE 'upload%'") == [
        ("held", "standalone")
    ]
    for command in (["status"], ["doctor"], ["outbox", "status"], ["outbox", "replay", "--dry-run"], ["pause"]):
        silent.cli(*command)
    assert ear.heard == 0


def leave_rows_behind(node: Node, site: DemoSite) -> None:
    """What on-demand mode left: uploads that wait, a report that waits, tasks of the Gateway still to be scraped."""
    with reference_gateway() as gateway, desk(node.data, gateway) as here:
        here.add(4)
        new = [NewTask("gateway", row["url"], "demo", task_id=row["parcel_id"]) for row in site.parcels(2, start=50)]
        with write("test"):
            report_failure("p1", "why")
            register_in_transaction(new)
    close()


def test_a_stack_is_silent_also_about_what_on_demand_left_behind(silent: Node, ear: Ear, site: DemoSite) -> None:
    leave_rows_behind(silent, site)
    process = silent.start("up")
    wait_until(lambda: silent.statuses().get("completed") == 6)
    time.sleep(2.5)  # two heartbeats, twenty looks of the relay
    interrupt(process)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert ear.heard == 0
    waiting = silent.sql("SELECT topic, count(*) FROM outbox WHERE state = 'waiting' GROUP BY 1 ORDER BY 1")
    assert waiting == [("report_failure", 1), ("upload_raw", 4), ("upload_result", 4)]
    assert silent.sql("SELECT count(*) FROM outbox WHERE state = 'held'") == [(4,)]


def test_replay_is_the_one_command_that_calls_the_gateway(silent: Node, ear: Ear, site: DemoSite) -> None:
    leave_rows_behind(silent, site)
    silent.cli("gateway", "check")
    assert ear.heard == 0
    assert silent.cli("outbox", "replay").returncode == 1
    assert ear.heard > 0
