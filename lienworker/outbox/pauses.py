"""Paused lanes: who paused them and why. A lane may have several causes; it runs when none is left."""

from __future__ import annotations

from collections.abc import Sequence

from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.store.audit import record_action


def is_paused_for(lane: str, cause: str) -> bool:
    return one_row("SELECT 1 FROM pauses WHERE lane = ? AND cause = ?", (lane, cause)) is not None


def set_pause(lane: str, cause: str, paused: bool, words: str) -> bool:
    """Set or end a pause; return whether anything changed. Write only then: this is called every second."""
    if is_paused_for(lane, cause) == paused:
        return False
    with write("pause"):
        set_pause_in_transaction(lane, cause, words if paused else None)
    return True


def set_pause_in_transaction(lane: str, cause: str, words: str | None) -> None:
    """Pause a lane, with the message for people, or end its pause. Part of a larger transaction."""
    if words is None:
        execute("DELETE FROM pauses WHERE lane = ? AND cause = ?", (lane, cause))
        return
    execute(
        "INSERT INTO pauses VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET words = excluded.words",
        (lane, cause, rfc3339(), words),
    )


def set_pause_by_hand(lanes: Sequence[str], *, paused: bool) -> None:
    """Pause or resume lanes for a person. A resume also ends the Gateway's pause, but not a full disk's."""
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


# Held places: whether a row's county is held; asked when a row is added, and again before it is fetched.


#: Why the fetches of a place are held: its pages have changed, or an operator has paused its county.
DRIFT, PAUSED = "drift", "paused"


class PlaceHolds:
    """The places whose fetches are held now, read once per transaction.

    When a county's pages suddenly lack fields that they used to have, its site has probably changed, and results made
    with the old parser would be wrong. The drift guard (`steps.drift`) then marks the place as paused: its waiting
    fetches and uploads are held with the reason `drift`, and rows that are registered or claimed later are held on
    sight, which is what this class answers. Nothing is lost or sent meanwhile. A person releases the place, or a newer
    parser reads the stored pages again. Rejected: parking the rows (they are not at fault), and pausing the whole lane
    (other counties are fine).

    An operator pauses a county for reasons of their own (`operator.hosts`): its fetches are held in the same way, with
    the reason `paused`, until it is resumed; what is scraped already is still sent.

    There are nearly always no such places, and then every answer is immediate.
    """

    def __init__(self) -> None:
        sql = "SELECT platform, state, county FROM field_history WHERE paused_at IS NOT NULL"
        self._drifting = set(all_rows(sql))
        self._paused = {(state.lower(), county.lower()) for state, county, _ in paused_counties()}

    def __bool__(self) -> bool:
        return bool(self._drifting or self._paused)

    def reason_for(self, platform: str | None, state: str | None, county: str | None, host: str) -> str | None:
        """Return why a task's place is held, if it is; a task without a platform belongs to any that is held there."""
        here = (state or "", county or f"({host})")
        if any((platform or place[0], *here) == place for place in self._drifting):
            return DRIFT
        return PAUSED if ((state or "").lower(), (county or "").lower()) in self._paused else None


def paused_counties() -> list[tuple[str, str, str]]:
    """Return the counties that an operator has paused: state, county, and since when."""
    return all_rows("SELECT state, county, since FROM paused_counties ORDER BY state, county")


def mark_county(state: str, county: str, *, paused: bool) -> None:
    """Record that an operator has paused a county, or resumed it. Part of a larger transaction."""
    if paused:
        execute("INSERT OR IGNORE INTO paused_counties VALUES (?, ?, ?)", (state, county, rfc3339()))
    else:
        execute("DELETE FROM paused_counties WHERE state = ? AND county = ?", (state, county))
