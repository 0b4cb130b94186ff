"""lienworker: the whole stack, all promises kept. Its worker processes and threads are the defaults of the machine.

python -m benchmarks.speed.with_lienworker --site http://127.0.0.1:1234 --pages 2000 --folder out [--gateway]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.speed.measuring import contender_arguments, urls_of

PROGRAM = [sys.executable, "-m", "lienworker"]
#: The platform of the benchmark, as a user would add one: a file in a folder named by LIENWORKER_PLATFORMS.
_PLATFORM = """
from benchmarks.speed.page import PATHS
from lienworker.platforms.selectors import SelectorPlatform, Spot


class Benchmark(SelectorPlatform):
    name = "benchmark"
    hosts = ("127.*",)
    delay = 0.0
    concurrency = 64
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


def rows_of(site: str, pages: int) -> list[dict[str, Any]]:
    county = urlsplit(site).hostname
    return [
        {"url": url, "platform": "benchmark", "state": "XX", "county": county, "parcel_id": url.rpartition("/")[2]}
        for url in urls_of(site, pages)
    ]


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


def main() -> None:
    chosen = contender_arguments(__doc__, lambda parser: parser.add_argument("--gateway", action="store_true"))
    here = environment(chosen.folder)
    rows = rows_of(chosen.site, chosen.pages)
    if chosen.gateway:
        here |= start_gateway(chosen.folder, here, rows)
    else:
        import_parcels(chosen.folder, here, rows)
    with (chosen.folder / "stack.log").open("wb") as log:
        os.dup2(log.fileno(), 2)
    os.execve(sys.executable, [*PROGRAM, "up"], here)


if __name__ == "__main__":
    main()
