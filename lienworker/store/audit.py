"""What people did by hand, and to how many rows."""

from __future__ import annotations

import getpass
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.models import Action, dicts


def record_action(action: str, what: str, n: int) -> None:
    """Add a line to the audit. Part of the transaction that does what it records."""
    Action.insert(at=rfc3339(), who=_who(), action=action, what=what, n=n).execute()


def actions(limit: int = 50) -> list[dict[str, Any]]:
    return list(dicts(Action.select().order_by(Action.id.desc()).limit(limit)))


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        return "unknown"
