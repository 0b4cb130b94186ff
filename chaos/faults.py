"""Every fault of the plan, begun and ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from chaos.county import FailingCounty
from chaos.node import ChaosNode, fill_disk, rude_writer
from chaos.plan import Event
from chaos.storage import allow_files, allow_no_more_files
from lienworker.testing.gateway import ReferenceGateway

_IMPORTED_FROM = 1_000_000


class Breaker:
    """Begins and ends faults. What cannot be done on this machine is in `skipped`, with the reason."""

    def __init__(
        self,
        node: ChaosNode,
        counties: Sequence[FailingCounty],
        gateway: ReferenceGateway,
        seed: int,
        disk: Path | None,
    ) -> None:
        """`counties`: the first serves imports, all of them can fail."""
        self._node = node
        self._county = counties[0]
        self._counties = counties
        self._gateway = gateway
        self._dice = random.Random(seed)
        self._disk = disk
        self._numbers = itertools.count(1)
        self._imported = _IMPORTED_FROM
        self._files: dict[str, list[str]] = {}
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._no_inodes = 0
        self.begun: dict[str, int] = {}
        #: Rows of files whose import said that all is well: they must be there.
        self.promised: set[str] = set()
        self.skipped: dict[str, str] = {}
        if disk is None:
            self.skipped["full_disk"] = "no tmpfs can be mounted here"
            self.skipped["no_inodes"] = "no tmpfs can be mounted here"
        if node.disk.why_not:
            self.skipped["eio"] = self.skipped["read_only"] = node.disk.why_not
        if not node.has_clock:
            self.skipped["clock_jump"] = "libfaketime is not installed"

    def begin(self, event: Event) -> Callable[[], None]:
        """Gives what ends it."""
        if event.kind in self.skipped:
            return lambda: None
        self.begun[event.kind] = self.begun.get(event.kind, 0) + 1
        if event.kind.startswith("kill_"):
            self._kill(event.kind.removeprefix("kill_"))
            return lambda: None
        begin: Callable[[Event], Callable[[], None] | None] = getattr(self, f"_begin_{event.kind}")
        return begin(event) or (lambda: None)

    def tend(self) -> None:
        """What needs a hand while it lasts; to be called often."""
        self._look_after_commands()
        if self._no_inodes and self._disk:  # what the node deletes in the meantime gives it no room
            allow_no_more_files(self._disk)

    def _look_after_commands(self) -> None:
        """An import that did not work is repeated, as its operator would."""
        for what, process in list(self._running):
            if process.poll() is None:
                continue
            self._running.remove((what, process))
            if what in self._files:
                if process.returncode == 0:
                    self.promised.update(self._files[what])
                else:
                    self._running.append((what, self._node.command("import", what)))

    @property
    def are_commands_running(self) -> bool:
        return bool(self._running)

    # The faults

    def _kill(self, part: str) -> None:
        victims = self._node.part(part)
        if part == "worker" and victims:
            victims = [self._dice.choice(victims)]
        for victim in victims:
            with contextlib.suppress(psutil.Error):
                victim.kill()

    def _begin_stop_worker(self, _event: Event) -> Callable[[], None]:
        return self._stopped(self._node.part("worker")[:1])

    def _begin_stop_redis(self, _event: Event) -> Callable[[], None]:
        return self._stopped(self._node.part("redis"))

    def _stopped(self, victims: list[psutil.Process]) -> Callable[[], None]:
        for victim in victims:
            with contextlib.suppress(psutil.Error):
                victim.send_signal(signal.SIGSTOP)

        def go_on() -> None:
            for victim in victims:
                with contextlib.suppress(psutil.Error):
                    victim.send_signal(signal.SIGCONT)

        return go_on

    def _begin_flush_redis(self, _event: Event) -> None:
        with contextlib.suppress(redis.RedisError):
            once = Retry(NoBackoff(), 0)  # a Redis that is stopped would hold up all other faults
            client = redis.Redis(unix_socket_path=str(self._node.redis_socket()), socket_timeout=2, retry=once)
            client.flushall()
            client.close()

    def _begin_gateway_fault(self, event: Event) -> Callable[[], None]:
        number = self._gateway.fault(**{"seconds": 2.0, **event.options})
        return lambda: self._gateway.clear_faults(number)

    def _begin_gateway_down(self, _event: Event) -> Callable[[], None]:
        self._gateway.stop_listening()
        return self._gateway.start_listening

    def _begin_county_fault(self, event: Event) -> Callable[[], None]:
        number = next(self._numbers)
        for county in self._counties:
            county.fault(number, **event.options)

        def mend() -> None:
            for county in self._counties:
                county.mend(number)

        return mend

    def _begin_clock_jump(self, event: Event) -> None:
        self._node.set_clock(event.options["offset"])

    def _begin_rude_writer(self, event: Event) -> None:
        self._running.append(("rude writer", rude_writer(self._node.data / "lienworker.db", event.seconds)))

    def _begin_full_disk(self, _event: Event) -> Callable[[], None]:
        assert self._disk
        ballast = fill_disk(self._disk)
        return lambda: ballast.unlink(missing_ok=True)

    def _begin_few_files(self, _event: Event) -> Callable[[], None]:
        self._node.limit_files(tight=True)
        return lambda: self._node.limit_files(tight=False)

    def _begin_no_inodes(self, _event: Event) -> Callable[[], None]:
        assert self._disk
        self._no_inodes += 1
        allow_no_more_files(self._disk)
        return self._inodes_again

    def _inodes_again(self) -> None:
        self._no_inodes -= 1
        if self._disk and not self._no_inodes:
            allow_files(self._disk)

    def _begin_eio(self, event: Event) -> Callable[[], None]:
        key = self._node.disk.begin(event.options["calls"])
        return lambda: self._node.disk.end(key)

    def _begin_read_only(self, _event: Event) -> Callable[[], None]:
        key = self._node.disk.begin("read_only")
        return lambda: self._node.disk.end(key)

    def _begin_run(self, event: Event) -> Callable[[], None]:
        """`run` in the place of `up`. Its file is imported again afterwards: if it came through, that adds nothing."""
        path = self._write_file(event.options["rows"])
        self._node.run_instead(path)
        return lambda: self._running.append((path, self._node.command("import", path)))

    def _begin_import(self, event: Event) -> None:
        path = self._write_file(event.options["rows"])
        self._running.append((path, self._node.command("import", path)))

    def _write_file(self, n: int) -> str:
        rows: list[dict[str, Any]] = list(self._county.parcels(n, self._imported))
        self._imported += len(rows)
        path = self._node.data.parent.parent / f"import-{self._imported}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self._files[str(path)] = [row["url"] for row in rows]
        return str(path)

    def _begin_replay(self, _event: Event) -> None:
        self._running.append(("replay", self._node.command("outbox", "replay")))
