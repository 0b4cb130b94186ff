"""Tasks as the Gateway hands them out, read so that nothing handed out is lost.

A task is handed out once and never again: whatever can be read of it is kept, whatever is odd about it is noted,
and nothing here raises. What cannot be done with an odd task is for its later steps to say.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lienworker.hubs.gateway.wire import decode, encode, objects_in_array

RETRY_WITH_TASKS = 5.0
RETRY_WITHOUT_TASKS = 30.0
# Less would be a busy loop, more would leave the worker idle because of one odd number.
RETRY_BOUNDS = (1.0, 3600.0)
NORMAL_PRIORITY = 3

#: More is asked for by nobody (a call brings 100 at most); what comes beyond it is not read.
MOST_TASKS = 1000
#: What is no object is told once or twice, not a million times.
_MOST_OTHERS = 10
#: A reply that is larger is read task by task, off the event loop, bytes.
_LARGE = 256 * 1024
#: So many values of one reply are decoded, 100 to 200 bytes each: 100 tasks may have ten thousand each.
_MOST_VALUES = 1_000_000
#: Characters of a field. Longer is nothing that a URL, a file name or a line of the log could carry.
_LONGEST_TEXT, _LONGEST_URL = 1000, 8192

_TASK_ID = re.compile(r'"task_id"\s*:\s*"([^"\\]{1,1000})"')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TASKS_BEGIN = re.compile(r'"tasks"\s*:\s*\[|\A\ufeff?\s*\[')


@dataclass(frozen=True, slots=True)
class WorkTask:
    """One task; an empty text is a value that was missing or could not be read, `problems` says which and why.

    `raw_json` is the whole of what came, as ASCII JSON. It and `proxy` may hold credentials: not for logs.
    Of one that is not `is_readable` nothing is known but its id.
    """

    task_id: str
    type: str
    platform: str
    parcel_id: str
    state: str
    county: str
    url: str | None
    priority: int
    created_at: datetime | None
    target: Mapping[str, Any] = field(repr=False)
    proxy: Any = field(repr=False)
    raw_json: str = field(repr=False)
    problems: tuple[str, ...] = ()
    is_readable: bool = True


@dataclass(frozen=True, slots=True)
class WorkReply:
    """What a poll brought. `cut`: the reply broke off, and these are the tasks that had arrived whole."""

    tasks: tuple[WorkTask, ...]
    retry_after: float
    cut: bool = False


class _Reader:
    """Reads fields of one object and notes what was odd."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems

    def text(
        self, source: Mapping[str, Any], name: str, *, optional: bool = False, longest: int = _LONGEST_TEXT
    ) -> str:
        value = source.get(name)
        if isinstance(value, str) and len(value) > longest:  # cut, it would name something else
            self.problems.append(f"{name} is longer than {longest} characters")
            return ""
        if isinstance(value, str):
            if not value and not optional:
                self.problems.append(f"{name} is empty")
            return self._storable(name, value)
        if value is None:
            if not optional:
                self.problems.append(f"{name} is missing")
            return ""
        self.problems.append(f"{name} is not text")
        return str(value)[:longest] if isinstance(value, int | float) and not isinstance(value, bool) else ""

    def _storable(self, name: str, value: str) -> str:
        fixed = _LONE_SURROGATE.sub("\ufffd", value)
        if fixed != value:
            self.problems.append(f"{name} has half a character")
        return fixed

    def priority(self, source: Mapping[str, Any]) -> int:
        value = source.get("priority")
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 4:
            return value
        self.problems.append("priority is not 1 to 4")
        return NORMAL_PRIORITY

    def moment(self, source: Mapping[str, Any]) -> datetime | None:
        value = source.get("created_at")
        if value is None or value == "":
            return None
        moment = _moment(value)
        if moment is None:
            self.problems.append("created_at is not a time")
        # A missing time comes as year 0001.
        return moment if moment is not None and moment.year > 1 else None

    def mapping(self, source: Mapping[str, Any], name: str) -> dict[str, Any]:
        value = source.get(name)
        if isinstance(value, dict):
            return value
        self.problems.append(f"{name} is not an object")
        return {}


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None or moment.year <= 1:  # near year 1 a change of zone overflows
            return moment and moment.replace(tzinfo=UTC)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_task(value: Any) -> WorkTask:
    """Return one task out of any JSON value."""
    problems: list[str] = []
    reader = _Reader(problems)
    task = value if isinstance(value, dict) else {}
    if task is not value:
        problems.append("the task is not an object")
    target = reader.mapping(task, "target")
    return WorkTask(
        task_id=reader.text(task, "task_id"),
        type=reader.text(task, "type"),
        platform=reader.text(task, "platform"),
        parcel_id=reader.text(target, "parcel_id"),
        state=reader.text(target, "state"),
        county=reader.text(target, "county"),
        url=reader.text(target, "url", optional=True, longest=_LONGEST_URL) or None,
        priority=reader.priority(task),
        created_at=reader.moment(task),
        target=target,
        proxy=task.get("proxy"),
        raw_json=encode(value),
        problems=tuple(problems),
    )


def parse_work(value: Any) -> WorkReply | None:
    """Return the reply in a decoded body. None where it looks like nothing that a Gateway says; never an exception."""
    if isinstance(value, list):
        return _reply(value, None)
    if not isinstance(value, dict) or not ("tasks" in value or "retry_after" in value):
        return None
    tasks = value.get("tasks")
    # A lone task where a list should be is still a task that nobody gets a second time.
    listed = tasks if isinstance(tasks, list) else [tasks]
    return _reply(listed, value.get("retry_after"))


def _reply(values: list[Any], asked: Any) -> WorkReply:
    objects = [value for value in values if isinstance(value, dict)][:MOST_TASKS]
    others = [value for value in values if value is not None and not isinstance(value, dict)][:_MOST_OTHERS]
    tasks = tuple(parse_task(value) for value in (*objects, *others))
    return WorkReply(tasks, _retry_after(asked, RETRY_WITH_TASKS if tasks else RETRY_WITHOUT_TASKS))


def _retry_after(value: Any, usual: float) -> float:
    convert: Callable[[Any], float] = float
    try:
        seconds = usual if value is None or isinstance(value, bool) else convert(value)
    except (TypeError, ValueError, OverflowError):
        return usual
    low, high = RETRY_BOUNDS
    return min(max(seconds, low), high) if math.isfinite(seconds) else usual


def is_large(body: bytes) -> bool:
    """Return whether a reply is to be read by `salvage_work`, off the event loop, and not to be decoded at once."""
    return len(body) > _LARGE


def salvage_work(body: bytes, *, cut: bool = True) -> WorkReply | None:
    """Read a reply that broke off, or is large, each task by itself; None if there is not one.

    The Gateway counts them as handed out: thrown away here, they would be lost for good. So one that cannot be read
    costs no other. The time it takes is in proportion to the text, whatever stands in it, and so is the memory.
    """
    text = body.decode("utf-8", "replace")
    begin = _TASKS_BEGIN.search(text)
    found = objects_in_array(text, begin.end()) if begin else iter(())
    left = _MOST_VALUES
    tasks: list[WorkTask] = []
    for start, end, values in itertools.islice(found, MOST_TASKS):
        one = text[start:end]
        tasks.append(_read_one(one) if values <= left else _unreadable(one, "the task has too much in it"))
        left -= values if values <= left else 0
    return WorkReply(tuple(tasks), RETRY_WITH_TASKS, cut=cut) if tasks else None


def _read_one(text: str) -> WorkTask:
    try:
        return parse_task(decode(text))
    except ValueError:
        return _unreadable(text, "the task is not JSON")


def _unreadable(text: str, problem: str) -> WorkTask:
    """Return a task of which only the id is known, so that the Gateway can be told."""
    found = _TASK_ID.search(text)
    nothing: Mapping[str, Any] = {}
    return WorkTask(
        task_id=found[1] if found else "",
        type="",
        platform="",
        parcel_id="",
        state="",
        county="",
        url=None,
        priority=NORMAL_PRIORITY,
        created_at=None,
        target=nothing,
        proxy=None,
        raw_json=json.dumps(text),
        problems=(problem,),
        is_readable=False,
    )
