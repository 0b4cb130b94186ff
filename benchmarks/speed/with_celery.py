"""Celery: a task a page, prefork with two processes, Redis as broker, `acks_late`. The common way to do it.

A task whose worker is killed comes again (after the visibility time-out of an hour, or at once if the worker is
restarted by the pool); nothing says that a page was fetched already, and messages are as durable as Redis is.

    python -m benchmarks.speed.with_celery --site http://127.0.0.1:1234 --pages 2000 --folder out
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import requests
from celery import Celery

from benchmarks.speed import work
from benchmarks.speed.measuring import contender_arguments, private_redis, urls_of

app = Celery("benchmark", broker=os.environ.get("BENCHMARK_REDIS", "redis://"))
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=4,
    task_ignore_result=True,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)
_folder = Path(os.environ.get("BENCHMARK_FOLDER", "."))
_here: dict[str, object] = {}


@app.task(name="scrape")
def scrape(url: str) -> None:
    if not _here:
        _here.update(session=requests.Session(), rows=work.open_rows(_folder))
    session, rows = _here["session"], _here["rows"]
    body = session.get(url, timeout=30).content  # type: ignore[attr-defined]
    work.keep_rows(rows, [(url, work.keep_page(_folder, url, body), work.parse(body))])  # type: ignore[arg-type]


def main() -> None:
    chosen = contender_arguments(__doc__)
    work.open_rows(chosen.folder).close()
    with private_redis(chosen.folder) as address:
        environment = {**os.environ, "BENCHMARK_REDIS": address, "BENCHMARK_FOLDER": str(chosen.folder)}
        app.conf.broker_url = address
        for url in urls_of(chosen.site, chosen.pages):
            scrape.delay(url)
        command = [sys.executable, "-m", "celery", "-A", "benchmarks.speed.with_celery", "worker"]
        options = ["--pool", "prefork", "--concurrency", "2", "--loglevel", "ERROR", "--without-gossip"]
        worker = subprocess.Popen([*command, *options, "--without-mingle"], env=environment, stdout=subprocess.DEVNULL)
        signal.signal(signal.SIGTERM, lambda *_: worker.terminate())
        worker.wait()


if __name__ == "__main__":
    main()
