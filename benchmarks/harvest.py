"""A layer of a million parcels: the stack against a bare loop, its memory, and what a parcel costs at the end.

    python -m benchmarks.harvest [--parcels 1000000]

The bare loop fetches the same pages one after the other, decodes them, and inserts the same task, result and outbox
rows in groups of the same size into tables with the same indexes, as durable as ours. It keeps no raw page, makes no
canonical record, keeps no tallies, and knows nothing of parcels that came before. The layer is served by a process of
its own.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from lienworker.db.migrations import _statements, known_migrations
from lienworker.outbox.outcomes import parcel_key
from lienworker.platforms.harvest import KINDS, Cursor, Plan
from lienworker.steps.harvest import CHUNK
from lienworker.steps.harvest_parcels import parcel_task_id
from lienworker.testing.layers import LAYER

RATE_BAR, MEMORY_BAR, GROWTH_BAR, LOOK_BAR = 0.5, 200.0, 1.15, 2.0
NOW = "2026-01-01T00:00:00.000Z"
TASK_SQL = (
    "INSERT INTO tasks (task_id, source, platform, state, county, parcel_id, url, target_json, queue, priority, status,"
    " created_at, received_at, updated_at, completed_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
RESULT_SQL = (
    "INSERT INTO results (task_id, generation, parcel_id, platform, state, county, data, html_path, raw_sha256,"
    " fetched_at, parser_version, scraped_at, parse_duration_ms, source_task, source_index)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
OUTBOX_SQL = (
    "INSERT INTO outbox (topic, task_id, generation, host, queue, priority, payload, state, due_at, reason, created_at,"
    " parcel_key, raw_id) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
)


@contextmanager
def served(count: int, folder: Path) -> Iterator[str]:
    """The layer's address, in a process of its own."""
    port = folder / "port"
    arguments = ["--count", str(count), "--port-file", str(port)]
    server = subprocess.Popen(
        [sys.executable, "-m", "lienworker.testing.layers", *arguments], stdout=subprocess.DEVNULL
    )
    try:
        while not (port.exists() and port.read_text().strip()):
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port.read_text().strip()}{LAYER}"
    finally:
        server.terminate()
        server.wait()


def bare_seconds(folder: Path, layer: str, count: int) -> float:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = full")
    for migration in known_migrations():
        for statement in _statements(migration.sql):
            if "TRIGGER" not in statement:
                connection.execute(statement)
    plan = Plan("arcgis", layer, "arcgis", (), where="1=1", id_column="OBJECTID")
    host = urlsplit(layer)
    began = time.perf_counter()
    with closing(connection), closing(http.client.HTTPConnection(host.netloc)) as line:
        for at in range(0, count, plan.size):
            address = KINDS["arcgis"].request(plan, Cursor(at=at, size=plan.size), None).url
            line.request("GET", address[len(f"http://{host.netloc}") :])
            features = json.loads(line.getresponse().read())["features"]
            for start in range(0, len(features), CHUNK):
                _insert(connection, layer, features[start : start + CHUNK])
    return time.perf_counter() - began


def _insert(connection: sqlite3.Connection, layer: str, features: list[dict[str, Any]]) -> None:
    tasks, results, entries = [], [], []
    for index, feature in enumerate(features):
        about = feature["attributes"]
        key = ("arcgis", "FL", "Dixie", about["PARCEL_ID"])
        task_id = parcel_task_id(*key)
        url = f"{layer}/{about['OBJECTID']}"
        tasks.append((task_id, "harvest", *key, url, "{}", "default", 3, "completed", NOW, NOW, NOW, NOW))
        about_result = ("raw/page.json.gz", "0" * 64, NOW, "arcgis/3", NOW, 0, "page", index)
        results.append((task_id, 1, about["PARCEL_ID"], "arcgis", "FL", "Dixie", json.dumps(feature), *about_result))
        about_row = ("held", 1, "standalone", 1, parcel_key(*key), 1)
        entries.append(("upload_result", task_id, 1, "", "default", 3, None, *about_row))
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(TASK_SQL, tasks)
    connection.executemany(RESULT_SQL, results)
    connection.executemany(OUTBOX_SQL, entries)
    connection.execute("COMMIT")


class Harvested:
    """One harvest by a whole stack, looked at from outside."""

    def __init__(self, folder: Path, layer: str, count: int) -> None:
        self.data = folder / "data"
        self._layer = layer
        self._count = count
        self.seconds = 0.0
        self.peak_mb = 0.0
        #: Parcels, and the processor time of the workers until then.
        self.samples: list[tuple[int, float]] = []

    def run(self) -> None:
        stack = subprocess.Popen(
            [sys.executable, "-m", "lienworker", "up"], env=self._environment(), stdout=subprocess.DEVNULL
        )
        try:
            self._wait_for("SELECT 1 FROM turns WHERE name = 'relay'")
            self.cli("harvest", self._layer, "--state", "FL", "--county", "Dixie")
            began = time.perf_counter()
            self._watch(stack.pid)
            self.seconds = time.perf_counter() - began
        finally:
            stack.terminate()
            stack.wait()

    def cli(self, *arguments: str) -> float:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "lienworker", *arguments],
            env=self._environment(),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - began

    def first_line_of_export(self) -> float:
        """Seconds until an export of everything shows its first line."""
        began = time.perf_counter()
        command = [sys.executable, "-m", "lienworker", "results", "export", "--format", "jsonl"]
        with subprocess.Popen(command, env=self._environment(), stdout=subprocess.PIPE) as export:
            assert export.stdout is not None
            export.stdout.readline()
            spent = time.perf_counter() - began
            export.kill()
        return spent

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LIENWORKER_DATA_DIR": str(self.data),
            "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1",
            "LIENWORKER_HOST_DELAY": "0",
            "LIENWORKER_WEB_PORT": "0",
            "STANDALONE": "true",
        }

    def _wait_for(self, sql: str) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if self._sql(sql):
                    return
            except sqlite3.OperationalError:
                pass
            time.sleep(0.1)
        raise TimeoutError("the stack does not come up")

    def _sql(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.data / "lienworker.db", timeout=30)) as database:
            return database.execute(sql).fetchall()

    def _watch(self, pid: int) -> None:
        while True:
            workers = [process for process in psutil.Process(pid).children(recursive=True) if _is_worker(process)]
            spent = sum(sum(process.cpu_times()[:2]) for process in workers)
            self.peak_mb = max([self.peak_mb, *(process.memory_info().rss / 1e6 for process in workers)])
            read, finished = self._sql("SELECT read, finished_at FROM harvests")[0]
            self.samples.append((read, spent))
            if finished:
                return
            time.sleep(0.25)

    def growth(self) -> float:
        """What a parcel costs in the last fifth, against the first fifth."""
        first = self._cost(0.0, 0.2)
        return self._cost(0.8, 1.0) / first if first else 0.0

    def _cost(self, low: float, high: float) -> float:
        chosen = [sample for sample in self.samples if low * self._count <= sample[0] <= high * self._count]
        (read_a, spent_a), (read_b, spent_b) = chosen[0], chosen[-1]
        return (spent_b - spent_a) / max(1, read_b - read_a)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "dramatiq" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parcels", type=int, default=1_000_000)
    count = parser.parse_args().parcels
    with tempfile.TemporaryDirectory() as name, served(count, Path(name)) as layer:
        bare = bare_seconds(Path(name), layer, count)
        ours = Harvested(Path(name), layer, count)
        ours.run()
        looks = {command: ours.cli(*command.split()) for command in ("status", "results list", "harvests list")}
        looks["results export, first line"] = ours.first_line_of_export()
    ratio, growth = bare / ours.seconds, ours.growth()
    print(f"parcels              {count:,}")
    print(f"bare loop            {count / bare:,.0f} parcels/s")
    print(f"lienworker harvest   {count / ours.seconds:,.0f} parcels/s")
    print(f"ratio                {ratio:.2f}   (bar: {RATE_BAR})")
    print(f"peak memory          {ours.peak_mb:.0f} MB, the largest worker   (bar: {MEMORY_BAR:.0f})")
    print(f"cost at the end      {growth:.2f} of the beginning   (bar: {GROWTH_BAR})")
    for command, seconds in looks.items():
        print(f"{command:<30} {seconds:.2f} s   (bar: {LOOK_BAR})")
    is_good = ratio >= RATE_BAR and ours.peak_mb < MEMORY_BAR and growth <= GROWTH_BAR
    sys.exit(0 if is_good and max(looks.values()) <= LOOK_BAR else 1)


if __name__ == "__main__":
    main()
