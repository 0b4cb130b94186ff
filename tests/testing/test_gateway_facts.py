"""What is known about the real Gateway, fact by fact, in the order of its description: the reference has each of them.

A row is a fact in words and the shortest proof of it. What has many cases is looked into further in the other files.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from lienworker.testing.gateway import reference_gateway
from tests.harness.gateway_calls import Caller, Reply, item, items, task

Proof = Callable[[Caller], None]
FACTS: dict[str, Proof] = {}
BEAT = {"active_tasks": 1, "platforms": ["demo"], "cpu_percent": 1.5, "memory_percent": 2.5}


def fact(words: str) -> Callable[[Proof], Proof]:
    def add(proof: Proof) -> Proof:
        assert words not in FACTS
        FACTS[words] = proof
        return proof

    return add


def other(call: Caller, worker_id: str = "worker-2") -> Caller:
    return Caller(call.gateway, worker_id)


def close(call: Caller, segment: str, verb: str = "complete") -> Reply:
    return call.post(f"/internal/tasks/{segment}/{verb}", {})


def booked(call: Caller) -> dict[str, dict[str, int]]:
    return call.gateway.state.bookings


def take(call: Caller, *task_ids: str) -> None:
    """Queue tasks and hand them out to this worker."""
    call.gateway.enqueue(*(task(n, task_id=task_id) for n, task_id in enumerate(task_ids)))
    handed = call.work(*["demo"] * len(task_ids), capacity=100)["tasks"]
    assert len(handed) == len(task_ids)


def ids(reply: Any) -> list[str]:
    return [one["task_id"] for one in reply["tasks"] or []]


# Common


@fact("every internal call carries the token; a bearer token does not work")
def _(call: Caller) -> None:
    bearer = {"Authorization": f"Bearer {call.gateway.token}", "X-Worker-ID": "worker-1"}
    assert call.raw("GET", "/internal/work", headers=bearer).status == 401
    assert call.get("/internal/work").status == 200


@fact("no trailing slashes")
def _(call: Caller) -> None:
    assert call.get("/internal/work/").status == 404


@fact("tasks are booked under X-Worker-ID")
def _(call: Caller) -> None:
    take(call, "t-1")
    assert booked(call) == {"worker-1": {"t-1": 1}}


@fact("a 401 is JSON, most other errors are text, a 405 is empty")
def _(call: Caller) -> None:
    assert set(call.raw("GET", "/internal/work").json["error"]) == {"code", "message"}
    assert call.get("/internal/nothing").text
    assert call.get("/internal/results").body == b""


@fact("an unknown path under /internal without a token is 401, not 404")
def _(call: Caller) -> None:
    assert call.raw("GET", "/internal/nothing").status == 401


@fact("a rate limited deployment answers 429 with Retry-After and X-RateLimit-Reset")
def _(call: Caller) -> None:
    call.gateway.configure(rate_limit=0, rate_window=30)
    reply = call.get("/internal/work")
    assert reply.status == 429
    assert {"Retry-After", "X-RateLimit-Reset"} <= set(reply.headers)


@fact("/health says 200 when database and queue are down")
def _(call: Caller) -> None:
    call.gateway.fault("database_down")
    call.gateway.fault("redis_down")
    assert call.raw("GET", "/health").json == {"app": "gateway", "status": "healthy"}


@fact("gzip bodies are refused with 400")
def _(call: Caller) -> None:
    packed = gzip.compress(json.dumps(items(1)).encode())
    assert call.post("/internal/results", text=packed, **{"Content-Encoding": "gzip"}).status == 400


# Work


@fact("retry_after is 5 with tasks and 30 without; tasks may be null")
def _(call: Caller) -> None:
    call.gateway.enqueue(task(1))
    assert call.work("demo")["retry_after"] == 5
    assert call.work("demo") == {"tasks": None, "retry_after": 30}


@fact("a missing created_at comes as year 0001, a missing url stays missing")
def _(call: Caller) -> None:
    call.gateway.enqueue(task(1, created_at=None, target={"parcel_id": "P", "state": "FL", "county": "C"}))
    (handed,) = call.work("demo")["tasks"]
    assert handed["created_at"].startswith("0001-")
    assert "url" not in handed["target"]


@fact("one task per platform and priority comes back per call, whatever the capacity")
def _(call: Caller) -> None:
    call.gateway.enqueue(*(task(n) for n in range(3)))
    assert [len(ids(call.work("demo", capacity=100))) for _ in range(4)] == [1, 1, 1, 0]


@fact("platforms are repeated parameters, case sensitive; a,b is one unknown name")
def _(call: Caller) -> None:
    call.gateway.enqueue(task(1, "a"), task(2, "b"))
    assert ids(call.work("a,b")) == ids(call.work("A")) == []
    assert ids(call.work("a", "b")) == ["t-1", "t-2"]


@fact("capacity 0, negative or unreadable means 10, over 100 means 100")
def _(call: Caller) -> None:
    call.gateway.enqueue(*(task(n) for n in range(300)))
    taken = [len(ids(call.work(*["demo"] * 150, capacity=asked))) for asked in (0, -1, "x", 101)]
    assert taken == [10, 10, 10, 100]


@fact("a task is never handed out again, not after a lost reply, not after a restart")
def _(call: Caller) -> None:
    call.gateway.enqueue(task(1))
    call.gateway.fault("lost_reply", count=1)
    with pytest.raises(ConnectionError):
        call.work("demo")
    call.gateway.stop_listening()
    call.gateway.start_listening()
    assert call.work("demo")["tasks"] is None
    assert booked(call) == {"worker-1": {"t-1": 1}}


# Raw files


@fact("raw files land in one flat folder, by base name without .., cut at 200 bytes, the same name overwrites")
def _(call: Caller) -> None:
    call.upload("a/../x..y.gz", b"1")
    other(call).upload("xy.gz", b"22")
    call.upload("n" * 300, b"333")
    assert call.gateway.state.stored["raw_files"] == {"xy.gz": 2, "n" * 200: 3}


@fact("a 200 for a raw file may be a failure")
def _(call: Caller) -> None:
    call.gateway.fault("database_down")
    assert call.upload("x.gz", b"1").json["status"] == "error"


# Results


@fact("partial failure is a 200 that names parcels and no tasks")
def _(call: Caller) -> None:
    call.gateway.fault("parcels", names=["P-1"])
    reply = call.post("/internal/results", items(3)).json
    assert (reply["inserted"], reply["failed"]) == (2, 1)
    assert reply["errors"][0].startswith("P-1: ")


@fact("after the 11th failure the rest is skipped in silence")
def _(call: Caller) -> None:
    call.gateway.fault("parcels", names=[f"P-{n}" for n in range(11)])
    reply = call.post("/internal/results", items(20)).json
    assert (reply["inserted"], reply["updated"], reply["failed"]) == (0, 0, 11)


@fact("one wrongly typed item rejects the whole batch with 400 and no detail")
def _(call: Caller) -> None:
    for change in ({"parcel_id": 7}, {"data": []}, {"parse_duration_ms": 12.0}, {"data": {"x": float("nan")}}):
        assert call.post("/internal/results", [item(), item(**change)]).text == "invalid JSON\n"
    assert not call.gateway.state.results


@fact("its database down: 200 with everything failed")
def _(call: Caller) -> None:
    call.gateway.fault("database_down")
    assert call.post("/internal/results", items(3)).json["failed"] == 3


@fact("scraped_at without a zone is 400 for the whole batch")
def _(call: Caller) -> None:
    assert call.post("/internal/results", [item(), item(scraped_at="2026-01-02T03:04:05")]).status == 400


@fact("keys have limits in characters, NUL in data fails, integers over 2^53 lose precision")
def _(call: Caller) -> None:
    for name, limit in {"state": 8, "platform": 64, "parcel_id": 255, "county": 255}.items():
        assert call.post("/internal/results", [item(**{name: "x" * (limit + 1)})]).json["failed"] == 1
    assert call.post("/internal/results", [item(data={"a": "\0"})]).json["failed"] == 1
    call.post("/internal/results", [item(data={"n": 2**53 + 1})])
    assert call.gateway.state.stored["results"][0]["data"] == {"n": 2**53}


@fact("storing is an upsert on four keys; an older resend overwrites a newer result")
def _(call: Caller) -> None:
    for moment in ("2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z"):
        reply = call.post("/internal/results", [item(scraped_at=moment)]).json
    assert reply["updated"] == 1
    assert call.gateway.state.stored["results"][0]["scraped_at"] == "2026-01-01T00:00:00Z"


@fact("submitting a result closes its task; a time-out may leave part of a batch stored")
def _(call: Caller) -> None:
    take(call, "task-P-0", "task-P-1")
    call.gateway.fault("lost_reply", endpoint="results", items=1)
    with pytest.raises(ConnectionError):
        call.post("/internal/results", items(2))
    assert booked(call) == {"worker-1": {"task-P-1": 1}}


# Closing tasks and heartbeats


@fact("success is false for an unknown task, a closed one and another worker's; never a 404")
def _(call: Caller) -> None:
    take(call, "t-1", "t-2")
    assert close(other(call), "t-1").json == {"success": False}
    assert close(call, "t-1").json == {"success": True}
    assert close(call, "t-1", "fail").json == {"status": "reported", "success": False}
    assert close(call, "unknown").json == {"success": False}


@fact("fail drops the task for good")
def _(call: Caller) -> None:
    take(call, "t-1")
    assert close(call, "t-1", "fail").json == {"status": "reported", "success": True}
    assert call.work("demo")["tasks"] is None


@fact("a task id with a slash cannot be closed by URL")
def _(call: Caller) -> None:
    take(call, "a/b")
    assert close(call, "a/b").status == 404
    assert close(call, "a%2Fb").json == {"success": False}


@fact("extra fields of a heartbeat are accepted, a float for active_tasks is 400")
def _(call: Caller) -> None:
    assert call.post("/internal/heartbeat", {**BEAT, "queue_depth": {"pending": 1}}).json["acknowledged"] is True
    assert call.post("/internal/heartbeat", {**BEAT, "active_tasks": 1.0}).status == 400


@fact("a worker unseen for 300 s counts as gone")
def _(call: Caller) -> None:
    now = [1000.0]
    with reference_gateway(clock=lambda: now[0]) as gateway:
        Caller(gateway).post("/internal/heartbeat", BEAT)
        now[0] += 301
        assert gateway.state.workers["worker-1"]["gone"] is True


# Seen when the worker ran against the real one


@fact("a path is matched on its raw form: fl%3A1 is not fl:1")
def _(call: Caller) -> None:
    for character in ":@+=&,;$":
        task_id = f"a{character}1"
        take(call, task_id)
        assert close(call, f"a%{ord(character):02X}1").json == {"success": False}
        assert close(call, task_id).json == {"success": True}


@fact("what Go escapes in a path must be escaped, and all of it")
def _(call: Caller) -> None:
    take(call, "a b!?", "ü#")
    assert close(call, "a%20b!%3F").json == {"success": False}
    assert close(call, "a%20b%21%3F").json == {"success": True}
    assert close(call, "%c3%bc%23").json == {"success": False}
    assert close(call, "%C3%BC%23").json == {"success": True}


@fact("an empty id is 200 with success false")
def _(call: Caller) -> None:
    assert close(call, "").json == {"success": False}


@fact("all priorities of the first platform named come first, then the next")
def _(call: Caller) -> None:
    call.gateway.enqueue(*(task(n, "ab"[n // 4], 4 - n % 4) for n in range(8)))
    assert ids(call.work("b", "a", capacity=6)) == ["t-7", "t-6", "t-5", "t-4", "t-3", "t-2"]


@fact("a platform named n times gives up to n tasks of each of its queues")
def _(call: Caller) -> None:
    call.gateway.enqueue(*(task(n, priority=1 + n % 2) for n in range(10)))
    assert ids(call.work("demo", "demo", "demo", capacity=100)) == ["t-0", "t-1", "t-2", "t-3", "t-4", "t-5"]


@fact("without platforms it picks beacon, qpublic, floridatax")
def _(call: Caller) -> None:
    names = ("floridatax", "demo", "qpublic", "beacon")
    call.gateway.enqueue(*(task(n, name) for n, name in enumerate(names)))
    assert [one["platform"] for one in call.work()["tasks"]] == ["beacon", "qpublic", "floridatax"]


@fact("it drops proxy and unknown target keys")
def _(call: Caller) -> None:
    known = task(1)
    call.gateway.enqueue({**known, "proxy": {"host": "p"}, "target": {**known["target"], "lot": 7}})
    assert call.work("demo")["tasks"] == [known]


@fact("a poisoned entry gives one 500, loses the tasks popped before it, and is gone then")
def _(call: Caller) -> None:
    call.gateway.enqueue(task(1, priority=1), {"poison": True, "platform": "demo", "priority": 2}, task(3, priority=3))
    reply = call.get("/internal/work?platforms=demo")
    assert (reply.status, bool(reply.text)) == (500, True)
    assert ids(call.work("demo")) == ["t-3"]
    assert booked(call) == {"worker-1": {"t-1": 1, "t-3": 1}}
    assert call.work("demo")["tasks"] is None


@fact("results close only this worker's bookings")
def _(call: Caller) -> None:
    take(call, "task-P-1")
    assert other(call).post("/internal/results", [item("P-1")]).json["inserted"] == 1
    assert booked(call) == {"worker-1": {"task-P-1": 1}}
    call.post("/internal/results", [item("P-1")])
    assert booked(call) == {}


@fact("a task that is handed out twice is booked twice, and each closing takes one booking away")
def _(call: Caller) -> None:
    take(call, "t-1", "t-1")
    assert [close(call, "t-1").json["success"] for _ in range(3)] == [True, True, False]


@fact("closing costs time in proportion to the worker's bookings")
def _(call: Caller) -> None:
    call.gateway.configure(booking_seconds=0.1)
    take(call, *(f"t-{n}" for n in range(4)))
    started = time.monotonic()
    close(other(call), "t-0")
    close(call, "t-0")
    assert time.monotonic() - started >= 0.4
    call.post("/internal/results", [item(task_id="t-1"), item(task_id="t-2")])
    assert time.monotonic() - started >= 0.4 + 0.3 + 0.2


@fact("its Redis down: results get 200 and are stored, their tasks stay booked")
def _(call: Caller) -> None:
    take(call, "task-P-1")
    call.gateway.fault("redis_down")
    assert call.post("/internal/results", [item("P-1")]).json["inserted"] == 1
    assert booked(call) == {"worker-1": {"task-P-1": 1}}
    assert (call.get("/internal/work").status, close(call, "task-P-1").status) == (500, 500)


@fact("not stored: task id, duration, hash, metadata, queue depths")
def _(call: Caller) -> None:
    call.upload("x.gz", b"page", '{"task_id": "secret"}')
    call.post("/internal/results", [item(raw_html_hash="secret", task_id="secret", parse_duration_ms=987)])
    call.post("/internal/heartbeat", {**BEAT, "queue_depth": {"secret": 1}})
    stored = call.gateway.state.stored
    assert not {"secret", "987"} & set(json.dumps(stored).replace('"', " ").replace(",", " ").split())
    assert set(stored["results"][0]) == {"parcel_id", "platform", "state", "county", "data", "scraped_at"}


@fact("stored of a heartbeat: last seen, active tasks, platforms, cpu, memory; commands are null")
def _(call: Caller) -> None:
    assert call.post("/internal/heartbeat", BEAT).json == {"acknowledged": True, "commands": None}
    known = call.gateway.state.stored["workers"]["worker-1"]
    assert BEAT.items() <= known.items()
    assert known["last_seen"]


@fact("accepted: a raw file without or with broken metadata")
def _(call: Caller) -> None:
    assert [call.upload("x.gz", b"1", text).status for text in (None, "", "{broken")] == [200, 200, 200]


@fact("accepted: no X-Worker-ID; the worker is unknown")
def _(call: Caller) -> None:
    call.gateway.enqueue(task(1))
    token = {"X-Worker-Token": call.gateway.token}
    assert call.raw("GET", "/internal/work?platforms=demo", headers=token).status == 200
    assert booked(call) == {"unknown": {"t-1": 1}}


@fact("accepted: any token of its list")
def _(call: Caller) -> None:
    call.gateway.configure(other_tokens=["second"])
    assert call.get("/internal/work", **{"X-Worker-Token": "second"}).status == 200
    assert call.get("/internal/work", **{"X-Worker-Token": "third"}).status == 401


@fact("accepted: scraped_at missing, null, with another offset or a comma")
def _(call: Caller) -> None:
    missing = {name: value for name, value in item("missing").items() if name != "scraped_at"}
    given = [item("null", scraped_at=None), item("offset", scraped_at="2026-01-02T03:04:05-05:00")]
    comma = item("comma", scraped_at="2026-01-02T03:04:05,5Z")
    assert call.post("/internal/results", [missing, *given, comma]).json["inserted"] == 4
    times = {row["parcel_id"]: row["scraped_at"] for row in call.gateway.state.stored["results"]}
    assert times["missing"] == times["null"] == "0001-01-01T00:00:00Z"


@fact("accepted: empty objects, null items, empty keys")
def _(call: Caller) -> None:
    assert call.post("/internal/results", text=b"[{}]").json["inserted"] == 1
    assert call.post("/internal/results", text=b"[null]").json["updated"] == 1
    assert list(call.gateway.state.results) == [("", "", "", "")]


@fact("accepted: text after the JSON, field names in any case")
def _(call: Caller) -> None:
    shouted = {name.upper(): value for name, value in item("P-2").items()}
    body = json.dumps([item("P-1"), shouted]) + "] and so on"
    assert call.post("/internal/results", text=body.encode()).json["inserted"] == 2
    assert [row["parcel_id"] for row in call.gateway.state.stored["results"]] == ["P-1", "P-2"]


@fact("accepted: data nested 500 deep")
def _(call: Caller) -> None:
    deep = '{"a":' * 500 + '"end"' + "}" * 500
    body = json.dumps([item(data={})]).replace('"data": {}', f'"data": {deep}')
    assert call.post("/internal/results", text=body.encode()).json["inserted"] == 1


@fact("refused: an empty file name")
def _(call: Caller) -> None:
    assert call.upload("", b"1").status == 400
    assert not call.gateway.state.raw_files


@fact("names .. and . and blank become raw_<time>; backslashes stay; blanks at the ends are cut")
def _(call: Caller) -> None:
    for name in ("..", ".", "  "):
        assert call.upload(name, b"1").json["path"].startswith("raw/raw_1")
    assert call.upload("a\\b.gz", b"1").json["path"] == "raw/a\\b.gz"
    assert call.upload(" x.gz ", b"1").json["path"] == "raw/x.gz"


@fact("errors of raw files are JSON; a bad body says invalid JSON")
def _(call: Caller) -> None:
    call.gateway.fault("raw_file", names="cursed")
    for reply in (call.upload(None, b""), call.upload("cursed", b"1"), call.post("/internal/raw-files", {})):
        assert set(reply.json["error"]) == {"code", "message"}
    for path in ("/internal/results", "/internal/heartbeat"):
        assert call.post(path, text=b"{broken").text == "invalid JSON\n"


@fact("a missing and a wrong token have different messages")
def _(call: Caller) -> None:
    wrong, missing = call.get("/internal/work", **{"X-Worker-Token": "wrong"}), call.raw("GET", "/internal/work")
    assert wrong.json["error"]["message"] != missing.json["error"]["message"]


@fact("X-Request-Id is on every reply, and taken over from the request")
def _(call: Caller) -> None:
    for path in ("/health", "/metrics", "/nowhere", "/internal/nothing", "/internal/work", "/internal/results"):
        assert call.get(path).headers["X-Request-Id"]
        assert call.raw("GET", path).headers["X-Request-Id"]
        assert call.get(path, **{"X-Request-ID": "ours"}).headers["X-Request-Id"] == "ours"
    assert call.gateway.state.requests[-1].request_id == "ours"


@fact("/metrics needs no token; an unknown path outside /internal is 404 without one")
def _(call: Caller) -> None:
    assert call.raw("GET", "/metrics").status == 200
    assert call.raw("GET", "/somewhere/else").status == 404


@pytest.mark.parametrize("words", FACTS)
def test_the_reference_gateway_behaves_as_the_real_one(call: Caller, words: str) -> None:
    FACTS[words](call)
