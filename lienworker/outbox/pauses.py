"""Lanes that are paused, by whom and why. A lane may have several causes; it runs when none is left."""

from __future__ import annotations

from collections.abc import Sequence

from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.store.audit import record_action


def is_paused_for(lane: str, cause: str) -> bool:
    return one_row("SELECT 1 FROM pauses WHERE lane = ? AND cause = ?", (lane, cause)) is not None


def set_pause(lane: str, cause: str, paused: bool, words: str) -> bool:
    """Writes only where something changes, and says whether it did: this is looked at every second."""
    if is_paused_for(lane, cause) == paused:
        return False
    with write("pause"):
        set_pause_in_transaction(lane, cause, words if paused else None)
    return True


def set_pause_in_transaction(lane: str, cause: str, words: str | None) -> None:
    """Pause a lane, with the words for it, or end its pause. Part of a larger transaction."""
    if words is None:
        execute("DELETE FROM pauses WHERE lane = ? AND cause = ?", (lane, cause))
        return
    execute(
        "INSERT INTO pauses VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET words = excluded.words",
        (lane, cause, rfc3339(), words),
    )


def set_pause_by_hand(lanes: Sequence[str], *, paused: bool) -> None:
    """A person pauses or resumes. A resume also ends what the Gateway asked for; a full disk stays what it is."""
    with write("pause_by_hand"):
        for lane in lanes:
            if paused:
                values = (lane, "operator", rfc3339(), "an operator paused it")
                execute("INSERT OR REPLACE INTO pauses VALUES (?, ?, ?, ?)", values)
            else:
                execute("DELETE FROM pauses WHERE lane = ? AND cause IN ('operator', 'gateway')", (lane,))
        record_action("pause" if paused else "resume", " ".join(lanes), len(lanes))


def pauses() -> list[tuple[str, str, str, str]]:
    return all_rows("SELECT lane, cause, since, words FROM pauses ORDER BY lane, cause")


# Whether a row's county is kept back by the drift guard: asked when a row comes, and again before it is fetched.


class DriftHolds:
    """The places that are paused now. Nearly always there are none, and then every answer is at once."""

    def __init__(self) -> None:
        sql = "SELECT platform, state, county FROM field_history WHERE paused_at IS NOT NULL"
        self._places = set(all_rows(sql))

    def __bool__(self) -> bool:
        return bool(self._places)

    def holds(self, platform: str | None, state: str | None, county: str | None, host: str) -> bool:
        """A task that does not say its platform belongs to whichever is paused there."""
        here = (state or "", county or f"({host})")
        return any((platform or place[0], *here) == place for place in self._places)
