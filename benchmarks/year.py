"""A year in small: many tasks through one data folder with retention at its minimum.

Does its size stay bounded, and was nothing purged that no Gateway has? Every day new tasks come, are fetched, scraped
and delivered by the product's own transactions (no network, no parsing, the clock is ours), and the real purge runs. In
the fourth month the Gateway is away for ten days; some results it refuses for good, some an operator holds. A ledger
outside the database remembers each of those, and at the end each must be there, with a raw page that can be read.

    python -m benchmarks.year [--tasks 200000] [--days 365] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.restarts import Clock, Lives, Shares, lives
from lienworker.db.database import all_rows, one_row
from lienworker.maintenance.disk_limits import Size, measure
from lienworker.maintenance.retention import Keep, Pace, purge
from lienworker.maintenance.vacuum import free_pages
from lienworker.operator.rows import RowFilter, find_ids, hold_rows
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.store.raw_files import read_page
from lienworker.store.tasks import NewTask

#: What is settled goes at the next purge.
MINIMUM = Keep(raw=0, steps=0, tasks=0, archived=math.inf, history=30)
SHARES = Shares(not_found=0.02, no_parcel=0.01, refused=0.002)
_AWAY = (0.27, 0.30)  # of the year
_HELD_EVERY = 40  # days
_PAGE_BYTES = 6_000
_COUNTIES = 40


@dataclass(frozen=True, slots=True)
class Day:
    """The folder in the evening, after the purge."""

    number: int
    tasks: int
    size: Size
    open_tasks: int
    longest_hold_ms: float
    purge_seconds: float


def new_tasks(day: int, n: int, first: int) -> list[NewTask]:
    """Tasks of the Gateway; each parcel comes back several times in a year."""
    made = []
    for number in range(first, first + n):
        parcel = number * 7919 % 50_000
        county = f"County {parcel % _COUNTIES}"
        made.append(
            NewTask(
                "local_file" if number % 10 == 0 else "gateway",
                f"http://county{parcel % _COUNTIES}.example/{parcel}?visit={number}",
                platform="demo",
                state="XX",
                county=county,
                parcel_id=f"P-{parcel:06}",
                task_id=f"year-{day:03}-{number:07}",
            )
        )
    return made


def undelivered() -> set[str]:
    """What the database says is not with the Gateway yet: results, and reports that wait."""
    return {
        row[0]
        for row in all_rows(
            "SELECT task_id FROM results WHERE synced = 0 UNION"
            " SELECT task_id FROM outbox WHERE state IN ('waiting', 'leased', 'held', 'parked')"
        )
    }


class Year:
    def __init__(self, worker: Lives, clock: Clock, tasks: int, days: int) -> None:
        self.worker = worker
        self.clock = clock
        self.tasks = tasks
        self.days = days
        self.ledger: set[str] = set()
        self.lost: set[str] = set()
        self.evenings: list[Day] = []

    def live(self) -> None:
        done = 0
        for day in range(1, self.days + 1):
            n = self.tasks * day // self.days - done
            self.worker.register(new_tasks(day, n, done))
            done += n
            self.worker.fetch(SHARES, _PAGE_BYTES)
            self.worker.scrape(SHARES)
            if day % _HELD_EVERY == 0:
                rows = find_ids(RowFilter(topic="upload_raw"), ("waiting",))[:5]
                hold_rows(rows, "the year's operator")
            if not _AWAY[0] * self.days < day <= _AWAY[1] * self.days:
                self.worker.deliver(SHARES)
                self.worker.report()
            self.clock.go(1)
            self._evening(day, done)

    def _evening(self, day: int, done: int) -> None:
        """The ledger is written before the purge; what it names must be there after it."""
        before = undelivered()
        pace = Pace()
        began = time.perf_counter()
        purge(MINIMUM, self.worker.runtime.folder, pace, remembering=True)
        took = time.perf_counter() - began
        self.lost |= before - undelivered()
        self.ledger = before
        size = measure(self.worker.runtime.folder)
        self.evenings.append(Day(day, done, size, len(before), 1000 * pace.longest, took))
        if day * 12 // self.days > (day - 1) * 12 // self.days:  # a month is over
            print(f"day {day}: {done:,} tasks, {size.total / 1e6:.1f} MB", file=sys.stderr, flush=True)


def check(year: Year) -> list[str]:
    """Everything that is wrong at the end of the year."""
    wrong = [f"{len(year.lost)} undelivered tasks were purged"] if year.lost else []
    wrong += [f"the balance of {side.topic} does not hold" for side in balances() if not side.holds]
    wrong += wrong_tallies()
    root = year.worker.runtime.folder.root
    pages = dict(all_rows("SELECT task_id, path || ' ' || sha256 FROM pages WHERE purged_at IS NULL"))
    for (task_id,) in all_rows("SELECT task_id FROM results WHERE synced = 0"):
        path, _, sha256 = pages[task_id].rpartition(" ")
        read_page(root / path, sha256)
    named = {path for (path,) in all_rows("SELECT path FROM pages WHERE purged_at IS NULL")}
    there = {str(path.relative_to(root)) for path in (root / "raw").rglob("*") if path.is_file()}
    doomed = {path for (path,) in all_rows("SELECT path FROM doomed_files")}
    if there - named - doomed or named - there:
        wrong.append(f"{len(there - named - doomed)} files without a row, {len(named - there)} rows without a file")
    if one_row("PRAGMA integrity_check")[0] != "ok":
        wrong.append("the database is damaged")
    return wrong


def table(year: Year) -> str:
    """The size over the year: each twelfth, and the largest."""
    largest = max(year.evenings, key=lambda day: day.size.total)
    shown = {max(1, year.days * k // 12) for k in range(1, 13)} | {largest.number}
    head = ("day", "tasks so far", "database, MB", "raw pages, MB", "in all, MB", "not delivered")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for day in year.evenings:
        if day.number in shown:
            size = day.size
            mark = " (largest)" if day is largest else ""
            lines.append(
                f"| {day.number}{mark} | {day.tasks:,} | {size.database / 1e6:.1f} | {size.raw / 1e6:.1f}"
                f" | {size.total / 1e6:.1f} | {day.open_tasks:,} |"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=200_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--keep", type=Path, help="leave the data folder here")
    arguments = parser.parse_args()
    logging.disable(logging.INFO)
    root = arguments.keep or Path(tempfile.mkdtemp(prefix="lienworker-year-")) / "data"
    clock = Clock()
    began = time.perf_counter()
    try:
        with clock.in_place(), lives(root) as worker:
            year = Year(worker, clock, arguments.tasks, arguments.days)
            year.live()
            wrong = check(year)
            free, pages = free_pages()
        print(table(year))
        holds = sorted(day.longest_hold_ms for day in year.evenings)
        print(
            f"\n{arguments.tasks:,} tasks in {arguments.days} days took {time.perf_counter() - began:.0f} s;"
            f" purging {sum(day.purge_seconds for day in year.evenings):.0f} s of that."
            f" A purge held the write lock for {holds[-1]:.0f} ms at most (median day: {holds[len(holds) // 2]:.0f})."
            f" At the end {len(year.ledger):,} tasks are not delivered; {free:,} of {pages:,} pages are free."
        )
        print(json.dumps({"wrong": wrong}) if wrong else "Nothing undelivered was purged; the books are right.")
        return 1 if wrong else 0
    finally:
        if not arguments.keep:
            shutil.rmtree(root.parent, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
