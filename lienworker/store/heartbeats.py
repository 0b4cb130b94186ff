"""What is known about heartbeats: the last one, what it came to, and what the Gateway asked for in return."""

from __future__ import annotations

from typing import Any

from lienworker.db.models import Fact, tuples

#: When the last went out, in ms; what it came to; that one was acknowledged; what the Gateway asked for.
LAST_BEAT, BEAT_OUTCOME, BEAT_WELL, COMMANDS = (
    "heartbeat_at",
    "heartbeat_outcome",
    "heartbeat_acknowledged",
    "gateway_commands",
)
ACKNOWLEDGED = "acknowledged"


def last_heartbeat() -> dict[str, Any]:
    """None wherever there has been none."""
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
