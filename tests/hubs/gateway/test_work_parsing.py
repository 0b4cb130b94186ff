"""Tasks are read so that nothing handed out is lost, whatever came."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lienworker.hubs.gateway.wire import decode
from lienworker.hubs.gateway.work import parse_task, parse_work, salvage_work
from tests.harness.gateway_calls import task

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ["task_id", "type", "platform", "target", "priority", "created_at", "proxy"]
ODD_TASK = st.dictionaries(st.sampled_from(FIELDS), ANY_JSON) | ANY_JSON
ODD_REPLY = st.fixed_dictionaries(
    {}, optional={"tasks": st.lists(ODD_TASK, max_size=4) | ANY_JSON, "retry_after": ANY_JSON}
)


def test_a_task_is_read_in_full() -> None:
    read = parse_task(task(1, priority=2))
    assert (read.task_id, read.platform, read.parcel_id, read.state, read.county) == (
        "t-1",
        "demo",
        "P-1",
        "FL",
        "Juniper",
    )
    assert (read.url, read.priority, read.type) == ("http://county.example/1", 2, "scrape_parcel")
    assert read.created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert read.problems == ()


@settings(deadline=None)
@given(ODD_REPLY | ANY_JSON)
def test_any_json_whatsoever_is_read_without_an_exception(value: Any) -> None:
    reply = parse_work(value)
    if reply is None:
        return
    assert 1 <= reply.retry_after <= 3600
    for read in reply.tasks:
        json.loads(read.raw_json)
        assert 1 <= read.priority <= 4
        for text in (read.task_id, read.type, read.platform, read.parcel_id, read.state, read.county, read.url or ""):
            text.encode("utf-8")  # can be stored
        assert read.created_at is None or read.created_at.tzinfo is not None


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_json_or_a_value_error(body: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode(body)
    salvage_work(body)


@pytest.mark.parametrize("depth", [99, 900, 100_000])
def test_absurd_nesting_is_garbage_or_kept_but_never_a_crash(depth: int) -> None:
    body = b'{"tasks":[{"task_id":"t","target":' + b"[" * depth + b"]" * depth + b"}]}"
    try:
        reply = parse_work(decode(body))
    except ValueError:
        return
    assert reply is not None
    assert reply.tasks[0].task_id == "t"


def test_null_tasks_mean_none_and_wait_30_seconds() -> None:
    reply = parse_work({"tasks": None})
    assert reply is not None
    assert (reply.tasks, reply.retry_after) == ((), 30.0)


@pytest.mark.parametrize("value", [{}, {"error": {"code": "x"}}, "hello", 7, None, True])
def test_what_looks_like_no_reply_of_a_gateway_is_none(value: Any) -> None:
    assert parse_work(value) is None


def test_a_lone_task_or_a_bare_list_still_gives_its_tasks() -> None:
    for value in ({"tasks": task(1)}, [task(1)], {"tasks": [None, task(1)]}):
        reply = parse_work(value)
        assert reply is not None
        assert [read.task_id for read in reply.tasks] == ["t-1"]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (7, 7),
        ("12", 12),
        (0, 1),
        (-3, 1),
        (1e9, 3600),
        (float("nan"), 5),
        (float("inf"), 5),
        (True, 5),
        ([1], 5),
        (10**400, 5),
    ],
)
def test_retry_after_stays_within_reason(asked: Any, kept: float) -> None:
    reply = parse_work({"tasks": [task()], "retry_after": asked})
    assert reply is not None
    assert reply.retry_after == kept


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("", None),
        (None, None),
        ("yesterday", None),
        (1767322800, None),
        ("2026-01-02T05:04:05.123456789+02:00", datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ],
)
def test_created_at_is_a_moment_or_none(text: Any, moment: datetime | None) -> None:
    assert parse_task(task(created_at=text)).created_at == moment


def test_what_is_odd_is_noted_and_what_can_be_read_is_kept() -> None:
    read = parse_task({"task_id": 17, "platform": "demo", "target": {"parcel_id": "\ud800x"}, "priority": 9})
    assert (read.task_id, read.parcel_id, read.priority) == ("17", "\ufffdx", 3)
    assert set(read.problems) >= {
        "task_id is not text",
        "type is missing",
        "parcel_id has half a character",
        "state is missing",
        "priority is not 1 to 4",
    }
    assert json.loads(read.raw_json)["task_id"] == 17


def test_a_huge_task_is_kept_whole() -> None:
    read = parse_task(task(target={"parcel_id": "P", "blob": "x" * 10_000_000}))
    assert len(read.raw_json) > 10_000_000


def test_a_number_with_ten_thousand_digits_stays_text() -> None:
    value = decode('{"tasks":[{"task_id":"t","target":{"n":' + "9" * 10_000 + "}}]}")
    reply = parse_work(value)
    assert reply is not None
    assert len(reply.tasks[0].target["n"]) == 10_000


def test_credentials_of_a_proxy_are_not_in_the_repr() -> None:
    read = parse_task(task(proxy={"url": "http://user:hunter2@proxy"}))
    assert read.proxy == {"url": "http://user:hunter2@proxy"}
    assert "hunter2" not in repr(read)


@pytest.mark.parametrize("cut", range(0, 700, 13))
def test_the_whole_tasks_of_a_broken_reply_are_saved(cut: int) -> None:
    queued = [task(n) for n in range(3)]
    whole = json.dumps({"tasks": queued, "retry_after": 5}).encode()
    reply = salvage_work(whole[:cut])
    found = [] if reply is None else [read.task_id for read in reply.tasks]
    assert found == [f"t-{n}" for n in range(len(found))]
    complete = sum(cut >= whole.find(json.dumps(one).encode()) + len(json.dumps(one)) for one in queued)
    assert len(found) == complete
    assert reply is None or reply.cut
