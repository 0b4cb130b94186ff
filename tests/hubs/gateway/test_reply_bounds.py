"""Replies of a Gateway that has gone mad: bounded in bytes, items, memory and time before anybody reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from lienworker.hubs.gateway.client import GatewayClient
from lienworker.hubs.gateway.outcomes import Accepted, Kind, Unavailable
from lienworker.hubs.gateway.wire import error_words, objects_in_array, parse_heartbeat, parse_raw, parse_results
from lienworker.hubs.gateway.work import MOST_TASKS, parse_task, parse_work, salvage_work
from tests.harness.gateway_calls import run, task
from tests.hubs.gateway.test_client_faults import CALLS, _http, saying

MB = 1_000_000
#: Bodies that are small on the wire and large in memory, or slow to read.
HOSTILE = {
    "zeros": '''b'{"tasks":[' + b"0," * 8_000_000 + b"0]}"''',
    "empty objects": '''b'{"tasks":[' + b"{}," * 5_300_000 + b"{}]}"''',
    "one task of lists": '''b'{"tasks":[{"task_id":"t","target":[' + b"[]," * 5_300_000 + b"[]]}]}"''',
    "one task of numbers": '''b'{"tasks":[{"task_id":"t","target":[' + b"1," * 8_000_000 + b"1]}]}"''',
    "keys": """b'{"tasks":[{"target":{' + b",".join(b'"%d":1' % n for n in range(990_000)) + b"}}]}" """,
    "brackets": """b'{"tasks":[' + b"[" * 16_000_000""",
    "backslashes": """b'{"tasks":[{"a":"' + bytes([92]) * 16_000_000""",
    "quotes": '''b'{"tasks":[' + b'"",' * 5_300_000 + b"0]}"''',
    "an emoji": """b'{"tasks":["' + bytes([240, 159, 152, 128]) + b"x" * 16_000_000 + b'"]}\'""",
    "angle brackets": """b"<html>" + b"<" * 16_000_000""",
    "scripts": """b"<html>" + b"<script" * 2_000_000""",
    "titles": """b"<html>" + b"<title" * 2_000_000""",
}
#: Asks once, in a process of its own: what it took at most, and how long the event loop stood still.
ASK = """
import asyncio, json, sys, time
from tests.harness.memory import peak_kb
from lienworker.hubs.gateway.client import GatewayClient, Timeouts
from lienworker.hubs.gateway.outcomes import Accepted
body = {body}
async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 {status} OK\\r\\nContent-Type: {kind}\\r\\n")
    writer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    stood, began = 0.0, time.process_time()
    async with GatewayClient(url, "t", "w", timeouts=Timeouts(work=300, results=300, heartbeat=300)) as client:
        asked = asyncio.ensure_future({call})
        while not asked.done():
            before = time.process_time()
            await asyncio.sleep(0.01)
            stood = max(stood, time.process_time() - before)
    outcome = asked.result()
    tasks = len(getattr(getattr(outcome, "reply", None), "tasks", ()))
    peak = peak_kb() / 1000
    print(json.dumps([peak, stood, time.process_time() - began, tasks, type(outcome).__name__]))
asyncio.run(main())
"""
CALLED = {
    "work": 'client.work(5, ["demo"])',
    "results": 'client.submit_results([{"task_id": "t"}])',
    "heartbeat": "client.heartbeat({})",
}


# The other replies are cut off at a megabyte or less, whatever is in them.
@pytest.mark.parametrize(
    ("call", "name"), [*(("work", name) for name in HOSTILE), ("results", "zeros"), ("heartbeat", "zeros")]
)
@pytest.mark.timeout(120)
def test_no_reply_under_16_mb_takes_much_memory_or_time(call: str, name: str) -> None:
    code = ASK.format(body=HOSTILE[name], status=200, kind="application/json", call=CALLED[call])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    peak, _stood, seconds, tasks, _ = json.loads(done.stdout)
    assert peak < 400
    assert seconds < 10
    assert tasks <= MOST_TASKS


@pytest.mark.parametrize("name", ["angle brackets", "scripts", "titles"])
@pytest.mark.parametrize("status", [200, 502])
@pytest.mark.timeout(120)
def test_an_error_page_is_told_in_a_moment_whatever_is_in_it(name: str, status: int) -> None:
    code = ASK.format(body=HOSTILE[name], status=status, kind="text/html", call=CALLED["work"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[1] < 2


def test_a_hundred_fat_tasks_are_all_kept() -> None:
    """Handed out once: a legal reply is never refused for its size."""
    fat = {"parcel_id": "P", "notes": ["x" * 10] * 5000, "blob": '[{\\",' * 10_000}
    body = json.dumps({"tasks": [task(n, target=fat) for n in range(100)], "retry_after": 5}).encode()
    assert 10 * MB < len(body) < 16 * MB
    with saying(_http("200 OK", body)) as url:
        outcome = run(ask(url))
    assert isinstance(outcome, Accepted)
    assert [read.task_id for read in outcome.reply.tasks] == [f"t-{n}" for n in range(100)]
    assert {read.target["blob"] for read in outcome.reply.tasks} == {fat["blob"]}
    assert not outcome.reply.cut


async def ask(url: str, call: str = "work") -> Any:
    async with GatewayClient(url, "t", "w") as client:
        return await CALLS[call](client)


def test_one_task_that_is_too_much_fails_alone_under_its_own_id() -> None:
    heavy = '{"task_id":"heavy","target":{"n":[' + "0," * 1_200_000 + "0]}}"
    body = f'{{"tasks":[{json.dumps(task(1))},{heavy},{{"task_id":"odd" oops}},{json.dumps(task(2))}]}}'.encode()
    reply = salvage_work(body, cut=False)
    assert reply is not None
    assert [(read.task_id, read.is_readable) for read in reply.tasks] == [
        ("t-1", True), ("heavy", False), ("odd", False), ("t-2", True),
    ]  # fmt: skip


def test_what_is_no_task_does_not_push_out_what_is_one() -> None:
    reply = parse_work({"tasks": [*range(50_000), task(1), *({} for _ in range(5000))]})
    assert reply is not None
    assert reply.tasks[0].task_id == "t-1"
    assert len(reply.tasks) < MOST_TASKS + 20


@pytest.mark.parametrize("field", ["task_id", "type", "platform"])
def test_a_field_that_nobody_could_carry_is_left_out_and_said(field: str) -> None:
    read = parse_task(task(1) | {field: "x" * 5 * MB})
    assert getattr(read, field) == ""
    assert any(field in problem and len(problem) < 100 for problem in read.problems)


def test_commands_of_a_heartbeat_are_few_and_short() -> None:
    reply = parse_heartbeat({"acknowledged": True, "commands": ["x" * 5 * MB, "\x1b[2J pause\n", *["again"] * 1000]})
    assert reply is not None
    assert len(reply.commands) <= 20
    assert max(map(len, reply.command_names)) <= 100
    assert "[2j pause" in reply.command_names


def test_a_heartbeat_that_brings_megabytes_is_refused_before_it_is_read() -> None:
    body = json.dumps({"acknowledged": True, "commands": ["x" * 5 * MB]}).encode()
    with saying(_http("200 OK", body)) as url:
        outcome = run(ask(url, "heartbeat"))
    assert isinstance(outcome, Unavailable)
    assert outcome.kind is Kind.GARBAGE
    assert len(outcome.words) < 200


def test_words_of_a_database_are_cut_and_still_name_their_parcel() -> None:
    reply = parse_results({"inserted": 0, "updated": 0, "failed": 1, "errors": ["P-1: " + "x" * MB] * 5000}, 1)
    assert reply is not None
    assert len(reply.errors) <= 1000
    assert all(error.startswith("P-1: ") and len(error) <= 1000 for error in reply.errors)


def test_nothing_nested_gets_into_words() -> None:
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    assert parse_raw({"status": "error", "message": deep}) == parse_raw({"status": "error"})
    assert error_words('{"error":{"code":' + "[" * 900 + "]" * 900 + ',"message":"why"}}') == "why"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1},{"b":"]}"}]', ['{"a":1}', '{"b":"]}"}']),
        ('0,"{",[{"a":1}],null,{"b":[{}]}]{"c":1}', ['{"b":[{}]}']),
        ('{"a":"\\\\"},{"b":"\\""}', ['{"a":"\\\\"}', '{"b":"\\""}']),
        ('{"a":1},{"b":"broken', ['{"a":1}']),
        ('{"a":1},{"b":', ['{"a":1}']),
        ("", []),
        ("]", []),
        ("}", []),
    ],
)
def test_objects_are_found_without_decoding_them(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end, _ in objects_in_array(text, 0)] == found
