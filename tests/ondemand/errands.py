"""Other processes for the tests of kills: one that has everything imported, and forks a child for each errand.

python -m tests.ondemand.errands        then a line of JSON for each errand; the answer is how the child ended
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dramatiq.asyncio import EventLoopThread

from lienworker import crash
from lienworker.actors.collect import Collector
from lienworker.actors.fetch import Pump
from lienworker.actors.heartbeat import _book, send_heartbeat
from lienworker.actors.replay import replay, rows_to_replay
from lienworker.actors.runtime import Runtime, running
from lienworker.actors.scrape import ScrapeRun
from lienworker.actors.upload import Uploader
from lienworker.gateway.client import GatewayClient
from lienworker.outbox.entries import BLOCKED
from lienworker.outbox.rows_by_hand import RowFilter, discard_rows, find_ids
from lienworker.outbox.uploads import Claim
from lienworker.settings import Settings
from lienworker.store.database import execute, one_row, open_store, write
from tests.ondemand.desk import QUICK

_PATIENCE = 20.0


def work_off(settings: Settings) -> None:
    """All that a worker does with the Gateway, in one thread, until there is nothing left to do."""
    loop = EventLoopThread(logging.getLogger(__name__))
    loop.start()
    with running(settings, "worker", 4, loop.loop) as here:
        assert settings.gateway_url
        assert settings.gateway_token
        here._gateway = GatewayClient(settings.gateway_url, settings.gateway_token, "worker-1", timeouts=QUICK)
        work_to_the_end(here)
    loop.stop()


def work_to_the_end(here: Runtime, patience: float = _PATIENCE) -> None:
    """Polls, fetches, scrapes and uploads in turns."""
    deadline = time.monotonic() + patience
    with write("errand"):
        execute("INSERT OR REPLACE INTO turns VALUES ('collect', ?, '')", (here.holder.id,))
    collector = Collector(here)
    if _book(60):
        send_heartbeat(here)
    while time.monotonic() < deadline:
        collector.run(time.monotonic() + 0.01)
        with here.holder.lease() as token:
            Pump(here, token, suspects=True).run()
            ScrapeRun(here, token, True, None).work()
            Uploader(here, Claim(token, here.rules)).work()
        if collector._next_poll > time.monotonic() and not _left():
            return
        time.sleep(0.01)
    raise TimeoutError("not done in time")


def _left() -> int:
    """Rows that will still move by themselves."""
    sql = "SELECT count(*) FROM outbox WHERE state = 'leased' OR (state = 'waiting' AND due_at < ?)"
    return int(one_row(sql, (BLOCKED,))[0])


def replay_all(settings: Settings) -> None:
    open_store(settings.data_dir)
    wanted = RowFilter()
    done = replay(settings, rows_to_replay(wanted, include_held=False), wanted, lambda *_: None)
    raise SystemExit(0 if done.is_complete else 1)


def discard_raws(settings: Settings) -> None:
    open_store(settings.data_dir)
    discard_rows(find_ids(RowFilter(topic="upload_raw"), ("waiting",)), "topic=upload_raw")


_ERRANDS = {"work": work_off, "replay": replay_all, "discard": discard_raws}


class Forks:
    """The process that forks, as a test sees it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.ondemand.errands"],
            cwd=Path(__file__).parents[2],
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LIENWORKER_DATA_DIR": "/nowhere"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, errand: str, settings: Settings, point: str | None = None) -> int:
        """The exit code of the child, negative for the signal that it died of."""
        order = {"errand": errand, "environment": settings.to_environment(), "point": point}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(10)


def _child(order: dict[str, Any]) -> None:
    crash._armed, crash._mark = order["point"], None
    try:
        _ERRANDS[order["errand"]](Settings.from_mapping(order["environment"]))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 9
    except BaseException:
        logging.exception("the errand failed")
        code = 8
    os._exit(code)


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _child(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
