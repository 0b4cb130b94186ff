"""What a page costs as the database grows, and what a worker costs as it goes on. Flat is the word.

    python -m benchmarks.growth [--small 10000] [--large 1000000] [--pages 1000] [--rounds 3]
    python -m benchmarks.growth --long 100000

The first: two data folders, one with few tasks and one with many (waiting, done and failed, with their outbox rows and
results); the product's own pump takes the same number of pages from a local site in each, in turns. What is compared is
the CPU time of the process that does it, since that is what growth would cost.

The second: a whole stack and so many pages; the memory of each worker, the size of the WAL and the open files are
looked at after each tenth.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psutil
from dramatiq.asyncio import EventLoopThread

from benchmarks.speed.measuring import running_site
from benchmarks.speed.with_lienworker import PROGRAM, environment, import_parcels, rows_of
from benchmarks.web import fill
from lienworker.db.database import close, one_row, write
from lienworker.outbox.pacing import Politeness
from lienworker.outbox.registration import host_of, register_in_transaction
from lienworker.settings import Settings
from lienworker.steps.fetch import FetchLoop
from lienworker.steps.runtime import running
from lienworker.store.tasks import NewTask

GROWTH_BAR, MEMORY_BAR, PEAK_BAR = 1.15, 1.10, 150.0


# As the database grows


def pump_pages(folder: Path, site: str, first: int, pages: int) -> float:
    """CPU milliseconds a page, in this process."""
    settings = Settings.from_mapping(environment(folder))
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    with running(settings, "worker", 1, loop.loop) as here:
        new = [NewTask("local_file", **row, queue="urgent") for row in rows_of(site, first + pages)[first:]]
        with write("benchmark"):
            register_in_transaction(new, politeness={host_of(new[0].url): Politeness(0.0, 64)})
        before = time.process_time()
        while (
            one_row(
                "SELECT count(*) FROM tasks WHERE import_id IS NULL AND status = 'completed' AND platform = ?",
                ("benchmark",),
            )[0]
            < first + pages
        ):
            with here.holder.lease() as token:
                FetchLoop(here.fetch, here.lane(token)).run()
        cost = 1000 * (time.process_time() - before) / pages
    loop.stop()
    close()
    return cost


def as_it_grows(small: int, large: int, pages: int, rounds: int) -> bool:
    costs: dict[int, list[float]] = {small: [], large: []}
    with tempfile.TemporaryDirectory(prefix="growth-") as scratch, running_site() as site:
        folders = {rows: Path(scratch) / str(rows) for rows in costs}
        for rows, folder in folders.items():
            fill(folder / "data", rows)
        for number in range(rounds):
            for rows, folder in folders.items():
                order = [str(folder), site, str(number * pages), str(pages)]
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.growth", "--pump", *order], stdout=subprocess.PIPE, check=True
                )
                costs[rows].append(float(done.stdout))
                print(f"{rows:>10,} tasks: {costs[rows][-1]:6.2f} ms CPU a page", flush=True)
    ratio = median(big / few for few, big in zip(costs[small], costs[large], strict=True))
    print(f"a page at {large:,} tasks costs {ratio:.2f} times what it costs at {small:,}   (bar: {GROWTH_BAR})")
    return ratio <= GROWTH_BAR


# As it goes on


@contextlib.contextmanager
def running_stack(folder: Path, site: str, pages: int) -> Iterator[subprocess.Popen[bytes]]:
    here = environment(folder)
    import_parcels(folder, here, rows_of(site, pages))
    with (folder / "stack.log").open("wb") as log:
        stack = subprocess.Popen([*PROGRAM, "up"], env=here, stdout=log, stderr=log, start_new_session=True)
    try:
        yield stack
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(stack.pid, signal.SIGTERM)
        stack.wait()


def workers_of(stack: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The two largest: the master and the schedule are small."""
    every = psutil.Process(stack.pid).children(recursive=True)
    workers = [each for each in every if "dramatiq" in " ".join(each.cmdline())]
    return sorted(workers, key=lambda each: -each.memory_info().rss)[: os.cpu_count() or 1]


def as_it_goes_on(pages: int) -> bool:
    looks: list[tuple[int, float, float, int]] = []
    with tempfile.TemporaryDirectory(prefix="growth-") as scratch, running_site() as site:
        folder, began = Path(scratch), time.monotonic()
        with running_stack(folder, site, pages) as stack:
            database = folder / "data" / "lienworker.db"
            while len(looks) < 10:
                time.sleep(0.5)
                done = _completed(database)
                if done >= (len(looks) + 1) * pages // 10:
                    workers = workers_of(stack)
                    wal = database.with_name("lienworker.db-wal").stat().st_size / 1e6
                    memory = max(each.memory_info().rss for each in workers) / 1e6
                    looks.append((done, memory, wal, max(each.num_fds() for each in workers)))
                    rate = done / (time.monotonic() - began)
                    size = f"largest worker {memory:6.1f} MB, WAL {wal:5.1f} MB, {looks[-1][3]} files"
                    print(f"{done:>8,} pages: {size}, {rate:.0f} pages/s", flush=True)
    growth, peak = looks[-1][1] / looks[0][1], max(look[1] for look in looks)
    print(f"memory at the end {growth:.2f} times that after a tenth (bar: {MEMORY_BAR})")
    print(f"the largest worker had {peak:.0f} MB (bar: {PEAK_BAR:.0f})")
    return growth <= MEMORY_BAR and peak <= PEAK_BAR


def _completed(database: Path) -> int:
    import sqlite3

    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        sql = "SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'task' AND state = 'completed'"
        return int(connection.execute(sql).fetchone()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=int, default=0, help="pages of the long run, instead of the comparison")
    parser.add_argument("--pump", nargs=4, metavar=("FOLDER", "SITE", "FIRST", "PAGES"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.pump:
        folder, site, first, pages = chosen.pump
        print(pump_pages(Path(folder), site, int(first), int(pages)))
        return
    is_well = (
        as_it_goes_on(chosen.long)
        if chosen.long
        else as_it_grows(chosen.small, chosen.large, chosen.pages, chosen.rounds)
    )
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
