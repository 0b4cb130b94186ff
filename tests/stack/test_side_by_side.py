"""Slow pages and slow parsers beside quick ones, in one process: nobody is held up."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.harness.node import PATIENCE, Node, wait_until, write_list

pytestmark = pytest.mark.slow

#: Longer than a message of the fetch lane goes on by itself.
_LATE_SECONDS = 11.0
#: A platform whose parser hangs in one page until a file is there, or for so long that the test has failed by then.
_HANGING = """
import os
import time

from lienworker.platforms.core.base import Page, Platform, Record, Target


class Marsh(Platform):
    name = "marsh"

    def parse(self, page: Page, target: Target) -> Record:
        patience = time.monotonic() + 60
        while "stuck" in page.url and not os.path.exists(os.environ["MAY_END"]) and time.monotonic() < patience:
            time.sleep(0.02)
        return {"parcel_id": target.parcel_id, "owner_name": "OTTER"}


PLATFORM = Marsh()
"""


class Handler(BaseHTTPRequestHandler):
    was_asked, may_end = Event(), Event()

    def do_GET(self) -> None:
        self.was_asked.set()
        if "late" in self.path:
            self.may_end.wait(60)
        self.send_response(404 if "robots" in self.path else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<p>{self.path}</p>".encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    """Two sites, each on an address of its own."""
    Handler.was_asked.clear()
    Handler.may_end.clear()
    with ExitStack() as stack:
        sites = {}
        for address in ("127.0.0.1", "127.0.0.2"):
            server = stack.enter_context(ThreadingHTTPServer((address, 0), Handler))
            Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            sites[address] = server.server_port
        yield sites


@pytest.fixture
def marsh(node: Node, tmp_path: Path) -> Node:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "marsh.py").write_text(_HANGING)
    node.settings |= {"LIENWORKER_PLATFORMS": str(mine), "LIENWORKER_PROCESSES": "1", "LIENWORKER_BATCH": "2"}
    node.settings |= {"LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.0/8", "LIENWORKER_HOST_DELAY": "0.05"}
    return node


def _rows(site: str, names: list[str]) -> list[dict[str, str]]:
    about = {"platform": "marsh", "state": "XX", "county": "Marsh"}
    return [{"url": f"http://{site}/{name}", "parcel_id": name, **about} for name in names]


def _has(run: subprocess.Popen[str], node: Node, results: int) -> bool:
    """Whether so many are done by now, or there is nothing more to wait for."""
    if not Handler.was_asked.is_set():
        return run.poll() is not None
    return bool(node.sql("SELECT count(*) >= ? FROM results", results)[0][0]) or run.poll() is not None


def _done_before(node: Node, name: str) -> int:
    sql = "SELECT count(*) FROM results WHERE scraped_at < (SELECT scraped_at FROM results WHERE parcel_id = ?)"
    return int(node.sql(sql, name)[0][0])


def test_a_parser_that_hangs_in_a_page_holds_up_nobody(marsh: Node, ports: dict[str, int], tmp_path: Path) -> None:
    names = ["stuck", *(f"quick-{n}" for n in range(40))]
    file = write_list(tmp_path / "parcels.jsonl", _rows(f"127.0.0.1:{ports['127.0.0.1']}", names))

    run = marsh.start("run", file, MAY_END=str(tmp_path / "may end"))
    wait_until(lambda: _has(run, marsh, 25))
    (tmp_path / "may end").touch()
    said, _ = run.communicate(timeout=PATIENCE)

    assert "41 completed" in said, said
    assert _done_before(marsh, "stuck") >= 25  # its neighbour of the same pair waits, the others do not


def test_a_page_that_comes_late_keeps_no_pump_from_other_hosts(
    marsh: Node, ports: dict[str, int], tmp_path: Path
) -> None:
    marsh.settings |= {"LIENWORKER_THREADS": "5"}  # one pump
    late = _rows(f"127.0.0.2:{ports['127.0.0.2']}", ["late"])
    quick = _rows(f"127.0.0.1:{ports['127.0.0.1']}", [f"quick-{n}" for n in range(120)])

    run = marsh.start("run", write_list(tmp_path / "parcels.jsonl", late + quick))
    late_enough = time.monotonic() + _LATE_SECONDS
    wait_until(lambda: _has(run, marsh, 100) and time.monotonic() > late_enough)
    Handler.may_end.set()
    said, _ = run.communicate(timeout=PATIENCE)

    assert "121 completed" in said, said
    assert _done_before(marsh, "late") >= 100
