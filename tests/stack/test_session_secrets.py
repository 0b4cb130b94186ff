"""Cookies and tokens of the county sites' sessions are in no log, file, page, backup or process list."""

from __future__ import annotations

import gzip
import tarfile
import threading
from pathlib import Path

import pytest

from lienworker.testing.gateway import reference_gateway
from lienworker.testing.sites import SITES
from tests.harness.node import Node, interrupt, wait_until, write_list
from tests.harness.session_sites import served
from tests.stack.test_secrets import TOKEN, dump, everything_said
from tests.web.monitor import monitor

pytestmark = pytest.mark.slow

#: After how many parcels a session ends; a day of auctions needs more of it than a parcel.
_ENDS = {"webforms": 5, "guest": 5, "service": 5, "auction": 20}


@pytest.mark.parametrize("kind", SITES)
def test_no_cookie_and_no_token_of_a_session_is_shown_anywhere(kind: str, tmp_path: Path) -> None:
    with reference_gateway(TOKEN) as gateway, served(kind, tmp_path, _ENDS[kind]) as (site, node):
        gateway.configure(retry_without_tasks=1)
        node.settings |= {
            "GATEWAY_URL": gateway.url,
            "GATEWAY_TOKEN": TOKEN,
            "LIENWORKER_GATEWAY_RETRY": "0.2",
            "LIENWORKER_LOG_LEVEL": "debug",
        }
        rows = site.work(12)
        done = node.cli("import", write_list(tmp_path / "list.jsonl", rows))
        assert done.returncode == 0, done.stderr
        process = node.start("up")
        log: list[str] = []
        reader = threading.Thread(target=lambda: log.extend(process.stdout or []))
        reader.start()
        wait_until(lambda: node.statuses() == {"completed": len(rows)}, 120)
        said = everything_said(node) + _command_lines(node) + _monitor(node)
        interrupt(process)
        process.wait(timeout=60)
        reader.join(60)
        traced = node.cli("scrape", "--platform", site.name, "--trace", *_asked(rows[0]))
        said += "".join(log) + dump(node, tmp_path) + traced.stdout + traced.stderr + _backup(node, tmp_path)
        said += repr([raw.metadata for raw in gateway.state.raw_uploads]) + repr(list(gateway.state.results.values()))
    assert len(log) > 50
    for path in [*node.data.rglob("*"), *tmp_path.glob("*.html"), *tmp_path.glob("*.json")]:
        if path.is_file() and "lienworker.db" not in path.name:
            said += _text_of(path)
    assert len(site.secrets) > 1
    assert node.sql("SELECT count(*) FROM sessions WHERE secret IS NOT NULL") == [(1,)]
    for secret in site.secrets:
        at = said.find(secret)
        assert at < 0, said[max(0, at - 300) : at + 50]


def _asked(row: dict[str, str]) -> list[str]:
    words = [("--parcel-id", row["parcel_id"])] if "parcel_id" in row else []
    words += [("--target", f"{name}={row[name]}") for name in ("account", "auction_date") if name in row]
    return [text for word in words for text in word]


def _command_lines(node: Node) -> str:
    return repr([process.cmdline() for process in node.processes()])


def _monitor(node: Node) -> str:
    """Return every page of the monitor that shows tasks, pages or hosts."""
    tasks = [task_id for (task_id,) in node.sql("SELECT task_id FROM tasks LIMIT 3")]
    with monitor(node) as opened:
        paths = ["/", "/tasks", "/outbox", "/counties", "/results", "/audit", *(f"/tasks/{task}" for task in tasks)]
        replies = [opened.ask(path) for path in paths]
    assert any(reply.status == 200 for reply in replies)
    return "".join(reply.text for reply in replies)


def _backup(node: Node, tmp_path: Path) -> str:
    """Return what `backup` says, and the list of what is in it."""
    done = node.cli("backup", str(tmp_path / "b.tar"))
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "b.tar") as archive:
        return done.stdout + done.stderr + repr([(item.name, item.pax_headers) for item in archive])


def _text_of(path: Path) -> str:
    body = path.read_bytes()
    return (gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body).decode("utf-8", "replace")
