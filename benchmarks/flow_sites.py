"""Flows at full size: four county sites at once, all pages of every parcel, with sessions that last and that end.

    python -m benchmarks.flow_sites [--parcels 500] [--delay 0.1] [--end-every 20]

One stack walks all four sites of `lienworker.testing.sites` twice: with sessions that last, and with sessions that end
in the middle of a parcel after so many. Everything is measured at the sites: spacing from one arrival to the next,
sessions that were opened, requests a parcel. Exit 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from lienworker.testing.serving import serving
from lienworker.testing.sites import AuctionSite, GuestSite, ServiceSite, SessionSite, WebFormsSite
from lienworker.testing.sites.auction import PAGE_SIZE
from tests.harness.node import Node, write_list
from tests.harness.pace import Lag

#: Sessions that may be opened for a hundred parcels, where they last.
SESSIONS_BAR = 0.01
#: What a request may come too early by, s; or this share of the delay, if that is more.
EARLY, EARLY_SHARE = 0.02, 0.02
_ITEMS_A_DAY = 15
_PARTS = {"iasworld": 4, "eagleweb": 3, "sri": 3, "realauction": -(-_ITEMS_A_DAY // PAGE_SIZE)}


def sites_for(parcels: int, end_every: int) -> list[SessionSite]:
    auction = AuctionSite(days=-(-parcels // _ITEMS_A_DAY), items_a_day=_ITEMS_A_DAY, end_every=end_every)
    return [
        WebFormsSite(end_every=end_every),
        auction,
        GuestSite(end_every=end_every),
        ServiceSite(end_every=end_every),
    ]


def walk_all(parcels: int, delay: float, end_every: int, where: Path) -> bool:
    """Run the stack over all sites; print what arrived there, and return whether every bar was met."""
    sites, folder = sites_for(parcels, end_every), where / "platforms"
    folder.mkdir(mode=0o700)
    node = Node(where / "data", LIENWORKER_PLATFORMS=str(folder), LIENWORKER_USER_AGENT="Mozilla/5.0 (benchmark)")
    with ExitStack() as stack:
        lag = stack.enter_context(Lag())
        for site in sites:
            stack.enter_context(serving(site))
            (folder / f"{site.name}.toml").write_text(site.definition(delay))
        rows = [row for site in sites for row in site.work(parcels)]
        started = time.monotonic()
        done = node.cli("run", write_list(where / "list.jsonl", rows), timeout=3_600)
        seconds = time.monotonic() - started
    kind = f"sessions end every {end_every} parcels" if end_every else "sessions last"
    print(f"\n{kind}: {len(rows):,} tasks in {seconds:.0f} s, exit code {done.returncode}", flush=True)
    met = [_judge(site, node, parcels, delay, lag, lasting=not end_every) for site in sites]
    return all(met)


def _judge(site: SessionSite, node: Node, parcels: int, delay: float, lag: Lag, *, lasting: bool) -> bool:
    tasks = node.sql("SELECT status, count(*) FROM tasks WHERE platform = ? GROUP BY 1", site.name)
    parts = Counter(
        dict(node.sql("SELECT t.task_id, count(*) FROM pages p JOIN tasks t USING (task_id) WHERE t.platform = ? "
                      "GROUP BY 1", site.name)).values()
    )  # fmt: skip
    wanted = len(site.work(parcels))
    whole = dict(tasks) == {"completed": wanted} and parts == {_PARTS[site.kind]: wanted}
    times = [arrival.at for arrival in site.arrivals]
    gaps = [(a, b - a) for a, b in pairwise(times)]
    closest = min(gap for _, gap in gaps)
    # A request that the machine let the site notice late makes the next one look early.
    bar = delay - max(EARLY, EARLY_SHARE * delay)
    early = sum(gap < bar and gap + lag.at(at) < bar for at, gap in gaps)
    few = not lasting or site.sessions_opened <= max(1, SESSIONS_BAR * parcels)
    print(
        f"  {site.kind:<12} {parcels} parcels, {len(site.arrivals):,} requests, "
        f"{dict(tasks)}, parts {dict(parts)}; closest two requests {1000 * closest:.0f} ms apart (asked "
        f"{1000 * delay:.0f}), {early} too early; {site.sessions_opened} sessions"
        f"{'' if whole and not early and few else '   <- MISSED'}",
        flush=True,
    )
    return whole and not early and few


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow_sites", description=__doc__.partition("\n")[0])
    parser.add_argument("--parcels", type=int, default=500, help="of each site")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds between two requests to a site")
    parser.add_argument(
        "--end-every", type=int, default=20, help="parcels that a session of the second run is good for"
    )
    asked = parser.parse_args()
    met = []
    for end_every in (0, asked.end_every):
        with tempfile.TemporaryDirectory() as where:
            met.append(walk_all(asked.parcels, asked.delay, end_every, Path(where)))
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
