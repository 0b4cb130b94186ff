"""Many hosts: politeness at full speed, and nobody held up by a slow or a dead neighbour.

    python -m benchmarks.hosts [--hosts 500] [--pages 5000] [--rounds 3]

Three runs of the stack in turns: one host without a delay; as many hosts as said with a second between two requests to
each; and 48 hosts with and without two others in front of them, of which one answers after five seconds and one not at
all. The spacing is measured at the site, from one arrival of a request to the next.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.speed.__main__ import CONTENDERS
from benchmarks.speed.measuring import Run, measure, running_site

RATE_BAR, FAIR_BAR = 0.90, 0.95
#: Seconds that two arrivals may be closer than asked for: a busy machine lets the first one come late.
JITTER = 0.15
_GOOD = 48
_SLOW, _DEAD = "127.0.9.1", "127.0.9.2"


def run(site: str, pages: int, *options: str, where: Path) -> Run:
    ours = CONTENDERS["lienworker"]
    return measure(replace(ours, command=[*ours.command, *options]), site, pages, where)


def closest(done: Run) -> float:
    """The shortest time between two requests to the same host."""
    times = defaultdict(list)
    for at, _, host in done.log:
        times[host].append(at)
    return min(later - earlier for each in times.values() for earlier, later in pairwise(each))


def polite_at_full_speed(hosts: int, pages: int, rounds: int, where: Path) -> bool:
    ratios, gaps = [], []
    with running_site("--hosts", str(hosts)) as site:
        for _ in range(rounds):
            alone = run(site, pages, where=where)
            many = run(site, pages, "--hosts", str(hosts), "--delay", "1.0", where=where)
            ratios.append(many.pages_per_second / alone.pages_per_second)
            gaps.append(closest(many))
            rates = f"{many.pages_per_second:.0f} pages/s of {hosts} hosts, {alone.pages_per_second:.0f} of one"
            print(f"{rates}: {ratios[-1]:.2f}; closest two requests to a host {gaps[-1]:.3f} s apart", flush=True)
    print(f"{hosts} hosts at one request a second: {median(ratios):.2f} of one host's rate   (bar: {RATE_BAR})")
    return median(ratios) >= RATE_BAR and min(gaps) >= 1.0 - JITTER


def nobody_held_up(rounds: int, where: Path) -> bool:
    ratios = []
    pages = _GOOD * 20
    options = ("--hosts", str(_GOOD), "--delay", "0.2")
    with running_site("--hosts", str(_GOOD), "--slow", _SLOW, "--seconds", "5") as site:
        for _ in range(rounds):
            alone = run(site, pages, *options, where=where)
            beside = run(site, pages, *options, "--beside", _SLOW, _DEAD, where=where)
            good = [at for at, _, host in beside.log if not host.startswith(_SLOW)]
            theirs = [at for at, _, _ in alone.log]
            ratios.append((max(theirs) - min(theirs)) / (max(good) - min(good)))
            print(
                f"48 hosts alone {max(theirs) - min(theirs):.2f} s, beside two bad ones {max(good) - min(good):.2f} s"
            )
    print(f"48 hosts beside a slow and a dead one: {median(ratios):.2f} of their speed alone   (bar: {FAIR_BAR})")
    return median(ratios) >= FAIR_BAR


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--pages", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--where", type=Path, help="the folder on whose disk it works")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hosts-", dir=chosen.where) as scratch:
        polite = polite_at_full_speed(chosen.hosts, chosen.pages, chosen.rounds, Path(scratch))
        fair = nobody_held_up(chosen.rounds, Path(scratch))
    sys.exit(0 if polite and fair else 1)


if __name__ == "__main__":
    main()
