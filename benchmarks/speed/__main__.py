"""All contenders in turns, in one run, on the same pages.

    python -m benchmarks.speed [--pages 2000] [--rounds 3] [--gzip 9] [--only "bare loop" lienworker] [--write FOLDER]

A round is one run of each, so that whatever else the machine does meets all of them. The table shows medians; ratios
are taken within a round, since that is what a noisy machine leaves true.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.speed.chart import bars
from benchmarks.speed.measuring import Contender, Run, measure, running_site

_ROWS = ("rows.db", "SELECT count(*) FROM results")
_OURS = ("data/lienworker.db", "SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'task' AND state = 'completed'")
_SYNCED = ("data/lienworker.db", "SELECT count(*) FROM results WHERE synced = 1")


def _command(module: str, *options: str) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.speed.{module}", *options]


CONTENDERS = {
    "bare loop": Contender("bare loop, two processes", _command("bare_loop"), *_ROWS, "rows that were committed"),
    "lienworker": Contender("lienworker, standalone", _command("with_lienworker"), *_OURS, "everything committed"),
    "on-demand": Contender(
        "lienworker, on-demand, Gateway beside it",
        _command("with_lienworker", "--gateway"),
        *_SYNCED,
        "everything committed, and delivered",
    ),
    "scrapy x2": Contender("Scrapy, two processes, JOBDIR", _command("with_scrapy"), *_ROWS, "requests that wait"),
    "celery": Contender("Celery prefork, Redis, acks_late", _command("with_celery"), *_ROWS, "tasks, as Redis does"),
    "scrapy": Contender(
        "Scrapy, one process, JOBDIR", _command("with_scrapy", "--processes", "1"), *_ROWS, "requests that wait"
    ),
}
_NEEDS = {"scrapy x2": "scrapy", "scrapy": "scrapy", "celery": "celery"}
#: Of the loop, of Scrapy's two processes, of Celery; and on-demand, of the loop.
BARS = {
    ("lienworker", "bare loop"): 0.80,
    ("lienworker", "scrapy x2"): 1.8,
    ("lienworker", "celery"): 2.2,
    ("on-demand", "bare loop"): 0.75,
}


def run_in_turns(names: list[str], pages: int, rounds: int, where: Path | None) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in names}
    with running_site() as site, tempfile.TemporaryDirectory(prefix="speed-", dir=where) as scratch:
        for _ in range(rounds):
            for name in names:
                run = measure(CONTENDERS[name], site, pages, Path(scratch))
                runs[name].append(run)
                rate = f"{run.pages_per_second:8.1f} pages/s {run.cpu_ms:8.2f} ms CPU a page"
                rate += f" (and {run.gateway_cpu_ms:.2f} of the Gateway)" if run.gateway_cpu_ms else ""
                print(f"{name:<12} {rate} {run.asked_twice:4} asked for twice", flush=True)
    return runs


def ratio(runs: dict[str, list[Run]], ours: str, theirs: str) -> float:
    """The median over the rounds of what one did in terms of the other."""
    pairs = zip(runs[ours], runs[theirs], strict=True)
    return median(mine.pages_per_second / other.pages_per_second for mine, other in pairs)


def verdicts(runs: dict[str, list[Run]]) -> dict[str, tuple[float, float]]:
    known = {pair: bar for pair, bar in BARS.items() if pair[0] in runs and pair[1] in runs}
    return {f"{ours} / {theirs}": (ratio(runs, ours, theirs), bar) for (ours, theirs), bar in known.items()}


def table(runs: dict[str, list[Run]]) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    for name, each in runs.items():
        rows.append(
            {
                "name": CONTENDERS[name].name,
                "pages_per_second": round(median(run.pages_per_second for run in each), 1),
                "of_the_loop": round(ratio(runs, name, "bare loop"), 2) if "bare loop" in runs else 0.0,
                "cpu_ms_a_page": round(median(run.cpu_ms for run in each), 2),
                "gateway_cpu_ms_a_page": round(median(run.gateway_cpu_ms for run in each), 2),
                "survives_a_kill": CONTENDERS[name].promises,
            }
        )
    return sorted(rows, key=lambda row: -float(row["pages_per_second"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--gzip", type=int, default=9, help="the level at which the loop and the peers pack pages")
    parser.add_argument("--where", type=Path, help="the folder on whose disk everybody works")
    parser.add_argument("--write", type=Path, help="a folder for speed.json and speed.svg")
    chosen = parser.parse_args()
    os.environ["BENCHMARK_GZIP"] = str(chosen.gzip)
    missing = {name for name in chosen.only if name in _NEEDS and not importlib.util.find_spec(_NEEDS[name])}
    if missing:
        print(f"left out, since not installed (pip install -e '.[peers]'): {', '.join(sorted(missing))}")
    runs = run_in_turns([n for n in chosen.only if n not in missing], chosen.pages, chosen.rounds, chosen.where)
    rows = table(runs)
    print(f"\n{'':<42} {'pages/s':>8} {'of the loop':>12} {'CPU ms a page':>14}   a kill leaves")
    for row in rows:
        figures = f"{row['pages_per_second']:>8} {row['of_the_loop']:>12} {row['cpu_ms_a_page']:>14}"
        print(f"{row['name']:<42} {figures}   {row['survives_a_kill']}")
    judged = verdicts(runs)
    for pair, (found, bar) in judged.items():
        print(f"{pair:<24} {found:5.2f}   (bar: {bar:.2f})")
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        content = {"pages": chosen.pages, "gzip": chosen.gzip, "rounds": chosen.rounds, "rows": rows, "bars": judged}
        (chosen.write / "speed.json").write_text(json.dumps(content, indent=1) + "\n")
        (chosen.write / "speed.svg").write_text(bars([(str(r["name"]), float(r["pages_per_second"])) for r in rows]))
    sys.exit(0 if all(found >= bar for found, bar in judged.values()) else 1)


if __name__ == "__main__":
    main()
