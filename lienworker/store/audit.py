"""Who did what by hand, and to how many rows."""

from __future__ import annotations

import getpass
from typing import Any

from lienworker.store.clock import rfc3339
from lienworker.store.database import dict_rows, execute


def note_action(action: str, what: str, n: int) -> None:
    """Part of the transaction that does it."""
    execute(
        "INSERT INTO audit (at, who, action, what, n) VALUES (?, ?, ?, ?, ?)",
        (rfc3339(), _who(), action, what, n),
    )


def actions(limit: int = 50) -> list[dict[str, Any]]:
    return list(dict_rows("SELECT * FROM audit ORDER BY id DESC LIMIT ?", (limit,)))


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "unknown"
