"""Whether a row's county is kept back by the drift guard: asked when a row comes, and again before it is fetched."""

from __future__ import annotations

from lienworker.db.database import all_rows


class KeptBack:
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
