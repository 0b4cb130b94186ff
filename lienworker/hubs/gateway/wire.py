"""The contract with the Gateway in one place: what comes in, what goes out, what an answer proves. All pure.

Reading tasks is in `work`, checking results before sending in `fitting`, reading answers in `replies`;
what is left is here, and all of it can be imported from here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from lienworker.hubs.gateway.replies import (
    ClosedReply,
    HeartbeatReply,
    RawFailure,
    RawReply,
    ResultsReply,
    error_words,
    parse_closed,
    parse_heartbeat,
    parse_raw,
    parse_results,
    retry_after,
)
from lienworker.hubs.gateway.sanitize import FitResult, Unfit, clean_text, fit_result, fit_stored, results_body
from lienworker.hubs.gateway.work import WorkReply, WorkTask, is_large, parse_task, parse_work, salvage_work

__all__ = [
    "ClosedReply",
    "FitResult",
    "HeartbeatReply",
    "RawFailure",
    "RawReply",
    "ResultsReply",
    "Unfit",
    "WorkReply",
    "WorkTask",
    "clean_text",
    "error_words",
    "fit_result",
    "fit_stored",
    "heartbeat_body",
    "is_large",
    "parse_closed",
    "parse_heartbeat",
    "parse_raw",
    "parse_results",
    "parse_task",
    "parse_work",
    "raw_name",
    "result_item",
    "results_body",
    "retry_after",
    "salvage_work",
    "task_segment",
]

_EXTENSION = re.compile(r"(\.[a-z0-9]{1,8}){1,3}")


def result_item(
    *,
    task_id: str,
    parcel_id: str,
    platform: str,
    state: str,
    county: str,
    data: Mapping[str, Any],
    scraped_at: str,
    parse_duration_ms: int,
    raw_html_hash: str | None = None,
) -> dict[str, Any]:
    """An item for `/internal/results`; to be passed through `fit_result` before it is sent."""
    item: dict[str, Any] = {
        "task_id": task_id,
        "parcel_id": parcel_id,
        "platform": platform,
        "state": state,
        "county": county,
        "data": data,
        "scraped_at": scraped_at,
        "parse_duration_ms": parse_duration_ms,
    }
    return item | ({"raw_html_hash": raw_html_hash} if raw_html_hash else {})


def heartbeat_body(
    *,
    active_tasks: int,
    completed_last_minute: int,
    failed_last_minute: int,
    platforms: Sequence[str],
    cpu_percent: float,
    memory_percent: float,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The body of a heartbeat. `extra` (queue depths) never replaces a field of the contract."""
    contract = {
        "active_tasks": int(active_tasks),  # a float is a 400
        "completed_last_minute": int(completed_last_minute),
        "failed_last_minute": int(failed_last_minute),
        "platforms": list(platforms),
        "cpu_percent": float(cpu_percent),
        "memory_percent": float(memory_percent),
    }
    return {**(extra or {}), **contract}


def raw_name(platform: str, state: str, county: str, parcel_id: str, raw_sha256: str, ext: str) -> str:
    """A raw file's name at the Gateway, where all workers share one flat folder and a same name overwrites.

    A JSON list is the join: no two different tuples read the same. 64 hex digits and an extension such as
    `.html.gz` stay far below the 200 bytes at which the Gateway cuts a name (and its extension) off.
    """
    identity = json.dumps([platform, state, county, parcel_id, raw_sha256])
    suffix = "." + ext.lower().lstrip(".")
    kept = suffix if _EXTENSION.fullmatch(suffix) else ".bin"
    return hashlib.sha256(identity.encode("ascii")).hexdigest() + kept


def task_segment(task_id: str) -> str | None:
    """A task id as one segment of a path; None where no URL can name it.

    A `/` ends the segment however it is written, and `.` and `..` are walked, not named.
    """
    if task_id in {"", ".", ".."} or "/" in task_id:
        return None
    try:
        return quote(task_id, safe="")
    except UnicodeEncodeError:  # half a character
        return None
