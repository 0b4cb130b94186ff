"""The monitor as a part of the stack."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lienworker.data_folder import DataFolder
from lienworker.parent_watch import LIFELINE_FD
from lienworker.settings import Settings
from lienworker.stack.parts import Choice, parts_of
from tests.harness.node import Node, wait_until
from tests.web.monitor import Monitor, free_port


def names(settings: Settings, *, with_web: bool = False) -> list[str]:
    return [part.name for part in parts_of(settings, DataFolder(Path("data")), Choice(with_web=with_web))]


def test_the_monitor_is_a_part_only_where_it_is_wanted() -> None:
    assert "web" not in names(Settings())
    assert names(Settings(), with_web=True)[-1] == "web"
    assert "web" not in names(Settings(web_port=0), with_web=True)


def test_one_that_never_listened_does_not_say_so_when_it_stops(node: Node) -> None:
    reader, writer = os.pipe()
    surroundings = node.environment(**{LIFELINE_FD: str(reader), "LIENWORKER_WEB_HOST": "nope.invalid"})
    command = [sys.executable, "-m", "lienworker", "web", "--port", str(free_port())]
    part = subprocess.Popen(command, env=surroundings, pass_fds=(reader,), stderr=subprocess.PIPE, text=True)
    assert part.stderr is not None
    wait_until(lambda: "cannot listen" in part.stderr.readline(), what="it to say that it waits")
    os.close(writer)
    _, rest = part.communicate(timeout=60)
    os.close(reader)
    assert "listens" not in rest


@pytest.mark.slow
def test_it_waits_for_a_taken_port_and_ends_with_its_supervisor(node: Node) -> None:
    reader, writer = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [sys.executable, "-m", "lienworker", "web", "--port", str(port)]
        surroundings = node.environment(**{LIFELINE_FD: str(reader)})
        part = subprocess.Popen(command, env=surroundings, pass_fds=(reader,), stderr=subprocess.PIPE, text=True)
        assert part.stderr is not None
        wait_until(lambda: "cannot listen" in part.stderr.readline(), what="it to say that it waits")
    wait_until(Monitor(port).is_there, what="it to take over")
    os.close(writer)
    assert part.wait(60) == 0
    part.stderr.close()
    os.close(reader)
