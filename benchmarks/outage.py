"""What the Gateway may do to a worker, at full size and through the real stack: workers, schedule, Redis, SQLite, HTTP.

    python -m benchmarks.outage [outage] [back] [storm] [refused] [hang] [limited]        all of them if none is named

outage    results are made while nothing listens at the Gateway's address; then it comes back
back      ready results wait for a Gateway that is away for 40 s, against the same drain with one that is there
storm     the Gateway fails three calls in ten, in every way it knows, all at once
refused   one result among many that the Gateway's database never takes
hang      scraping while every call of the Gateway hangs, against scraping with no Gateway at all, in turns
limited   a few calls get a 429, against none; then many do

Each says what came out and whether the bar holds; the exit code is 1 if one does not.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.draining import fill
from lienworker.db.database import close
from lienworker.testing.county.site import DemoSite, demo_site
from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from lienworker.testing.gateway.state import Request

#: So long nothing listens, s; then the first result is there so soon, s, and the rest at this share of the full rate.
AWAY, FIRST_RESULT, BACK_BAR = 40.0, 5.0, 0.70
#: Scraping with a Gateway that hangs, as a share of scraping without one.
HANG_BAR = 0.90
MOST_CALLS = 40
#: Results a second with 3 % of 429, as a share of those without; and what each 429 asks for, s.
LIMITED_BAR = 0.40
LIMITED, ASKED = 0.03, 2
#: With so many the endpoint pauses, for what was asked: not for times of our own, which begin at 24 s.
MANY_LIMITED, OWN_PAUSE = 0.40, 20
#: How a call can fail, with its share of all calls: 30 % together.
WAYS = {
    "down": 0.05,
    "hang": 0.003,
    "reset": 0.05,
    "lost_reply": 0.05,
    "half_json": 0.03,
    "html": 0.02,
    "401": 0.017,
    "403": 0.01,
    "429": 0.005,
    "429-date": 0.005,
    "500": 0.03,
    "502": 0.015,
    "503": 0.015,
}
_REPLY_SUFFERS = {"reset", "lost_reply", "half_json"}


class BarMissedError(Exception):
    """What should have come out, and what did."""


def require(holds: object, words: str) -> None:
    if not holds:
        raise BarMissedError(words)


# A worker


@dataclass(frozen=True)
class Worker:
    """A data folder and the settings with which real commands run on it."""

    root: Path
    settings: dict[str, str]

    def environment(self) -> dict[str, str]:
        usual = {
            "LIENWORKER_DATA_DIR": str(self.root),
            "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1",
            "LIENWORKER_HOST_DELAY": "0",
            "LIENWORKER_HOST_CONCURRENCY": "64",
            "LIENWORKER_GATEWAY_RETRY": "0.3",  # 30 s in real life: nobody would wait for this to end
            "LIENWORKER_TASK_EXPIRY": "80000",
            "LIENWORKER_WEB_PORT": "0",
            "LIENWORKER_LOG_LEVEL": "error",
        }
        return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **usual, **self.settings}

    def run(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "lienworker", *arguments]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True)
        require(done.returncode == 0, f"lienworker {' '.join(arguments)}: {done.stdout}{done.stderr}")

    @contextlib.contextmanager
    def up(self) -> Iterator[None]:
        command = [sys.executable, "-m", "lienworker", "up"]
        process = subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)

    def rows(self, sql: str) -> list[Any]:
        """Reads the database from outside, as anybody could; nothing while there is none."""
        try:
            with contextlib.closing(sqlite3.connect(self.root / "lienworker.db", timeout=30)) as connection:
                return connection.execute(sql).fetchall()
        except sqlite3.OperationalError:
            return []

    def count(self, sql: str) -> int:
        rows = self.rows(f"SELECT count(*) FROM {sql}")
        return int(rows[0][0]) if rows else 0

    def wait_for(self, sql: str, n: int, seconds: float) -> None:
        self.wait_until(lambda: self.count(sql) >= n, seconds, f"{n} of {sql}")

    def wait_until(self, holds: Callable[[], object], seconds: float, words: str) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            require(time.monotonic() < deadline, f"not within {seconds:.0f} s: {words}; {self.states()}")
            time.sleep(0.2)

    def states(self) -> str:
        sql = "SELECT topic || ' ' || state || ' ' || coalesce(reason, ''), count(*) FROM outbox GROUP BY 1"
        return ", ".join(f"{n} {what}" for what, n in self.rows(sql))


def worker_of(root: Path, gateway: ReferenceGateway, **settings: str) -> Worker:
    return Worker(root, {"GATEWAY_URL": gateway.url, "GATEWAY_TOKEN": gateway.token, **settings})


def import_parcels(worker: Worker, site: DemoSite, n: int) -> None:
    path = worker.root.parent / f"{worker.root.name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in site.parcels(n)), encoding="utf-8")
    worker.run("import", str(path))


def require_raw_before_result(gateway: ReferenceGateway) -> None:
    """By the order in which the Gateway stored things."""
    first: dict[str, int] = {}
    for raw in gateway.state.raw_uploads:
        first.setdefault(json.loads(raw.metadata)["raw_html_hash"], raw.seq)
    for key, versions in gateway.state.history.items():
        for version in versions:
            came = first.get(version.row.raw_html_hash or "")
            require(came is not None and came < version.seq, f"the result of {key} came before its raw file")


# The bars


def outage(root: Path, n: int = 5000) -> str:
    """Everything arrives once the Gateway is back, each raw file before its result, and nothing is parked."""
    with demo_site() as site, reference_gateway() as gateway:
        gateway.stop_listening()
        worker = worker_of(root / "data", gateway)
        import_parcels(worker, site, n)
        with worker.up():
            worker.wait_for("results", n, seconds=30 + n / 10)
            require(not gateway.state.requests, "the Gateway was down and yet was asked")
            gateway.start_listening()
            began = time.monotonic()
            worker.wait_for("results WHERE synced = 1", n, seconds=60 + n / 20)
            seconds = time.monotonic() - began
        require(len(gateway.state.results) == n, f"{len(gateway.state.results)} results arrived")
        require(len(gateway.state.raw_files) == n, f"{len(gateway.state.raw_files)} raw files arrived")
        require(not worker.count("outbox WHERE state = 'parked'"), f"parked: {worker.states()}")
        require(worker.rows("SELECT max(attempts) FROM outbox WHERE topic LIKE 'upload%'") == [(0,)], "a try was lost")
        sent_again = sum(len(versions) - 1 for versions in gateway.state.history.values())
        require(not sent_again, f"{sent_again} results were stored twice")
        require_raw_before_result(gateway)
        worker.run("doctor")
    return f"{n:,} results and raw files arrived within {seconds:.1f} s of its return, none parked, none twice"


def back(root: Path, n: int = 5000, away: float = AWAY, bar: float = BACK_BAR) -> str:
    """The first result is there soon after the Gateway is, and the rest comes as fast as in any drain."""
    with reference_gateway() as gateway:
        full = _rate(_through(gateway, root / "there", lambda worker: fill(worker.root, n), n, 0.0), n)
    with reference_gateway() as gateway:
        gateway.stop_listening()
        worker = worker_of(root / "away", gateway, LIENWORKER_GATEWAY_RETRY="30")
        fill(worker.root, n)
        with worker.up():
            worker.wait_for("breakers WHERE endpoint = 'raw' AND is_open", 1, seconds=60)
            time.sleep(away)
            gateway.start_listening()
            began = time.time()  # the clock of the Gateway's log
            worker.wait_for("results WHERE synced = 1", n, seconds=120 + n / 20)
        calls = _uploads(gateway)
        require(not worker.count("outbox WHERE state = 'parked'"), f"parked: {worker.states()}")
        require_raw_before_result(gateway)
    first = min(call.finished or math.inf for call in calls if call.endpoint == "results") - began
    rate = _rate(calls, n)
    words = (
        f"away for {away:.0f} s: first result {first:.1f} s after its return (bar: {FIRST_RESULT:.0f}), then"
        f" {rate:,.0f} results/s of {n:,}, {full:,.0f} where it was never away: {rate / full:.2f} (bar: {bar:.2f})"
    )
    require(first <= FIRST_RESULT and rate / full >= bar, words)
    return words


def _uploads(gateway: ReferenceGateway) -> list[Request]:
    return [call for call in gateway.state.requests if call.endpoint in {"raw", "results"}]


def _rate(calls: list[Request], n: int) -> float:
    """Results a second from the first request of an upload to the last reply, by the Gateway's log."""
    return n / (max(call.finished or 0.0 for call in calls) - min(call.time for call in calls))


def storm(root: Path, n: int = 2000) -> str:
    """Nothing that we had committed is lost, and nothing is parked but what the Gateway truly refuses."""
    with demo_site() as site, reference_gateway() as gateway:
        tasks = gateway_tasks(site, n)
        gateway.configure(retry_without_tasks=1)
        gateway.enqueue(*tasks)
        refused = tasks[10 :: max(1, n // 5)]
        bad = {str(task["task_id"]) for task in refused}
        gateway.fault("parcels", names=[task["target"]["parcel_id"] for task in refused])
        break_everything(gateway)
        worker = worker_of(root / "data", gateway, LIENWORKER_MAX_WAITING="500")
        began = time.monotonic()
        with worker.up():
            worker.wait_until(lambda: gateway.state.waiting_tasks == 0, 120 + n / 2, "all tasks handed out")
            names = ", ".join(f"'{name}'" for name in bad)
            left = f"outbox WHERE state IN ('waiting', 'leased') AND task_id NOT IN ({names})"
            worker.wait_until(lambda: worker.count(left) == 0, 300 + n / 5, "everything at its end")
        return _after_the_storm(worker, gateway, n, bad, time.monotonic() - began)


def gateway_tasks(site: DemoSite, n: int) -> list[dict[str, Any]]:
    """Tasks as the Gateway hands them out, of all priorities."""
    places = ("parcel_id", "state", "county", "url")
    return [
        {
            "task_id": f"task-{number}",
            "type": "scrape",
            "platform": row["platform"],
            "target": {name: row[name] for name in places},
            "priority": 1 + number % 4,
        }
        for number, row in enumerate(site.parcels(n), 1)
    ]


def break_everything(gateway: ReferenceGateway) -> None:
    """A fault meets only the calls that those before it have spared, so its dice are loaded by as much."""
    spared = 1.0
    for seed, way in enumerate(sorted(WAYS, key=_REPLY_SUFFERS.__contains__)):  # what spoils a reply comes last
        gateway.fault(way, probability=WAYS[way] / spared, seconds=1, seed=seed)
        spared -= WAYS[way]
    gateway.fault("database_down", endpoint="results", probability=0.1, seed=1)
    gateway.fault("database_down", endpoint="raw", probability=0.02, seed=1)
    gateway.fault("slow", probability=0.05, seconds=0.1, seed=1)


def _after_the_storm(worker: Worker, gateway: ReferenceGateway, n: int, bad: set[str], seconds: float) -> str:
    handed_out = {name for name, record in gateway.state.tasks.items() if record.times_handed_out}
    kept = {row[0] for row in worker.rows("SELECT task_id FROM tasks")}
    lost = handed_out - kept
    require(len(handed_out) == n, f"{len(handed_out)} of {n} tasks were handed out")
    suffered = sum(call.fault in _REPLY_SUFFERS for call in gateway.state.calls("work"))
    require(len(lost) <= 4 * suffered, f"{len(lost)} tasks are lost, with {suffered} replies that did not arrive whole")
    parked = {row[0] for row in worker.rows("SELECT task_id FROM outbox WHERE state = 'parked'")}
    require(parked <= bad, f"parked without need: {parked - bad}")
    delivered = {row.task_id for row in gateway.state.results.values()}
    require(delivered == kept - bad, f"committed and not delivered: {kept - bad - delivered}")
    require_raw_before_result(gateway)
    worker.run("doctor")
    calls = [call for call in gateway.state.requests if call.endpoint in {"work", "raw", "results", "fail", "complete"}]
    failed = Counter("fault" for call in calls if call.fault and call.fault != "slow")["fault"]
    return (
        f"{n:,} tasks in {seconds:.0f} s with {failed / len(calls):.0%} of {len(calls):,} calls failing:"
        f" {len(kept):,} kept, {len(lost)} in replies that never arrived, {len(delivered):,} delivered,"
        f" {len(parked)} of the {len(bad & kept)} refused ones parked, no other"
    )


def refused(root: Path, n: int = 1000) -> str:
    """All the others are delivered, the one is parked with the Gateway's words, and few calls were needed."""
    words = "ERROR: numeric field overflow (SQLSTATE 22003)"
    fill(root / "data", n)
    close()
    with reference_gateway() as gateway:
        worker = worker_of(root / "data", gateway)
        # An early one: a row that fails alone when nothing else is left to send could as well be the Gateway's trouble.
        chosen = worker.rows("SELECT parcel_id FROM results ORDER BY task_id")[0][0]
        gateway.fault("parcels", names=[chosen], words=words)
        with worker.up():
            worker.wait_for("results WHERE synced = 1", n - 1, seconds=60 + n / 10)
            worker.wait_for("outbox WHERE state = 'parked'", 1, seconds=120)
        require(len(gateway.state.results) == n - 1, f"{len(gateway.state.results)} results arrived")
        ((said,),) = worker.rows(
            "SELECT error FROM attempts WHERE outbox_id = (SELECT id FROM outbox WHERE state = 'parked') LIMIT 1"
        )
        require(words in said, f"parked with other words: {said}")
        calls = len(gateway.state.calls("results"))
        require(calls <= MOST_CALLS, f"{calls} calls of /internal/results, the bar is {MOST_CALLS}")
        worker.run("doctor")
    return f"{n - 1:,} delivered, 1 parked with the Gateway's words, {calls} calls (bar: {MOST_CALLS})"


def hang(root: Path, pages: int = 2500, rounds: int = 5) -> str:
    """Scraping is as fast as without a Gateway. A machine that grows slower or faster meets both: in turns, the first
    one of a pair the second one of the next, and compared within a pair."""
    ratios = []
    with demo_site() as site:
        for turn in range(rounds):
            speed = {}
            for kind in ("hanging", "alone") if turn % 2 else ("alone", "hanging"):
                speed[kind] = _beside_a_hanging_gateway(
                    root / f"{kind}-{turn}", site, pages, is_there=kind == "hanging"
                )
            ratios.append(speed["hanging"] / speed["alone"])
            print(f"hang      {speed['hanging']:.0f} pages/s, {speed['alone']:.0f} without a Gateway", flush=True)
    ratio = statistics.median(ratios)
    words = f"{ratio:.2f} of the speed without a Gateway (bar: {HANG_BAR:.2f}; median of {rounds} pairs)"
    require(ratio >= HANG_BAR, words)
    return words


def _beside_a_hanging_gateway(folder: Path, site: DemoSite, pages: int, *, is_there: bool) -> float:
    if not is_there:
        return _scrape(Worker(folder, {"STANDALONE": "true"}), site, pages)
    with reference_gateway() as gateway:
        gateway.fault("hang")
        speed = _scrape(worker_of(folder, gateway), site, pages)
        require(gateway.state.requests, "the Gateway was never asked")
        return speed


def _scrape(worker: Worker, site: DemoSite, pages: int) -> float:
    """Pages a second, from the first page fetched to the last result stored, by the database's own times."""
    import_parcels(worker, site, pages)
    with worker.up():
        worker.wait_for("results", pages, seconds=60 + pages / 10)
    times = "julianday(min(fetched_at)), julianday(max(scraped_at))"
    ((first, last),) = worker.rows(f"SELECT {times} FROM results")
    return float(pages / (86400 * (last - first)))


def limited(root: Path, n: int = 2000, bar: float = LIMITED_BAR) -> str:
    """A few 429 cost little, and no row goes before its own wait is over; with many, the endpoint pauses as asked."""
    with demo_site() as site:
        scraped = _ratio(root / "scraped", lambda worker: import_parcels(worker, site, n), n)
        drained = _ratio(root / "drained", lambda worker: fill(worker.root, n), n)
        pauses = _pauses_with_many(root / "many", site, max(20, n // 50))
    words = (
        f"with {LIMITED:.0%} of the calls told to wait {ASKED} s, from the county on {scraped.words}, of ready results"
        f" {drained.words} (bar: {bar:.2f}), none before its time; with {MANY_LIMITED:.0%} of 429 the endpoint paused"
        f" {pauses} times as asked"
    )
    require(min(scraped.ratio, drained.ratio) >= bar, words)
    return words


@dataclass(frozen=True)
class Limited:
    ratio: float
    words: str


def _ratio(root: Path, prepare: Callable[[Worker], object], n: int) -> Limited:
    root.mkdir()
    alone, _ = _delivered_a_second(root / "alone", prepare, n, 0.0)
    with_some, refused = _delivered_a_second(root / "some", prepare, n, LIMITED)
    ratio = with_some / alone
    words = f"{with_some:.0f} results/s ({_waits(refused)}) and {alone:.0f} without: {ratio:.2f}"
    return Limited(ratio, words)


def _delivered_a_second(
    folder: Path, prepare: Callable[[Worker], object], n: int, share: float
) -> tuple[float, list[Request]]:
    """Return the rate, and the calls that got a 429."""
    with reference_gateway() as gateway:
        calls = _through(gateway, folder, prepare, n, share)
    return _rate(calls, n), [call for call in calls if call.status == 429]


def _waits(refused: list[Request]) -> str:
    """Say how often one file or result was told to wait at the most: no delivery can be shorter than these waits."""
    times = Counter((call.endpoint, name) for call in refused for name in call.names)
    return f"{len(refused)} calls, {max(times.values(), default=0)} in a row at the most"


def _pauses_with_many(folder: Path, site: DemoSite, n: int) -> int:
    with reference_gateway() as gateway:
        calls = _through(gateway, folder, lambda worker: import_parcels(worker, site, n), n, MANY_LIMITED)
    times = sorted(call.time for call in calls if call.endpoint == "raw")
    gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
    require(max(gaps) < OWN_PAUSE, f"{max(gaps):.0f} s without a call, where {ASKED} s were asked for")
    pauses = sum(gap > 0.9 * ASKED for gap in gaps)
    require(pauses >= n // 20, f"{pauses} pauses with {len(times)} calls")
    return pauses


def _through(
    gateway: ReferenceGateway, folder: Path, prepare: Callable[[Worker], object], n: int, share: float
) -> list[Request]:
    """Bring what was prepared to the Gateway, with times as in real life; return the calls that brought it."""
    gateway.fault("429", probability=share, seconds=ASKED, seed=1)
    worker = worker_of(folder, gateway, LIENWORKER_GATEWAY_RETRY="30")
    prepare(worker)
    with worker.up():
        worker.wait_for("results WHERE synced = 1", n, seconds=180 + n / 5)
    require(not (early := gateway.state.too_early()), f"sent before its wait was over: {early[:3]}")
    require(worker.rows("SELECT max(attempts) FROM outbox WHERE topic LIKE 'upload%'") == [(0,)], "a try was lost")
    require(not worker.count("outbox WHERE state = 'parked'"), f"parked: {worker.states()}")
    return _uploads(gateway)


BARS: dict[str, Callable[[Path], str]] = {
    "outage": outage,
    "back": back,
    "storm": storm,
    "refused": refused,
    "hang": hang,
    "limited": limited,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bars", nargs="*", help=", ".join(BARS))
    chosen = parser.parse_args().bars or list(BARS)
    if unknown := set(chosen) - set(BARS):
        parser.error(f"no bar is called {', '.join(sorted(unknown))}")
    missed = 0
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{name:<10}holds    {BARS[name](Path(folder))}", flush=True)
            except BarMissedError as problem:
                missed += 1
                print(f"{name:<10}MISSED   {problem}", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
