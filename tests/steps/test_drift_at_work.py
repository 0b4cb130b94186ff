"""A county that changes its pages while a real stack works on it."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.harness.node import Node, write_list
from tests.harness.shelf import DEFINITION, page


class Handler(BaseHTTPRequestHandler):
    """Marsh moves its owners after page 60; Dune stays as it is."""

    def do_GET(self) -> None:
        county, _, n = self.path.strip("/").partition("/")
        self.send_response(200 if n else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page(int(n or 0), "holder" if county == "marsh" and int(n) >= 60 else "owner").encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_job_ends_though_one_of_its_counties_is_kept_back(node: Node, tmp_path: Path, port: int) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "quarry.toml").write_text(DEFINITION.format(owner="#owner", version="1"))
    node.settings |= {"LIENWORKER_PLATFORMS": str(mine), "LIENWORKER_PROCESSES": "1", "LIENWORKER_BATCH": "4"}
    node.settings |= {"LIENWORKER_HOST_DELAY": "0.02", "LIENWORKER_HOST_CONCURRENCY": "4"}
    rows = [
        {"url": f"http://127.0.0.1:{port}/{county.lower()}/{n}", "platform": "quarry", "state": "XX", "county": county}
        for n in range(200)
        for county in ("Marsh", "Dune")
    ]
    done = node.cli("run", write_list(tmp_path / "parcels.jsonl", rows))

    held = node.sql("SELECT count(*) FROM outbox WHERE topic = 'fetch' AND reason = 'drift'")[0][0]
    assert held > 50, done.stderr
    assert done.returncode == 1
    statuses = dict(node.sql("SELECT county || ' ' || status, count(*) FROM tasks GROUP BY 1"))
    assert statuses["Dune completed"] == 200
    assert statuses["Marsh pending"] == held
    assert "Marsh XX is paused" in node.cli("status").stdout

    (mine / "quarry.toml").write_text(DEFINITION.format(owner="#owner, #holder", version="2"))
    assert node.json("reparse")["healed"] == ["quarry, Marsh XX"]
    assert node.cli("run", str(tmp_path / "parcels.jsonl")).returncode == 0
    assert node.sql("SELECT count(*) FROM results WHERE json_extract(data, '$.owner_name') IS NOT NULL") == [(400,)]
    node.doctor()
