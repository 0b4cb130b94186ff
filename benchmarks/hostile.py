"""What hostile pages cost: each kind by itself, then many of them at once through the scrape step of one worker, then
as many from a real site through its fetch step and its scrape step, side by side.

The bar: no page under 16 MB takes a worker past 400 MB, its child included, or 10 s of one core; 64 of them at once
neither. Times are of the processor, of both processes. The exit status is 1 where something is over.

    python -m benchmarks.hostile [--megabytes 16] [--at-once 64] [--kind NAME …]
    python -m benchmarks.hostile --fetch [--megabytes 16] [--at-once 64]      only the last of the three
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry
from lienworker.platforms.catalog.guarded import parse_guarded

if TYPE_CHECKING:
    from lienworker.steps.runtime import Runtime

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "platforms"))
from hostile import PAGES

MOST_SECONDS = 10.0
MOST_MB = 400.0
_TYPES = {"json": "application/json", "csv": "text/csv"}


@dataclass
class Usage:
    """Processor time and memory of this process and its children, looked at many times a second."""

    peak_mb: float = 0.0
    own_peak_mb: float = 0.0
    seconds: float = 0.0
    _cpu: dict[int, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def measured(self) -> Iterator[Usage]:
        self._look()
        before = dict(self._cpu)
        watch = threading.Thread(target=self._watch)
        watch.start()
        try:
            yield self
        finally:
            self._stop.set()
            watch.join()
            self._look()
            self.seconds = sum(self._cpu.values()) - sum(before.values())

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self._look()

    def _look(self) -> None:
        own, total = psutil.Process(), 0.0
        for process in [own, *own.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times, mb = process.cpu_times(), process.memory_info().rss / 1e6
                self._cpu[process.pid] = max(self._cpu.get(process.pid, 0.0), times.user + times.system)
                total += mb
                if process.pid == own.pid:
                    self.own_peak_mb = max(self.own_peak_mb, mb)
        self.peak_mb = max(self.peak_mb, total)


def _type_of(kind: str) -> str:
    return _TYPES.get(kind.split()[0], "text/html")


def measure_kind(kind: str, size: int) -> tuple[Usage, int, str]:
    """One page of a kind, whatever it is taken for, by the way that every page takes."""
    body = PAGES[kind](size)[:size]
    verdict = "a record"
    with Usage().measured() as usage:
        try:
            parse_guarded(default_registry(), Page("http://county.example/1", body, _type_of(kind)), Target())
        except PageError as problem:
            verdict = problem.reason
    return usage, len(body), verdict


def each_kind(kinds: list[str], size: int) -> bool:
    print(f"{'kind':<28} {'bytes':>10} {'s':>6} {'MB':>6}  verdict")
    fine = True
    for kind in kinds:
        # A process of its own: what the last page has left behind is not this one's.
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.hostile", "--one", kind, "--bytes", str(size)],
            capture_output=True,
            text=True,
        )
        print(done.stdout.rstrip() or f"{kind:<28} {done.stderr[-200:]}", flush=True)
        fine &= done.returncode == 0
    return fine


def one_kind(kind: str, size: int) -> bool:
    usage, size, verdict = measure_kind(kind, size)
    over = usage.seconds > MOST_SECONDS or usage.peak_mb > MOST_MB
    print(f"{kind:<28} {size:>10,} {usage.seconds:>6.2f} {usage.peak_mb:>6.0f}  {verdict}{'  OVER' if over else ''}")
    return not over


def prepare(root: Path, kinds: list[str], n: int, size: int) -> None:
    """Stores so many hostile pages, fetched and waiting to be scraped."""
    from lienworker.db.database import write
    from lienworker.fetching import Fetched
    from lienworker.outbox.claims import claim
    from lienworker.outbox.registration import register_in_transaction
    from lienworker.steps.fetch import Arrived, page_key, store_fetches
    from lienworker.store.raw_files import write_aside
    from lienworker.store.tasks import NewTask

    with _runtime(root) as here:
        with write("benchmark"):
            register_in_transaction([NewTask("cli", f"http://county.example/{m}") for m in range(n)])
        for row in claim("fetch", n, "t-benchmark", here.rules):
            kind = kinds[int(row.url.rpartition("/")[2]) % len(kinds)]
            body = PAGES[kind](size)[:size]
            written = write_aside(here.folder, page_key(here.registry, row), body, _type_of(kind))
            fetched = Fetched(row.url, 200, body, _type_of(kind), None, None, None, 0, 5)
            store_fetches(here.folder, here.retries, [Arrived(row, fetched, written)])


@contextlib.contextmanager
def _runtime(root: Path) -> Iterator[Runtime]:
    from dramatiq.asyncio import EventLoopThread

    from lienworker.settings import Settings
    from lienworker.steps.runtime import running

    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    settings = Settings(
        data_dir=root / "data", host_delay=0.0, host_concurrency=1000, allow_private_hosts=("127.0.0.1",)
    )
    with running(settings, "benchmark", 2, loop.loop) as here:
        yield here
    loop.stop()


def scrape_all(root: Path) -> bool:
    """All that wait, by two threads, as a worker process has them."""
    with _runtime(root) as here:
        return _work_off(here, "scraped", [lambda: _scrape(here)] * 2)


def fetch_all(root: Path, site: str, n: int) -> bool:
    """So many pages of the site, by a thread that fetches and one that scrapes what is left to it."""
    from lienworker.db.database import write
    from lienworker.outbox.registration import register_in_transaction
    from lienworker.steps.fetch import FetchLoop
    from lienworker.store.tasks import NewTask

    def fetch() -> None:
        with here.holder.lease() as token:
            FetchLoop(here.fetch, here.lane(token)).run()

    with _runtime(root) as here:
        with write("benchmark"):
            register_in_transaction([NewTask("cli", f"{site}/{m}") for m in range(n)])
        return _work_off(here, "fetched and scraped", [fetch, lambda: _scrape(here)])


def _scrape(here: Runtime) -> None:
    from lienworker.steps.scrape_lane import ScrapeRun

    with here.holder.lease() as token:
        ScrapeRun(here.scrape, here.slots, here.lane(token, quarantined=True)).work()


def _work_off(here: Runtime, what: str, steps: list[Callable[[], None]]) -> bool:
    """Take each step in a thread of its own, again and again until nothing is left; say what all of it has cost."""
    from lienworker.db.database import all_rows, close

    left = "SELECT 1 FROM outbox WHERE topic IN ('fetch', 'scrape') AND state IN ('waiting', 'leased') LIMIT 1"

    def work(step: Callable[[], None]) -> None:
        while any(all_rows(left)):
            step()
            time.sleep(0.1)
        close()

    (n,) = all_rows("SELECT count(*) FROM tasks")[0]
    here.watchdog.start(lambda parse: os._exit(1))
    with Usage().measured() as usage:
        threads = [threading.Thread(target=work, args=[step]) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ended = dict(all_rows("SELECT coalesce(reason, status), count(*) FROM tasks GROUP BY 1"))
    here.watchdog.stop()
    print(f"\n{n} at once, {what}: {usage.seconds:.0f} s of the processor, {usage.seconds / n:.2f} a page;", end=" ")
    print(f"at most {usage.own_peak_mb:.0f} MB in the worker, {usage.peak_mb:.0f} with its child")
    print(", ".join(f"{reason} {m}" for reason, m in sorted(ended.items())))
    return usage.peak_mb <= MOST_MB and usage.seconds <= MOST_SECONDS * n


@contextlib.contextmanager
def hostile_site(kinds: list[str], size: int) -> Iterator[str]:
    """A site of hostile pages, by number; every second one comes packed, and every fourth one is noise."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            n = int("0" + self.path[1:].removesuffix("robots.txt"))
            kind = kinds[n % len(kinds)]
            body = random.randbytes(size) if n % 4 == 2 else PAGES[kind](size)[:size]
            self.send_response(200)
            self.send_header("Content-Type", _type_of(kind))
            if n % 2:
                body = gzip.compress(body, 1)
                self.send_header("Content-Encoding", "gzip")
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # who has read enough of a robots.txt hangs up
                self.wfile.write(body)

        def log_message(self, *about: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def at_once(kinds: list[str], n: int, size: int) -> bool:
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-m", "benchmarks.hostile", "--at-once", str(n), "--bytes", str(size)]
        subprocess.run([*command, "--prepare", root, "--kind", *kinds], check=True)
        return subprocess.run([*command, "--scrape", root]).returncode == 0


def fetched_at_once(kinds: list[str], n: int, size: int) -> bool:
    with tempfile.TemporaryDirectory() as root, hostile_site(kinds, size) as site:
        command = [sys.executable, "-m", "benchmarks.hostile", "--at-once", str(n), "--site", site, "--into", root]
        return subprocess.run(command).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=16.0)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--kind", nargs="*", default=[])
    parser.add_argument("--fetch", action="store_true")
    for hidden in ("--one", "--bytes", "--prepare", "--scrape", "--site", "--into"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    size, kinds = int(chosen.bytes or chosen.megabytes * 1_000_000), chosen.kind or list(PAGES)
    if chosen.one:
        sys.exit(not one_kind(chosen.one, size))
    if chosen.prepare:
        sys.exit(prepare(Path(chosen.prepare), kinds, chosen.at_once, size))
    if chosen.scrape:
        sys.exit(not scrape_all(Path(chosen.scrape)))
    if chosen.site:
        sys.exit(not fetch_all(Path(chosen.into), chosen.site, chosen.at_once))
    fine = chosen.fetch or each_kind(kinds, size)
    if chosen.at_once and not chosen.fetch:
        fine &= at_once(kinds, chosen.at_once, size)
    if chosen.at_once:
        fine &= fetched_at_once(kinds, chosen.at_once, size)
    sys.exit(not fine)


if __name__ == "__main__":
    main()
