"""A password in a task's address is for fetching, and for nobody's eyes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lienworker.cli import cli as lienworker
from lienworker.db.clock import rfc3339
from lienworker.db.database import close, execute, open_store, write
from lienworker.logs import JsonLines, Redactor
from lienworker.outbox.registration import register_task
from lienworker.settings import Settings
from lienworker.store import tasks
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import NewTask
from lienworker.text_safety import redacted, without_passwords
from tests.harness.node import Node
from tests.web.hostile_page import make_raw_page
from tests.web.monitor import monitor

PASSWORD = "pw-5f6e7d8c"
URL = f"http://clerk:{PASSWORD}@county.example/secret"
BAD, GOOD = "task-secret-bad", "task-secret-good"


@pytest.fixture
def guilty(seeded: Node) -> Node:
    """A folder whose tasks, errors, pages and results all repeat the password."""
    make_raw_page(seeded.data, "<p>plain</p>", BAD)
    open_store(seeded.data)
    place = {"platform": "demo", "state": "FL", "county": "Dixie"}
    register_task(NewTask("cli", URL, task_id=GOOD, parcel_id="8", **place))
    with write("test"):
        execute("UPDATE tasks SET url = ? WHERE task_id IN (?, ?)", (URL, BAD, GOOD))
        execute("UPDATE pages SET url = ? WHERE task_id = ?", (URL, BAD))
        tasks.mark_failed(BAD, "http_500", f"{URL} answered so")
        execute("UPDATE outbox SET payload = ? WHERE task_id = ?", (json.dumps({"url": URL}), BAD))
        row = execute("SELECT id FROM outbox WHERE task_id = ?", (BAD,)).fetchone()[0]
        execute(
            "INSERT INTO attempts (outbox_id, task_id, topic, at, reason, error) VALUES (?, ?, 'fetch', ?, 'x', ?)",
            (row, BAD, rfc3339(), f"{URL} answered so"),
        )
        data = {"owner_name": "OWNER", "source_url": URL, "links": [URL], "fields": {"Map": URL}}
        made = (GOOD, 1, "8", "demo", "FL", "Dixie", data, "pending/x.json", "raw/x", "0" * 64, rfc3339(), "demo/1")
        save_result(NewResult(*made, rfc3339(), 4))
        tasks.mark_completed(GOOD)
    close()
    return seeded


@pytest.mark.slow
def test_no_view_reply_or_download_of_the_monitor_shows_it(guilty: Node) -> None:
    (row,) = guilty.sql("SELECT id FROM outbox WHERE task_id = ?", BAD)[0]
    views = ["/", "/tasks", f"/tasks/{BAD}", f"/tasks/{GOOD}", "/results", "/outbox", f"/outbox/{row}", "/counties"]
    paths = [*views, *(f"/api{path}" for path in views[1:]), "/api/overview", f"/tasks/{BAD}/page"]
    paths += ["/county?platform=demo&state=FL&county=Dixie", "/results.csv", "/results.json", "/results.jsonl"]
    with monitor(guilty, LIENWORKER_LOG_LEVEL="debug") as here:
        for path in paths:
            reply = here.ask(path)
            assert reply.status == 200, path
            assert PASSWORD not in reply.text, path
        assert "***@county.example" in here.ask(f"/tasks/{BAD}").text
    assert PASSWORD not in here.output


def test_no_command_shows_it(guilty: Node, tmp_path: Path) -> None:
    (row,) = guilty.sql("SELECT id FROM outbox WHERE task_id = ?", BAD)[0]
    report = str(tmp_path / "report.html")
    commands = [
        ["status"], ["tasks", "list"], ["tasks", "show", BAD], ["tasks", "show", GOOD], ["results", "list"],
        ["results", "show", GOOD], ["outbox", "status"], ["outbox", "list"], ["outbox", "show", str(row)], ["analyze"],
        ["analyze", "--html", report],
    ]  # fmt: skip
    commands += [[*command, "--json"] for command in commands[:-1]]
    commands += [["results", "export", "--format", form] for form in ("csv", "json", "jsonl")]
    said = ""
    for command in commands:
        done = CliRunner().invoke(lienworker, command, env=guilty.environment())
        close()
        assert done.exit_code in {0, 1}, (command, done.output)
        assert PASSWORD not in done.output, command
        said += done.output
    assert "***@county.example" in said
    assert PASSWORD not in Path(report).read_text()
    assert guilty.sql("SELECT DISTINCT url FROM tasks WHERE task_id = ?", BAD) == [(URL,)], "fetching needs it"


def test_only_what_stands_before_the_at_sign_goes() -> None:
    assert without_passwords("see http://me:a@b@h.example/x?y=1 and a@b") == "see http://***@h.example/x?y=1 and a@b"
    assert without_passwords("socks5://token@proxy:1080") == "socks5://***@proxy:1080"
    assert without_passwords("https://h.example/mail/a@b.example") == "https://h.example/mail/a@b.example"
    assert redacted({"u": [URL, (URL, 3)]}) == {"u": [without_passwords(URL), (without_passwords(URL), 3)]}


@pytest.mark.parametrize("mark", ["'", '"', " ", "@", "'@\""])
def test_no_character_in_a_password_lets_it_be_seen(mark: str) -> None:
    """The Gateway may send any: only an import refuses addresses with a password."""
    url = f"http://clerk:pw{mark}5f6e@county.example/x"
    assert redacted({"url": url}) == {"url": "http://***@county.example/x"}


def test_an_apostrophe_in_a_password_ends_it_in_no_sentence() -> None:
    assert without_passwords("no reply from 'http://me:it's@h.example/x'") == "no reply from 'http://***@h.example/x'"
    assert without_passwords('{"u":"http://h.example","m":"a@b"}') == '{"u":"http://h.example","m":"a@b"}'


def test_no_field_of_a_log_line_has_a_password_or_the_monitors_token() -> None:
    import logging

    record = logging.LogRecord("x", logging.INFO, "", 0, "asked for http://h/?a=1&token=abc123", (), None)
    record.reason = URL
    line = JsonLines("web", Redactor(Settings())).format(record)
    assert PASSWORD not in line
    assert "abc123" not in line
