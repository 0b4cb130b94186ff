"""What was not delivered, grouped by error, with when it is tried again and the command that sends it."""

from __future__ import annotations

import shlex
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.outbox.rows import NEVER_DUE
from lienworker.outbox.states import NEVER_SENDABLE, State
from lienworker.outbox.uploads import ENDPOINTS
from lienworker.queries.outbox import groups_aside, groups_waiting

AFTER_RAW = "after its raw file"


def groups_of_failures() -> list[dict[str, Any]]:
    """Return parked and held uploads, and those that wait for another try: by topic, reason and error, most first."""
    groups = [*groups_aside(), *groups_waiting()]
    return [_told(group) for group in groups if group["topic"] in ENDPOINTS]


def _told(group: dict[str, Any]) -> dict[str, Any]:
    due = group.get("due_at")
    return {
        **{name: group[name] for name in ("state", "topic", "n")},
        "reason": group["reason"] or None,
        "fingerprint": group["fingerprint"] or None,
        "first_at": _moment(group["first_at"]),
        "last_at": _moment(group["last_at"]),
        "next_try": None if due is None else due_in_words(due),
        "sample_id": group["sample_id"],
        "sample": group["sample"],
        "command": _command(group),
    }


def due_in_words(due_at: int) -> str:
    """Return when a row is due; a result that waits for its raw file has no time of its own."""
    return AFTER_RAW if due_at >= NEVER_DUE else rfc3339(due_at)


def _moment(moment: int | str | None) -> str | None:
    return rfc3339(moment) if isinstance(moment, int) else moment


def _command(group: dict[str, Any]) -> str | None:
    """Return the command to replay a group; None where nothing alone helps (never sendable, raw file first)."""
    if group["reason"] == "incomplete_key":
        return "lienworker tasks fill --all --state STATE --county COUNTY"
    if group["reason"] in {*NEVER_SENDABLE, "raw_parked"}:
        return None
    chosen = ["--fingerprint", group["fingerprint"]] if group["fingerprint"] else []
    if not chosen:
        chosen = [*(["--reason", group["reason"]] if group["reason"] else []), "--topic", group["topic"]]
    if group["state"] == State.HELD and group["reason"] != "standalone":
        chosen.append("--include-held")
    return shlex.join(["lienworker", "outbox", "replay", *chosen])
