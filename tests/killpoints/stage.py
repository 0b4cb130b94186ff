"""The stage of the walk: a county and a Gateway with witnesses, a Redis, and a data folder that processes work on."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from chaos.witness import WatchedCounty, WatchedGateway, Witness
from lienworker.outbox.rows import NEVER_DUE
from lienworker.stack.redis_server import server_program
from lienworker.testing.gateway import ReferenceGateway
from lienworker.testing.layers import FeatureServer, feature_server
from lienworker.testing.serving import serving
from tests.harness.node import PATIENCE
from tests.harness.session_site import SessionSite, session_site
from tests.killpoints.children import Child, Children

KILLED = -signal.SIGKILL
#: Rows that still move by themselves.
_MOVING = f"SELECT count(*) FROM outbox WHERE state = 'leased' OR (state = 'waiting' AND due_at < {NEVER_DUE})"


@dataclass
class Theatre:
    """What all tests of a process share."""

    county: WatchedCounty
    gateway: ReferenceGateway
    sessions: SessionSite
    layer: FeatureServer
    redis_url: str
    children: Children
    templates: Path

    @contextmanager
    def stage(self, root: Path) -> Iterator[Stage]:
        """A stage of one's own in this folder, with empty logs and a Gateway that knows nothing."""
        self.county.forget()
        self.sessions.forget()
        self.layer.errors = 0
        self.gateway.state.reset()
        self.gateway.configure(retry_without_tasks=1)
        root.mkdir(parents=True, exist_ok=True)
        here = Stage(self, root)
        watched: Any = self.gateway.state
        watched.witness = self.county.witness = here.witness
        try:
            yield here
        finally:
            watched.witness = self.county.witness = None
            here.end_all()


@dataclass
class Stage:
    theatre: Theatre
    root: Path
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.data = self.root / "data"
        self.witness = Witness(self.data)
        self._living: list[Child] = []
        self.in_the_air: set[str] = set()
        self.settings = {
            "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1,localhost",
            "LIENWORKER_HOST_DELAY": "0",
            "LIENWORKER_HOST_CONCURRENCY": "32",
            "LIENWORKER_RETRY_DELAY": "0.05",
            "LIENWORKER_FETCH_ATTEMPTS": "2",
            "LIENWORKER_GATEWAY_RETRY": "0.05",
            "LIENWORKER_HEARTBEAT": "1",
            "LIENWORKER_TASK_EXPIRY": "80000",
            "LIENWORKER_BATCH": "4",
            "LIENWORKER_PLATFORMS": str(self.root / "platforms"),
            "REDIS_URL": self.theatre.redis_url,
            "GATEWAY_URL": self.theatre.gateway.url,
            "GATEWAY_TOKEN": self.theatre.gateway.token,
        }
        (self.root / "platforms").mkdir(exist_ok=True)

    @property
    def county(self) -> WatchedCounty:
        return self.theatre.county

    @property
    def sessions(self) -> SessionSite:
        return self.theatre.sessions

    @property
    def layer(self) -> FeatureServer:
        return self.theatre.layer

    @property
    def gateway(self) -> ReferenceGateway:
        return self.theatre.gateway

    @property
    def said(self) -> Path:
        return self.root / "said.log"

    def environment(self) -> dict[str, str]:
        known = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
        return {**known, "LIENWORKER_DATA_DIR": str(self.data), **self.settings}

    # Processes

    def cli(self, *arguments: str, **order: Any) -> int:
        """`lienworker …` to its end; gives the exit code."""
        here = os.getcwd()
        assert Path(here).is_dir()
        return self.start("cli", arguments=arguments, **order).wait()

    def start(self, errand: str, **order: Any) -> Child:
        child = self.theatre.children.start(errand, self.environment(), self.said, **order)
        self._living.append(child)
        return child

    def work(self, is_done: Callable[[], Any], patience: float = PATIENCE, **order: Any) -> int:
        """A worker until all is done, or until it dies; gives the exit code."""
        stop = self.root / "stop"
        stop.unlink(missing_ok=True)
        worker = self.start("worker", stop=str(stop), **order)
        deadline = time.monotonic() + patience
        while worker.poll() is None and not is_done():
            if time.monotonic() > deadline:
                raise AssertionError(f"not done within {patience} s: {self.state()}\n{self.said.read_text()[-4000:]}")
            time.sleep(0.02)
        stop.touch()
        return worker.wait()

    def end_all(self) -> None:
        for child in self._living:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
                child.wait()

    # Looking, from outside

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.data / "lienworker.db", timeout=20)) as connection:
            return connection.execute(query, values).fetchall()

    def change(self, *statements: str) -> None:
        """What only time, an operator or a fault would do to the database."""
        with contextlib.closing(sqlite3.connect(self.data / "lienworker.db", timeout=20)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def is_quiet(self) -> bool:
        """Nothing moves by itself any more."""
        try:
            return self.sql(_MOVING) == [(0,)]
        except sqlite3.OperationalError:
            return False

    def state(self) -> dict[str, int]:
        rows = self.sql("SELECT topic || ' ' || state || ' ' || coalesce(reason, ''), count(*) FROM outbox GROUP BY 1")
        return dict(rows)

    def statuses(self) -> dict[str, int]:
        return dict(self.sql("SELECT status, count(*) FROM tasks GROUP BY 1"))

    # What must be so after every kill

    def assert_promises(self) -> None:
        """The promises of the design, seen from outside."""
        assert self.witness.sightings.all == []
        self._assert_raw_before_result()
        self._assert_the_newest_is_stored()
        self._an_hour_passes()
        assert self.cli("doctor") == 0, self.said.read_text()[-3000:]
        assert self._strays() == []

    def _assert_raw_before_result(self) -> None:
        """By the order in which the Gateway stored things."""
        first: dict[str, int] = {}
        for raw in self.gateway.state.raw_uploads:
            first.setdefault(json.loads(raw.metadata)["raw_html_hash"], raw.seq)
        for key, versions in self.gateway.state.history.items():
            for version in versions:
                assert first[version.row.raw_html_hash] < version.seq, key

    def _assert_the_newest_is_stored(self) -> None:
        """What the Gateway has of a parcel last is what we delivered of it last, by the time of its page."""
        fetched = dict(self.sql("SELECT raw_sha256, fetched_at FROM results"))
        for key, versions in self.gateway.state.history.items():
            times = [fetched.get(version.row.raw_html_hash, "") for version in versions]
            assert times == sorted(times), f"{key}: an older one was stored after a newer one"

    def _an_hour_passes(self) -> None:
        """What is clearly of the dead is removed by the next worker that starts."""
        from lienworker.db.database import close, open_store
        from lienworker.store.pending import heal
        from lienworker.store.stale_files import remove_stale_files

        for path in self.data.rglob("*"):
            if (path.is_file() and path.suffix in {".part", ".json"}) or path.parent.name == "holders":
                os.utime(path, (0, 0))
        folder = open_store(self.data)
        heal(folder, lambda: True)
        remove_stale_files(folder)
        close()

    def _strays(self) -> list[str]:
        """Files that nobody would ever remove, and raw pages that are not whole."""
        # What a restore found is kept as it was, with what a kill had left in it.
        parts = [str(path) for path in self.root.rglob("*.part") if "before-restore" not in str(path)]
        holders = {row[0] for row in self.sql("SELECT holder FROM workers")}
        locks = [str(path) for path in (self.data / "holders").glob("*") if path.name not in holders]
        return parts + locks


@contextmanager
def theatre(folder: Path) -> Iterator[Theatre]:
    """County, Gateway, Redis and the process that forks, for as long as the block lasts."""
    with ExitStack() as stack:
        county = WatchedCounty(slow_seconds=1.0)
        stack.enter_context(serving(county))
        gateway = ReferenceGateway(WatchedGateway("reference-token"))
        stack.callback(gateway.close)
        gateway.start_listening()
        children = Children()
        stack.callback(children.close)
        sessions = stack.enter_context(session_site())
        layer = stack.enter_context(feature_server(count=700, max_records=600))
        yield Theatre(county, gateway, sessions, layer, stack.enter_context(_redis()), children, folder)


@contextmanager
def _redis() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="walk-") as place:
        socket = Path(place) / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", place]
        server = subprocess.Popen([server_program(), *options], stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(unix_socket_path=str(socket))
            for _ in range(500):
                with contextlib.suppress(redis.RedisError):
                    if client.ping():
                        break
                time.sleep(0.01)
            client.close()
            yield f"unix://{socket}"
        finally:
            server.terminate()
            server.wait(60)


def copy_of(template: Path, root: Path) -> None:
    shutil.copytree(template, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("said.log", "stop"))


def counted(rows: list[tuple[Any, ...]]) -> Counter[Any]:
    return Counter(row[0] for row in rows)
