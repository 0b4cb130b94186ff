"""Slow pages and slow parsers beside quick ones, in one process: nobody is held up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.node import Node, write_list

pytestmark = pytest.mark.slow

_SECONDS = 4.0
#: Longer than a message of the fetch lane goes on by itself.
_LATE_SECONDS = 11.0
#: A platform whose parser hangs in one page.
_HANGING = f"""
import time

from lienworker.platforms.base import Page, Platform, Record, Target


class Marsh(Platform):
    name = "marsh"

    def parse(self, page: Page, target: Target) -> Record:
        if "stuck" in page.url:
            time.sleep({_SECONDS})
        return {{"parcel_id": target.parcel_id, "owner_name": "OTTER"}}


PLATFORM = Marsh()
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if "late" in self.path:
            time.sleep(_LATE_SECONDS)
        self.send_response(404 if "robots" in self.path else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<p>{self.path}</p>".encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    """Two sites, each on an address of its own."""
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


def _done_before(node: Node, name: str) -> int:
    sql = "SELECT count(*) FROM results WHERE scraped_at < (SELECT scraped_at FROM results WHERE parcel_id = ?)"
    return int(node.sql(sql, name)[0][0])


def test_a_parser_that_hangs_in_a_page_holds_up_nobody(marsh: Node, ports: dict[str, int], tmp_path: Path) -> None:
    names = ["stuck", *(f"quick-{n}" for n in range(40))]
    file = write_list(tmp_path / "parcels.jsonl", _rows(f"127.0.0.1:{ports['127.0.0.1']}", names))

    done = marsh.cli("run", file)

    assert "41 completed" in done.stdout, done.stdout + done.stderr
    assert _done_before(marsh, "stuck") >= 25  # its neighbour of the same pair waits, the others do not


def test_a_page_that_comes_late_keeps_no_pump_from_other_hosts(
    marsh: Node, ports: dict[str, int], tmp_path: Path
) -> None:
    marsh.settings |= {"LIENWORKER_THREADS": "5"}  # one pump
    late = _rows(f"127.0.0.2:{ports['127.0.0.2']}", ["late"])
    quick = _rows(f"127.0.0.1:{ports['127.0.0.1']}", [f"quick-{n}" for n in range(120)])

    done = marsh.cli("run", write_list(tmp_path / "parcels.jsonl", late + quick))

    assert "121 completed" in done.stdout, done.stdout + done.stderr
    assert _done_before(marsh, "late") >= 100
