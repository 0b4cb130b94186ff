"""The last pages on which sites refused us, by host and reason: what a 403 or 500 says is often the way out.

They are small values beside the others, written in the transaction that stores the failure. A site that refuses a
thousand pages writes one a minute, and there are never more than a few hundred.
"""

from __future__ import annotations

import json
from typing import Any

from lienworker.db.clock import now_ms, rfc3339, to_ms
from lienworker.db.database import all_rows, execute, fact, set_fact

_PREFIX = "refused "
#: Above every name that begins so.
_END = "refused!"
#: Pages of one host and reason, and characters of each.
_KEPT, _LONGEST = 3, 8_000
#: Hosts and reasons; the oldest make room.
_MOST = 100
_APART_MS = 60_000


def record_refusal(host: str, reason: str, url: str, status: int | None, body: bytes) -> None:
    """Keep what a site said instead of a page. Part of a larger transaction."""
    name = f"{_PREFIX}{host} {reason}"
    kept = json.loads(fact(name) or "[]")
    if kept and 0 <= now_ms() - to_ms(kept[0]["at"]) < _APART_MS:
        return
    text = body[: 4 * _LONGEST].decode("utf-8", "replace")[:_LONGEST]
    page = {"host": host, "reason": reason, "at": rfc3339(), "url": url, "status": status, "text": text}
    set_fact(name, json.dumps([page, *kept][:_KEPT]))
    _forget_oldest()


def _forget_oldest() -> None:
    """Make room; there are a hundred at most, so they are sorted here."""
    found = all_rows("SELECT at, name FROM facts WHERE name >= ? AND name < ?", (_PREFIX, _END))
    for _, name in sorted(found, reverse=True)[_MOST:]:
        execute("DELETE FROM facts WHERE name = ?", (name,))


def refusals(host: str, reason: str) -> list[dict[str, Any]]:
    """Return the last pages of a host and reason, newest first."""
    pages: list[dict[str, Any]] = json.loads(fact(f"{_PREFIX}{host} {reason}") or "[]")
    return pages


def refusing_hosts(since: str, limit: int) -> list[dict[str, str]]:
    """Return hosts with their reasons and the time of their last such page, newest first."""
    sql = "SELECT name, at FROM facts WHERE name >= ? AND name < ? AND at >= ? ORDER BY at DESC LIMIT ?"
    found = []
    for name, at in all_rows(sql, (_PREFIX, _END, since, limit)):
        host, _, reason = name.removeprefix(_PREFIX).rpartition(" ")
        found.append({"host": host, "reason": reason, "at": at})
    return found
