"""Secrets are in no output, no log, no export and no table but the one column that needs them."""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from lienworker.cli import cli as lienworker
from lienworker.db.database import close
from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from tests.harness.node import Node, interrupt, wait_until
from tests.harness.on_demand import gateway_tasks
from tests.harness.session_site import MISSING, session_site

pytestmark = pytest.mark.slow

TOKEN = "tok-9f8e7d6c5b4a"
PASSWORD = "pw-1a2b3c4d5e"
OWN_PASSWORD = "own-6f7e8d9c0b"


def everything_said(node: Node) -> str:
    """What an operator can make the program say."""
    commands = [
        ["status"], ["status", "--json"], ["doctor", "--json"], ["tasks", "list", "--json"], ["tasks", "list"],
        *(["tasks", "show", task_id, *form] for (task_id,) in node.sql("SELECT task_id FROM tasks")
          for form in ([], ["--json"])),
        ["results", "export", "--format", "json"], ["results", "export", "--format", "csv"],
        ["outbox", "status", "--json"], ["outbox", "list", "--json"], ["gateway", "check"], ["analyze", "--json"],
        *(["outbox", "show", str(row_id), "--json"] for (row_id,) in node.sql("SELECT max(id) FROM outbox")),
        ["outbox", "replay"],
    ]  # fmt: skip
    said = [CliRunner().invoke(lienworker, command, env=node.environment()).output for command in commands]
    close()
    return "\n".join(said)


def dump(node: Node, tmp_path: Path) -> str:
    """The whole database as text, without the proxies and the sessions."""
    with sqlite3.connect(node.data / "lienworker.db") as source, sqlite3.connect(tmp_path / "copy.db") as copy:
        source.backup(copy)
        copy.execute("UPDATE tasks SET proxy = NULL")
        copy.execute("DELETE FROM sessions")
        copy.commit()
        return "\n".join(copy.iterdump())


def test_neither_the_token_nor_a_proxys_password_is_shown_anywhere(node: Node, site: DemoSite, tmp_path: Path) -> None:
    with reference_gateway(TOKEN) as gateway:
        gateway.configure(retry_without_tasks=1)
        node.settings |= {
            "GATEWAY_URL": gateway.url,
            "GATEWAY_TOKEN": TOKEN,
            "LIENWORKER_GATEWAY_RETRY": "0.2",
            "LIENWORKER_TASK_EXPIRY": "80000",
            "LIENWORKER_FETCH_ATTEMPTS": "1",
            "LIENWORKER_LOG_LEVEL": "debug",
        }
        _enqueue(gateway, site)
        process = node.start("up")
        assert process.stdout
        log: list[str] = []
        reader = threading.Thread(target=lambda: log.extend(process.stdout or []))  # a full pipe would stop the stack
        reader.start()
        wait_until(lambda: len(gateway.state.results) == 1)
        wait_until(lambda: sum(record.state == "failed" for record in gateway.state.tasks.values()) == 4)
        gateway.fault("401")
        queued = node.cli("scrape", "--queue-only", site.parcels(1, start=70)[0]["url"])
        assert queued.returncode == 0, queued.stderr
        wait_until(lambda: node.statuses().get("completed") == 2)
        said = everything_said(node)
        interrupt(process)
        process.wait(timeout=60)
        reader.join(60)
        assert len(log) > 100
        said += "".join(log) + dump(node, tmp_path)
        said += repr([record.error for record in gateway.state.tasks.values()])
        said += repr([raw.metadata for raw in gateway.state.raw_uploads])
        said += repr([beat.body for beat in gateway.state.heartbeats])
    for path in node.data.rglob("*"):
        if path.is_file() and "lienworker.db" not in path.name:
            said += path.read_bytes().decode("utf-8", "replace")
    for secret in (TOKEN, PASSWORD, OWN_PASSWORD):
        at = said.find(secret)
        assert at < 0, said[max(0, at - 300) : at + 50]
    assert node.sql("SELECT count(*) FROM tasks WHERE proxy LIKE ?", f"%{PASSWORD}%") == [(3,)]


def _enqueue(gateway: ReferenceGateway, site: DemoSite) -> None:
    tasks = gateway_tasks(site, 5)
    proxies = (
        f"http://user:{PASSWORD}@127.0.0.1:9",
        {"host": "127.0.0.1", "port": 9, "username": "user", "password": PASSWORD},
        f"socks5://user:{PASSWORD}@127.0.0.1:9",
        f"nonsense://user:{PASSWORD}@[::1/",
    )
    for task, proxy in zip(tasks, proxies, strict=False):
        task["proxy"] = proxy
        task["target"]["proxy"] = proxy
    # As they are: the Gateway of today would drop the proxies.
    gateway.enqueue(*({"verbatim": task, "platform": "demo", "priority": task.get("priority", 3)} for task in tasks))


def test_the_proxy_of_the_settings_is_not_shown_either(node: Node, site: DemoSite, tmp_path: Path) -> None:
    node.settings |= {"LIENWORKER_PROXY": f"http://me:{OWN_PASSWORD}@127.0.0.1:9", "LIENWORKER_LOG_LEVEL": "debug"}
    done = node.cli("scrape", site.parcels(1)[0]["url"])
    assert done.returncode == 1
    said = done.stdout + done.stderr + everything_said(node) + dump(node, tmp_path)
    assert OWN_PASSWORD not in said
    wrong = node.cli("status", LIENWORKER_PROXY=f"ftp://me:{OWN_PASSWORD}@127.0.0.1:9")
    assert wrong.returncode == 2
    assert OWN_PASSWORD not in wrong.stdout + wrong.stderr


def test_nothing_of_a_session_is_shown_anywhere(node: Node, tmp_path: Path) -> None:
    """Neither its cookie nor a hidden field: not in a log, a listing, an export, a backup, a file or a command line."""
    platforms = node.data.parent / "platforms"
    platforms.mkdir(mode=0o700, exist_ok=True)
    with session_site(lasts=2) as county:
        (platforms / "sessioned.toml").write_text(county.definition())
        node.settings |= {"LIENWORKER_LOG_LEVEL": "debug", "LIENWORKER_PLATFORMS": str(platforms)}
        rows = [county.row(f"06-{n}") for n in range(6)] + [county.row(MISSING)]
        county.broken["/detail"] = 1
        done = node.cli("run", "-", stdin="".join(json.dumps(row) + "\n" for row in rows))
        assert node.statuses() == {"completed": 6, "failed": 1}, done.stderr
        secrets = county.secrets
    assert any("session-" in secret for secret in secrets)
    kept = node.sql("SELECT secret FROM sessions WHERE secret IS NOT NULL")
    assert any(secret in kept[0][0] for secret in secrets), "the session is not stored at all"
    backup = tmp_path / "backup.tar"
    assert node.cli("backup", str(backup)).returncode == 0
    said = done.stdout + done.stderr + everything_said(node) + dump(node, tmp_path)
    said += backup.read_bytes().decode("utf-8", "replace")
    for path in node.data.rglob("*"):
        if path.is_file() and "lienworker.db" not in path.name:
            content = path.read_bytes()
            said += (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8", "replace")
    for secret in secrets:
        at = said.find(secret)
        assert at < 0, said[max(0, at - 300) : at + 50]
