"""Small things that must survive a restart, by name: the last heartbeat, what the Gateway asked for."""

from __future__ import annotations

from lienworker.db.clock import rfc3339
from lienworker.db.database import execute, one_row, storable


def set_fact(name: str, value: str) -> None:
    """Part of a larger transaction."""
    execute(
        "INSERT INTO facts (name, value, at) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value, at = excluded.at",
        (name, storable(value), rfc3339()),
    )


def fact(name: str) -> str | None:
    row = one_row("SELECT value FROM facts WHERE name = ?", (name,))
    return str(row[0]) if row else None
