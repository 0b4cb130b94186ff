"""What is known about heartbeats: the last one, its outcome, and what the Gateway asked for in return."""

from __future__ import annotations

from typing import Any

from lienworker.db.models import Fact, tuples

#: When the last one was sent, in ms; its outcome; that one was acknowledged; what the Gateway asked for.
LAST_BEAT, BEAT_OUTCOME, BEAT_WELL, COMMANDS = (
    "heartbeat_at",
    "heartbeat_outcome",
    "heartbeat_acknowledged",
    "gateway_commands",
)
ACKNOWLEDGED = "acknowledged"


def last_heartbeat() -> dict[str, Any]:
    """Return what is known of the last heartbeat, with None for whatever has not happened yet."""
    wanted = Fact.select(Fact.name, Fact.value, Fact.at).where(Fact.name.in_([BEAT_OUTCOME, BEAT_WELL, COMMANDS]))
    noted = {name: (value, at) for name, value, at in tuples(wanted)}
    outcome, at = noted.get(BEAT_OUTCOME, (None, None))
    commands, asked_at = noted.get(COMMANDS, (None, None))
    return {
        "outcome": outcome,
        "at": at,
        "acknowledged_at": noted.get(BEAT_WELL, (None, None))[1],
        "commands": commands,
        "commands_at": asked_at,
    }
