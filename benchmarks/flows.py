"""Flows: what they cost pages of one GET, fast hosts beside them, and the sites that they lead to.

    python -m benchmarks.flows cpu --old FOLDER [--pairs 10] [--pages 1500]     a checkout of the version before
    python -m benchmarks.flows fair [--rounds 3] [--hosts 200]
    python -m benchmarks.flows site [--parcels 500] [--delay 0.05] [--lasts 20]

`cpu`: processor time a page of `lienworker run`, old and new in turns. `fair`: the time in which a fast host serves its
pages, alone and beside hosts with slow flows. `site`: spacing and sessions as the site sees them, and what is
lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

from aiohttp import web

from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.session_site import SessionSite

CPU_BAR, FAIR_BAR = 1.03, 0.95
#: What two arrivals may be closer than the host's delay: 20 ms or 2 %.
_SLACK, _SHARE = 0.020, 0.02
#: A host that its own delay bounds, and not the processor: what flows cost that would not be a matter of places.
_FAST = 'name = "fast"\nextends = "demo"\ndelay = 0.02\nconcurrency = 32\n'
_HERE = Path(__file__).parents[1]


def lienworker(where: Path, rows: list[dict[str, str]], code: Path = _HERE, **settings: str) -> float:
    """`lienworker run` to its end in a folder of its own; return its processor time, s."""
    listing = where / "rows.jsonl"
    listing.write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = {
        **os.environ,
        "PYTHONPATH": str(code),
        "LIENWORKER_DATA_DIR": str(where / "data"),
        "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.0/8",
        "LIENWORKER_PLATFORMS": str(where / "platforms"),
        "LIENWORKER_ROBOTS": "ignore",
        **settings,
    }
    (where / "platforms").mkdir(mode=0o700, exist_ok=True)
    before = _cpu()
    command = [sys.executable, "-m", "lienworker", "run", str(listing)]
    done = subprocess.run(command, env=environment, cwd=where, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr[-3000:])
    return _cpu() - before


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def statuses(where: Path) -> dict[str, int]:
    with closing(sqlite3.connect(where / "data" / "lienworker.db")) as database:
        return dict(database.execute("SELECT status, count(*) FROM tasks GROUP BY 1").fetchall())


def measure_cpu(old: Path, pairs: int, pages: int) -> bool:
    ratios = []
    with demo_site() as site:
        for n in range(pairs):
            used = {}
            for code in (old, _HERE) if n % 2 else (_HERE, old):
                with tempfile.TemporaryDirectory() as place:
                    settings = {"LIENWORKER_HOST_DELAY": "0", "LIENWORKER_HOST_CONCURRENCY": "64"}
                    used[code] = lienworker(Path(place), site.parcels(pages), code, **settings) / pages
            ratios.append(used[_HERE] / used[old])
            print(
                f"CPU a page: old {1000 * used[old]:.3f} ms, new {1000 * used[_HERE]:.3f} ms: {ratios[-1]:.3f}",
                flush=True,
            )
    print(f"CPU a page, new to old: median {median(ratios):.3f} of {pairs} pairs   (bar: {CPU_BAR})")
    return median(ratios) <= CPU_BAR


@contextmanager
def everywhere(site: SessionSite) -> Iterator[int]:
    """The site on every address of the loopback network; yields its port."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(site.app(), access_log=None, shutdown_timeout=0.1)
    loop.run_until_complete(runner.setup())
    loop.run_until_complete(web.TCPSite(runner, "0.0.0.0", 0).start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield runner.addresses[0][1]
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def fast_seconds(site: DemoSite, slow: list[dict[str, str]], definition: str, pages: int) -> float:
    """Return how long the fast host's pages took, by its own log."""
    before = len(site.log)
    with tempfile.TemporaryDirectory() as place:
        where = Path(place)
        (where / "platforms").mkdir(mode=0o700)
        (where / "platforms" / "fast.toml").write_text(_FAST)
        (where / "platforms" / "sessioned.toml").write_text(definition)
        fast = [{**row, "platform": "fast"} for row in site.parcels(pages)]
        lienworker(where, slow + fast)
    times = [at for path, at in site.log[before:] if path.startswith("/parcel/")]
    return max(times) - min(times)


def measure_fairness(rounds: int, hosts: int, pages: int) -> bool:
    ratios = []
    slow_site = SessionSite(latency=3.0)
    with demo_site(latency=0.05) as fast, everywhere(slow_site) as port:
        definition = slow_site.definition(delay=1.0)  # its address is empty: each row brings its own
        addresses = [f"http://127.0.{10 + n // 200}.{1 + n % 200}:{port}" for n in range(hosts)]
        slow = [
            {**slow_site.row(f"0{k}-{n}"), "url": f"{url}/search?parcel_id=0{k}-{n}", "base_url": url}
            for n, url in enumerate(addresses)
            for k in range(2)
        ]
        for _ in range(rounds):
            alone = fast_seconds(fast, [], definition, pages)
            beside = fast_seconds(fast, slow, definition, pages)
            ratios.append(alone / beside)
            print(
                f"{pages} pages alone {alone:.2f} s, beside {hosts} slow flows {beside:.2f} s: {ratios[-1]:.3f}",
                flush=True,
            )
    print(f"a fast host beside {hosts} hosts with slow flows: {median(ratios):.3f} of its speed   (bar: {FAIR_BAR})")
    return median(ratios) >= FAIR_BAR


def measure_site(parcels: int, delay: float, lasts: int) -> bool:
    site = SessionSite(lasts=lasts)
    with everywhere(site) as port, tempfile.TemporaryDirectory() as place:
        site.url, where = f"http://127.0.0.1:{port}", Path(place)
        (where / "platforms").mkdir(mode=0o700)
        (where / "platforms" / "sessioned.toml").write_text(site.definition(delay=delay))
        lienworker(where, [site.row(f"01-{n}") for n in range(parcels)])
        ended = statuses(where)
    gaps = [later - earlier for (_, earlier), (_, later) in pairwise(site.log)]
    closest, allowed = min(gaps), delay - max(_SLACK, _SHARE * delay)
    sessions = f"{site.opened} sessions ({site.opened / parcels:.1%} of the parcels)"
    print(f"{parcels} parcels, {len(site.log)} requests, {sessions}, ended: {ended}")
    wanted = f"asked for {1000 * delay:.0f} ms, at least {1000 * allowed:.0f}"
    print(
        f"closest two requests {1000 * closest:.1f} ms apart, {sum(gap < allowed for gap in gaps)} too close; {wanted}"
    )
    return ended == {"completed": parcels} and closest >= allowed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cpu", "fair", "site"))
    parser.add_argument("--old", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--parcels", type=int, default=500)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--lasts", type=int, default=1_000_000)
    asked = parser.parse_args()
    if asked.what == "cpu":
        if asked.old is None:
            parser.error("--old: a checkout of the version to compare with")
        is_good = measure_cpu(asked.old, asked.pairs, asked.pages)
    elif asked.what == "fair":
        is_good = measure_fairness(asked.rounds, asked.hosts, asked.pages)
    else:
        is_good = measure_site(asked.parcels, asked.delay, asked.lasts)
    raise SystemExit(0 if is_good else 1)


if __name__ == "__main__":
    main()
