"""Every field of every reply, missing, null, of the wrong type, huge: a value or no reply, and never an exception."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lienworker.hubs.gateway.wire import parse_closed, parse_heartbeat, parse_raw, parse_results
from lienworker.hubs.gateway.work import parse_work
from tests.harness.gateway_calls import task

ODD: list[Any] = [
    None, True, 0, -1, 2**63, 10**400, 1.5, float("inf"), float("nan"), "", "x" * 1_000_000, "\0", "\ud800", [],
    [None], [[]], {}, {"": None}, "0001-01-01T00:00:00Z", "9999-99-99", "../../etc", {"a": {"b": {"c": []}}},
]  # fmt: skip
REPLIES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "work": (parse_work, {"tasks": [task(1), task(2)], "retry_after": 30, "has_more": True}),
    "raw": (parse_raw, {"status": "ok", "path": "raw/x.html.gz", "size": 17}),
    "results": (lambda v: parse_results(v, 2), {"inserted": 1, "updated": 0, "failed": 1, "errors": ["P-1: overflow"]}),
    "closed": (parse_closed, {"status": "reported", "success": True}),
    "heartbeat": (parse_heartbeat, {"acknowledged": True, "commands": [{"command": "pause", "reason": "update"}]}),
}


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every field, however deep."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield (*way, name)
        yield from places(inner, (*way, name))


def changed(reply: Any, way: tuple[Any, ...], value: Any, *, missing: bool = False) -> Any:
    reply = copy.deepcopy(reply)
    holder = reply
    for step in way[:-1]:
        holder = holder[step]
    if missing:
        del holder[way[-1]]
    else:
        holder[way[-1]] = value
    return reply


@pytest.mark.parametrize("name", REPLIES)
def test_no_field_can_make_a_reply_raise(name: str) -> None:
    parse, reply = REPLIES[name]
    assert parse(reply) is not None
    for way in places(reply):
        parse(changed(reply, way, None, missing=True))
        for value in ODD:
            parse(changed(reply, way, value))


def test_a_task_with_an_odd_field_is_kept_and_so_is_its_neighbour() -> None:
    """Nothing that was handed out may be lost: the Gateway never hands it out again."""
    parse, reply = REPLIES["work"]
    for way in places(reply["tasks"][0], ("tasks", 0)):
        if len(way) > 2:
            for value in ODD:
                read = parse(changed(reply, way, value))
                assert read is not None
                assert len(read.tasks) == 2, (way, value)
                json.loads(read.tasks[0].raw_json)
                assert read.tasks[1].task_id == "t-2"
