"""The control routes: what the demo and other people's workers use from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import InputError
from lienworker.testing.gateway import read_tasks
from lienworker.testing.gateway.control import _from_here
from tests.harness.gateway_calls import Caller, item, items, task


def _control(call: Caller, method: str, path: str, value: Any = None) -> Any:
    reply = call.raw(method, f"/_control/{path}", None if value is None else json.dumps(value).encode())
    assert reply.status == 200, reply.body
    return reply.json


def test_tasks_faults_commands_and_settings_are_taken_without_a_token(call: Caller) -> None:
    assert _control(call, "POST", "tasks", [task(1), task(2)])["task_ids"] == ["t-1", "t-2"]
    assert _control(call, "POST", "tasks", {"poison": True, "platform": "demo"}) == {"task_ids": [""]}
    _control(call, "POST", "settings", {"retry_without_tasks": 1, "sends_commands": True})
    assert call.work("other")["retry_after"] == 1
    _control(call, "POST", "commands", {"commands": ["pause"]})
    assert call.post("/internal/heartbeat", {}).json["commands"] == ["pause"]


def test_faults_go_on_and_off_and_never_hit_the_control_routes(call: Caller) -> None:
    number = _control(call, "POST", "faults", {"kind": "503"})["id"]
    assert call.get("/health").status == 503
    assert [fault["kind"] for fault in _control(call, "GET", "faults")] == ["status"]
    _control(call, "DELETE", f"faults/{number}")
    assert call.get("/health").status == 200
    _control(call, "POST", "faults", {"kind": "down"})
    _control(call, "DELETE", "faults")
    assert _control(call, "GET", "faults") == []


def test_part_of_a_batch_is_stored_by_command(call: Caller) -> None:
    _control(call, "POST", "faults", {"kind": "lost_reply", "endpoint": "results", "items": 1, "count": 1})
    assert [(fault["items"], fault["left"]) for fault in _control(call, "GET", "faults")] == [(1, 1)]
    with pytest.raises(ConnectionError):
        call.post("/internal/results", items(3))
    assert [result["key"][0] for result in _control(call, "GET", "received/results")] == ["P-0"]
    assert _control(call, "GET", "received/requests")[-1]["stored_part"] == 1
    assert call.post("/internal/results", items(3)).json["inserted"] == 2


def test_everything_received_can_be_asked_for(call: Caller) -> None:
    call.gateway.enqueue(task(1))
    call.work("demo")
    call.upload("x.gz", b"page")
    call.post("/internal/results", [item("P-1", task_id="t-1")])
    call.post("/internal/heartbeat", {"active_tasks": 1})
    received = _control(call, "GET", "received")
    assert [(r["method"], r["path"], r["status"], r["worker_id"]) for r in received["requests"]] == [
        ("GET", "/internal/work", 200, "worker-1"),
        ("POST", "/internal/raw-files", 200, "worker-1"),
        ("POST", "/internal/results", 200, "worker-1"),
        ("POST", "/internal/heartbeat", 200, "worker-1"),
    ]
    assert received["results"][0]["key"] == ["P-1", "demo", "FL", "Juniper"]
    assert received["results"][0]["history"][0]["row"]["task_id"] == "t-1"
    assert received["raw_files"]["x.gz"]["size"] == 4
    assert received["tasks"]["t-1"]["state"] == "completed"
    assert received["bookings"] == {}
    assert received["heartbeats"][0]["body"] == {"active_tasks": 1}
    assert _control(call, "GET", "received/workers")["worker-1"]["gone"] is False
    assert call.raw("GET", "/_control/raw/x.gz").body == b"page"
    assert _control(call, "GET", "stored")["raw_files"] == {"x.gz": 4}


def test_a_raw_file_and_its_result_can_be_put_in_order(call: Caller) -> None:
    call.upload("x.gz", b"page")
    call.post("/internal/results", [item()])
    (version,) = call.gateway.state.history["P-1", "demo", "FL", "Juniper"]
    assert call.gateway.state.raw_files["x.gz"].seq < version.seq


def test_reset_forgets_everything(call: Caller) -> None:
    call.post("/internal/results", [item()])
    _control(call, "POST", "reset", {})
    assert not call.gateway.state.results
    assert not call.gateway.state.requests


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "faults", b'{"kind":"flood"}', 400),
        ("POST", "faults", b'{"kind":"hang","items":1}', 400),
        ("POST", "settings", b'{"colour":1}', 400),
        ("POST", "commands", b'{"commands":["pause"]}', 400),
        ("POST", "tasks", b"[1]", 400),
        ("POST", "nothing", b"{}", 404),
        ("GET", "nothing", None, 404),
        ("GET", "received/nothing", None, 400),
        ("DELETE", "faults/x", None, 400),
    ],
)
def test_wrong_commands_are_told_so(call: Caller, method: str, path: str, body: bytes | None, status: int) -> None:
    assert call.raw(method, f"/_control/{path}", body).status == status


@pytest.mark.parametrize(
    ("address", "here"), [("127.0.0.1", True), ("::1", True), ("10.0.0.5", False), (None, False), ("?", False)]
)
def test_control_is_for_loopback_only(address: str | None, here: bool) -> None:
    assert _from_here(address) is here


def test_tasks_files_may_be_lines_or_a_list(tmp_path: Path) -> None:
    lines, whole, bad = tmp_path / "a.jsonl", tmp_path / "b.json", tmp_path / "c.json"
    lines.write_text('{"platform":"demo"}\n\n{"platform":"demo"}\n')
    whole.write_text('[{"platform":"demo"}]')
    bad.write_text("[1]")
    assert (len(read_tasks(lines)), len(read_tasks(whole))) == (2, 1)
    for wrong in (bad, tmp_path / "missing"):
        with pytest.raises(InputError):
            read_tasks(wrong)


def test_serve_runs_in_the_foreground_until_told_to_stop(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps(task(1)) + "\n")
    program = (
        "import sys; from pathlib import Path; from lienworker.testing.gateway import read_tasks, serve;"
        "serve('127.0.0.1', 0, 'secret', Path(sys.argv[1]), read_tasks(Path(sys.argv[2])),"
        " on_ready=lambda u: print(u, flush=True))"
    )
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "data"), str(tasks)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        headers = {"X-Worker-Token": "secret", "X-Worker-ID": "w"}
        request = urllib.request.Request(f"{url}/internal/work?platforms=demo", headers=headers)
        with urllib.request.urlopen(request, timeout=5) as reply:
            assert len(json.load(reply)["tasks"]) == 1
        assert (tmp_path / "data" / "raw").is_dir()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
