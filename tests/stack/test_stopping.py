"""A stop while work is taken: the Gateway hands a task out once, so what it handed out must be in the store."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.db.database import close, open_store
from lienworker.settings import Settings
from lienworker.stack import supervisor
from lienworker.stack.parts import Part
from lienworker.stack.redis_server import server_program
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.node import Node, interrupt, wait_until

pytestmark = pytest.mark.slow

#: So long a reply is in the air, s: most of the time one is, whenever the signal comes.
IN_THE_AIR = 0.3


@pytest.fixture
def taking(worker: Node, gateway: ReferenceGateway) -> Node:
    """A node that does nothing but take work, of which there is always more."""
    worker.settings |= {"LIENWORKER_MAX_WAITING": "100000", "LIENWORKER_TASK_EXPIRY": "50000"}
    worker.settings["LIENWORKER_LOG_LEVEL"] = "warning"  # nobody reads its log
    open_store(worker.data)
    close()
    assert worker.cli("pause", "--fetch").returncode == 0
    place = {"state": "XX", "county": "Juniper"}
    gateway.enqueue(
        *(
            {"task_id": f"t{n}", "platform": "demo", "priority": 1 + n % 4, "parcel_id": f"p{n}"}
            | place
            | {"url": f"http://127.0.0.1:9/p/{n}"}
            for n in range(4000)
        )
    )
    gateway.fault("slow", endpoint="work", seconds=IN_THE_AIR)
    return worker


def polls(gateway: ReferenceGateway) -> int:
    return len(gateway.state.calls("work"))


def handed_out(gateway: ReferenceGateway) -> set[str]:
    return {task_id for task_id, record in gateway.state.tasks.items() if record.times_handed_out}


def stored(node: Node) -> set[str]:
    return {task_id for (task_id,) in node.sql("SELECT task_id FROM tasks")}


def start_taking(node: Node, gateway: ReferenceGateway) -> subprocess.Popen[str]:
    before = polls(gateway)
    process = node.start("up")
    wait_until(lambda: polls(gateway) >= before + 3, what="polls")
    return process


def test_ten_double_interrupts_while_work_is_taken_lose_nothing(taking: Node, gateway: ReferenceGateway) -> None:
    for n in range(10):
        process = start_taking(taking, gateway)
        time.sleep(n * IN_THE_AIR / 10)  # at another moment of a poll each time
        interrupt(process)
        time.sleep(n * 0.1)  # the second one soon or late: it finds workers that stop, or that do not know yet
        interrupt(process)
        process.communicate(timeout=60)
        assert process.returncode in (0, 130)
        wait_until(lambda: not taking.processes(), what="the stack to be gone")
        assert handed_out(gateway) - stored(taking) == set()
    assert len(handed_out(gateway)) > 100


def test_a_stop_waits_for_a_reply_that_takes_long(taking: Node, gateway: ReferenceGateway) -> None:
    process = start_taking(taking, gateway)
    gateway.clear_faults()
    gateway.fault("slow", endpoint="work", seconds=12)
    before = polls(gateway)
    wait_until(lambda: polls(gateway) > before, what="a poll that takes long")
    interrupt(process)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output
    assert handed_out(gateway) == stored(taking)


@pytest.fixture
def by_hand(taking: Node, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`dramatiq lienworker.actors`, with a Redis of its own."""
    socket = tmp_path / "own.sock"
    redis = subprocess.Popen([server_program(), "--port", "0", "--unixsocket", str(socket), "--save", ""])
    workers = subprocess.Popen(
        [Path(sysconfig.get_path("scripts")) / "dramatiq", "lienworker.actors"],
        env=taking.environment(REDIS_URL=f"unix://{socket}"),
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    yield workers
    workers.kill()
    workers.wait(timeout=60)
    redis.terminate()
    redis.wait(timeout=60)


@pytest.mark.alone
def test_no_poll_leaves_after_the_signal(
    taking: Node, gateway: ReferenceGateway, by_hand: subprocess.Popen[bytes]
) -> None:
    gateway.clear_faults()
    gateway.fault("slow", endpoint="work", seconds=0.03)  # so that many would leave until Dramatiq looks
    wait_until(lambda: polls(gateway) >= 3, what="polls")
    by_hand.terminate()
    before = polls(gateway)
    by_hand.wait(timeout=60)
    assert polls(gateway) <= before + 3, "the signal has two processes to go through"
    assert handed_out(gateway) == stored(taking)


def test_two_signals_store_what_they_find_in_the_air(
    taking: Node, gateway: ReferenceGateway, by_hand: subprocess.Popen[bytes]
) -> None:
    wait_until(lambda: polls(gateway) >= 3, what="polls")
    by_hand.terminate()
    time.sleep(IN_THE_AIR / 4)  # two that come together are one
    by_hand.terminate()
    by_hand.wait(timeout=60)
    assert handed_out(gateway) == stored(taking)


#: Parts that end at nothing less than a SIGKILL: a master whose worker takes a moment, and a server.
_WORKER = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(1); print('the last words')"
_MASTER = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.run([sys.executable, "-c", *sys.argv[1:]])
time.sleep(300)
"""
_SERVER = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").close()
time.sleep(300)
"""


def test_a_stop_waits_for_the_workers_but_not_for_their_master_or_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, listening = tmp_path / "begun", tmp_path / "listening"
    parts = [
        Part("redis", [sys.executable, "-c", _SERVER, str(listening)], listening),
        Part("workers", [sys.executable, "-c", _MASTER, _WORKER, str(begun)], begun),
    ]
    monkeypatch.setattr(supervisor, "parts_of", lambda *_: parts)
    with (tmp_path / "log").open("wb") as log:
        stack = supervisor.Supervisor(Settings(), open_store(tmp_path / "data"), log)
        stack.start()
        began = time.monotonic()
        stack.stop()
    assert time.monotonic() - began < 9, "less than the patience with either"
    assert (tmp_path / "log").read_text() == "the last words\n"
    assert not any(child.is_alive for child in stack.children)
    assert not listening.exists()
