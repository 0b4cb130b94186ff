"""Every list, show and export command on a folder of a million tasks: seconds until its first line.

python -m benchmarks.looking [--rows 1000000] [--keep FOLDER]

Each command runs in a process of its own, as an operator types it, three times; the median counts, and Python's own
start is in it. A command is stopped once its first line is there; one that says nothing (an export of nothing) is
waited for. Last, what has no first line: the first table of a file that an earlier version wrote, whose columns are
looked for, and a whole workbook, with the memory that it took.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.web import fill
from lienworker.db.database import close, open_store, write
from lienworker.queries.export import selected
from lienworker.queries.filters import TaskFilter
from lienworker.store import columns

BAR_SECONDS = 1.0
_TIMES = 3
IMPORT = (
    "INSERT INTO imports (id, name, status, started_at, rows, added)"
    " VALUES (2, 'half.csv', 'done', '2026-01-01T00:00:00.000Z', 500000, 500000)",
    "UPDATE tasks SET import_id = 2 WHERE rowid % 2 = 0",
    "UPDATE tasks SET target_json = json_object('case_no', task_id, 'opening_bid', 100) WHERE rowid % 2 = 0",
)
COMMANDS = (
    "status",
    "tasks list", "tasks list --reverse", "tasks list --status failed", "tasks list --status expired",
    "tasks list --county 'county 7' --status failed --reason http_503", "tasks list --state fl --county 'COUNTY 7'",
    "tasks list --since 2026-06-01", "tasks list --since 2025-01-01 --reverse", "tasks list --import 2",
    "tasks list --text 99-0999999", "tasks list --text nothing-like-this", "tasks list --queue urgent",
    "tasks list --source gateway", "tasks list --json", "tasks list --platform nothing",
    "tasks show task-500000", "tasks show task-50000", "tasks show 03-0000003",
    "tasks show https://county3.example/parcel/3",
    "results list", "results list --reverse", "results list --county 'county 3'", "results list --import 2",
    "results list --since 2026-06-01", "results list --queue urgent", "results list --doubtful", "results list --json",
    "results list --text nothing-like-this", "results list --state XX",
    "results show task-500000", "results show 03-0000003",
    "results export", "results export --format json", "results export --format csv", "results export --text nothing",
    "results export --format csv --county nowhere", "results export --format csv --since 2030-01-01",
    "results export --format csv --county 'county 3'", "results export --format csv --import 2",
    "results export --fields task_id,owner_name", "results export --since 2026-06-01", "results export --queue urgent",
    "outbox status", "outbox list", "outbox list --reverse", "outbox list --status parked",
    "outbox list --status parked --reason gateway_refused", "outbox list --status discarded",
    "outbox list --county 'county 5'", "outbox list --county nowhere", "outbox list --topic report_failure",
    "outbox list --fingerprint f3", "outbox list --since 2030-01-01", "outbox list --json",
    "outbox show 900000", "outbox show task-500006",
    "imports list", "imports show 2", "imports list --since 2030-01-01",
    "counties list", "counties list --county 'county 3'", "counties show 'county 3'", "platforms list", "config show",
    "sources list", "sources show 'FL Dixie'",
    "harvests list", "hosts list", "hosts list --all", "hosts show county3.example",
)  # fmt: skip


def first_line(root: Path, words: str) -> float:
    """Seconds until a command has said something, on either stream, or has ended: an export of nothing is silent."""
    began = time.perf_counter()
    command = f"exec {sys.executable} -m lienworker {words} 2>&1"
    process = subprocess.Popen(
        ["sh", "-c", command], env={**os.environ, "LIENWORKER_DATA_DIR": str(root)}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    seconds = time.perf_counter() - began
    if line:
        process.kill()
    process.wait()
    process.stdout.close()
    assert not line.startswith((b"Error", b"Usage")), (words, line)
    assert line or process.returncode == 0, words
    return seconds


def measure(root: Path) -> bool:
    print(f"seconds to the first line (median and worst of {_TIMES}; the bar is {BAR_SECONDS:g}):")
    is_well = True
    for words in COMMANDS:
        times = [first_line(root, words) for _ in range(_TIMES)]
        middle = statistics.median(times)
        is_well &= middle < BAR_SECONDS
        print(f"  {middle:6.2f} {max(times):6.2f}  {'' if middle < BAR_SECONDS else 'SLOW  '}lienworker {words}")
    return is_well


def learn_columns(root: Path) -> None:
    """The rows were put in past the program, as by an earlier version: what its first table costs."""
    open_store(root)
    with write("bench"):
        columns.forget("since they were put in")
    began = time.perf_counter()
    selected(TaskFilter()).columns()
    print(f"{time.perf_counter() - began:.1f} s for the columns of a file that an earlier version wrote; once")
    close()


def workbook(root: Path) -> None:
    """Write all results as one workbook; print how long it took and how much memory."""
    with tempfile.TemporaryDirectory(prefix="lienworker-bench-looking-") as folder:
        path = Path(folder) / "all.xlsx"
        command = [sys.executable, "-m", "lienworker", "results", "export", "--output", str(path)]
        began = time.perf_counter()
        process = subprocess.Popen(command, env={**os.environ, "LIENWORKER_DATA_DIR": str(root)})
        _, code, used = os.wait4(process.pid, 0)
        assert code == 0
        size, seconds = path.stat().st_size / 1e6, time.perf_counter() - began
        print(f"a workbook of all results ({size:.0f} MB): {seconds:.0f} s, {used.ru_maxrss / 1024:.0f} MB of memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lienworker-bench-looking-") as folder:
        root = (options.keep or Path(folder) / "data").absolute()
        if not (root / "lienworker.db").exists():
            fill(root, options.rows)
            with contextlib.closing(sqlite3.connect(root / "lienworker.db")) as connection:
                for sql in IMPORT:
                    connection.execute(sql)
                connection.commit()
            learn_columns(root)
        is_well = measure(root)
        workbook(root)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
