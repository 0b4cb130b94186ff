"""A year in small, in smaller: the data folder stays as large as it is, and nothing undelivered is purged."""

from __future__ import annotations

from pathlib import Path

from benchmarks.restarts import Clock, lives
from benchmarks.year import Year, check, table, undelivered
from lienworker.db.database import one_row


def test_a_folder_stays_bounded_and_keeps_what_no_gateway_has(tmp_path: Path) -> None:
    clock = Clock()
    with clock.in_place(), lives(tmp_path / "data") as worker:
        year = Year(worker, clock, tasks=600, days=50)
        year.live()

        assert check(year) == []
        assert year.lost == set()
        away = [day for day in year.evenings if 0.27 * 50 < day.number <= 0.30 * 50]
        assert min(day.open_tasks for day in away) > 0, "while the Gateway was away, things waited"
        assert undelivered() == year.ledger
        assert len(year.ledger) >= 5, "what the operator held is still there"
        assert one_row("SELECT count(*) FROM tasks")[0] == len(year.ledger)
        assert one_row("SELECT sum(n) FROM counters WHERE name = 'purged'")[0] > 4 * 500
    sizes = [day.size.total for day in year.evenings]
    assert max(sizes[25:]) < 2 * max(sizes[:25])
    assert "(largest)" in table(year)
