"""lienworker: the whole stack, all promises kept. Its worker processes and threads are the defaults of the machine.

python -m benchmarks.speed.with_lienworker --site http://127.0.0.1:1234 --pages 2000 --folder out [--gateway]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.speed.measuring import contender_arguments
from benchmarks.speed.page import parcel_id
from benchmarks.speed.site import host_address

PROGRAM = [sys.executable, "-m", "lienworker"]
#: The platform of the benchmark, as a user would add one: a file in a folder named by LIENWORKER_PLATFORMS.
_PLATFORM = """
import os

from benchmarks.speed.page import PATHS
from lienworker.platforms.selectors import SelectorPlatform, Spot


class Benchmark(SelectorPlatform):
    name = "benchmark"
    hosts = ("127.*",)
    delay = float(os.environ.get("BENCHMARK_DELAY", "0"))
    concurrency = 128
    fields = {name: Spot(path) for name, path in PATHS.items()}


PLATFORM = Benchmark()
"""


def environment(folder: Path) -> dict[str, str]:
    platforms = folder / "platforms"
    platforms.mkdir(exist_ok=True)
    (platforms / "benchmark.py").write_text(_PLATFORM)
    return {
        **os.environ,
        "LIENWORKER_DATA_DIR": str(folder / "data"),
        "LIENWORKER_PLATFORMS": str(platforms),
        "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.0/8",
        "LIENWORKER_WEB_PORT": "0",
        "LIENWORKER_LOG_LEVEL": "info",
        "STANDALONE": "true",
    }


def rows_of(site: str, pages: int, hosts: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A parcel a page; of these hosts in turns, which all have the site's port."""
    port = urlsplit(site).port
    sites = [f"http://{host}:{port}" for host in hosts] or [site]
    rows = []
    for n in range(pages):
        here = sites[n % len(sites)]
        rows.append(
            {
                "url": f"{here}/parcel/{parcel_id(n)}",
                "platform": "benchmark",
                "state": "XX",
                "county": urlsplit(here).hostname,
                "parcel_id": parcel_id(n),
            }
        )
    return rows


def import_parcels(folder: Path, here: dict[str, str], rows: list[dict[str, Any]]) -> None:
    parcels = folder / "parcels.jsonl"
    parcels.write_text("\n".join(map(json.dumps, rows)) + "\n")
    subprocess.run([*PROGRAM, "import", str(parcels)], env=here, check=True, stdout=subprocess.DEVNULL)


def start_gateway(folder: Path, here: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """The reference Gateway with the same tasks, of all priorities: it hands out one of each in a call."""
    tasks = folder / "tasks.jsonl"
    targets = ("state", "county", "parcel_id", "url")
    lines = (
        {"id": f"task-{n}", "platform": row["platform"], "priority": n % 4 + 1, "target": {k: row[k] for k in targets}}
        for n, row in enumerate(rows)
    )
    tasks.write_text("\n".join(map(json.dumps, lines)) + "\n")
    command = [*PROGRAM, "gateway", "serve", "--port", "0", "--token", "benchmark", "--tasks", str(tasks)]
    process = subprocess.Popen(command, env=here, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = next(word for word in process.stdout.readline().split() if word.startswith("http"))
    return {"STANDALONE": "false", "GATEWAY_URL": address.rstrip(".,"), "GATEWAY_TOKEN": "benchmark"}


def _more_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gateway", action="store_true")
    parser.add_argument("--hosts", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--beside", nargs="*", default=[])


def main() -> None:
    chosen = contender_arguments(__doc__, _more_arguments)
    here = environment(chosen.folder) | {"BENCHMARK_DELAY": str(chosen.delay)}
    rows = rows_of(chosen.site, chosen.pages, [host_address(n) for n in range(1, chosen.hosts + 1)])
    # Other hosts' tasks, in front of the rest: they are to hold up nobody.
    rows = [row for host in chosen.beside for row in rows_of(chosen.site, 40, [host])] + rows
    if chosen.gateway:
        here |= start_gateway(chosen.folder, here, rows)
    else:
        import_parcels(chosen.folder, here, rows)
    with (chosen.folder / "stack.log").open("wb") as log:
        os.dup2(log.fileno(), 2)
    os.execve(sys.executable, [*PROGRAM, "up"], here)


if __name__ == "__main__":
    main()
