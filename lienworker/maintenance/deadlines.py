"""Deadlines after a failed try: when its backoff is over, a row is sorted in by its deadline again."""

from __future__ import annotations

from lienworker.db.clock import now_ms
from lienworker.db.database import write
from lienworker.outbox.transitions import retries_to_sort_in, sort_by_deadline


def sort_in_retries() -> None:
    """Sort rows in whose backoff is over. Called every second, so it writes only where there are any."""
    if not retries_to_sort_in(now_ms()):
        return
    with write("deadlines"):
        sort_by_deadline(retries_to_sort_in(now_ms()))
