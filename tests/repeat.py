"""The whole suite again and again, every second time beside a busy core: a test that fails by chance fails here.

python -m tests.repeat [--times 10] [--jobs 4]      (make test-repeat TIMES=10)

What pytest said is in build/repeat. Nothing stops it; the exit code is 1 where any run had a failure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

#: The same two parts as in `make test`.
PARTS = {"side-by-side": ["-n{jobs}", "--dist=worksteal", "-mnot alone"], "alone": ["-malone"]}
FOLDER = Path("build/repeat")
ROW = "{:>4}  {:<5}  {:>7}  {:>6}  {:>6}  {}"


@contextmanager
def busy_core() -> Iterator[None]:
    """A process that spins on one core."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


def run_suite(run: int, jobs: int) -> tuple[int, list[str]]:
    """Return how many passed, and the names of those that did not."""
    passed, failed = 0, []
    for part, options in PARTS.items():
        report = FOLDER / f"{run}-{part}.xml"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *(o.format(jobs=jobs) for o in options)]
        with report.with_suffix(".log").open("wb") as log:
            code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode
        ended = read_report(report)
        passed += sum(ended.values())
        failed += [name for name, is_well in ended.items() if not is_well]
        if code not in {0, 1} or not ended:  # pytest itself broke down
            failed.append(f"pytest ended with {code}: {report.with_suffix('.log')}")
    return passed, failed


def read_report(report: Path) -> dict[str, bool]:
    """Return whether each test passed, by its name; those that were skipped are left out."""
    ended: dict[str, bool] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        outcomes = {child.tag for child in case}
        if "skipped" not in outcomes:
            name = f"{case.get('classname')}::{case.get('name')}"
            ended[name] = ended.get(name, True) and not outcomes & {"failure", "error"}
    return ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=4)
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(ROW.format("run", "core", "seconds", "passed", "failed", "names of the failed"), flush=True)
    all_failed = 0
    for run in range(1, asked.times + 1):
        is_busy, began = run % 2 == 0, time.monotonic()
        if is_busy:
            with busy_core():
                passed, failed = run_suite(run, asked.jobs)
        else:
            passed, failed = run_suite(run, asked.jobs)
        seconds = time.monotonic() - began
        words = ROW.format(run, "busy" if is_busy else "free", f"{seconds:.0f}", passed, len(failed), " ".join(failed))
        print(words.rstrip(), flush=True)
        all_failed += len(failed)
    sys.exit(1 if all_failed else 0)


if __name__ == "__main__":
    main()
