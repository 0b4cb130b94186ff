"""What `docker compose up` would start, as processes: the very commands, environment and health checks of compose.yaml.

Names of services become loopback ports, volumes become folders, and each service gets a process namespace of its own
where that is allowed, so that several of them are process 1, as in containers.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import yaml

from lienworker.stack.redis_server import server_program
from tests.harness.node import wait_until
from tests.web.monitor import free_port

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
_APART = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
_PORTS = (6379, 5555, 8900, 8800)


def can_be_apart() -> bool:
    """Whether we may make process namespaces here."""
    try:
        return subprocess.run([*_APART, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


class Machine:
    """A machine on which a profile of compose.yaml runs. `dotenv` is what its `.env` says."""

    def __init__(self, folder: Path, profile: str, **dotenv: str) -> None:
        self.folder = folder
        self.dotenv = dotenv
        self.ports = {port: free_port() for port in _PORTS}
        self.volumes = {name: folder / "volumes" / name for name in COMPOSE["volumes"]}
        self.services = {
            name: Service(self, name, about)
            for name, about in COMPOSE["services"].items()
            if profile in about["profiles"]
        }
        self._apart = _APART if can_be_apart() else []
        self._make_folders()

    def _make_folders(self) -> None:
        """The volumes, and the programs of the Redis image, which know nothing of our ports."""
        for volume in self.volumes.values():
            volume.mkdir(parents=True, mode=0o700)
        programs, port = self.folder / "bin", self.ports[6379]
        programs.mkdir()
        ping = f"import redis; redis.Redis(port={port}).ping(); print('PONG')"
        self._script(programs / "redis-server", f"{server_program()} --port {port} --bind 127.0.0.1")
        self._script(programs / "redis-cli", f"{sys.executable} -c {shlex.quote(ping)}")

    def _script(self, path: Path, command: str) -> None:
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o755)

    @property
    def path(self) -> str:
        return f"{self.folder / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"

    def up(self) -> None:
        """Starts the services in the order in which they wait for each other, and waits until all are healthy."""
        for service in sorted(self.services.values(), key=lambda one: len(one.about.get("depends_on", {}))):
            for other in service.about.get("depends_on", {}):
                self.services[other].wait_healthy()
            service.start(self._apart)
        for service in self.services.values():
            service.wait_healthy()

    def down(self) -> None:
        for service in reversed(self.services.values()):
            service.stop()

    def translated(self, text: str) -> str:
        """A command or a setting with the addresses of this machine."""
        text = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda m: self.dotenv.get(m[1]) or m[2], text)
        text = re.sub(rf"\b({'|'.join(COMPOSE['services'])})(?=:\d)", "127.0.0.1", text)
        for known, ours in self.ports.items():
            text = re.sub(rf"\b{known}\b", str(ours), text)
        return "127.0.0.1" if text == "county" else text


class Service:
    def __init__(self, machine: Machine, name: str, about: dict[str, Any]) -> None:
        self.machine = machine
        self.name = name
        self.about = about
        self.process: subprocess.Popen[bytes] | None = None
        self.log = machine.folder / f"{name}.log"

    @property
    def volume(self) -> Path:
        """What is mounted at /data."""
        for mount in self.about.get("volumes", []):
            name, _, place = mount.partition(":")
            assert place == "/data"
            return self.machine.volumes[name]
        return self.machine.folder

    @property
    def environment(self) -> dict[str, str]:
        from_file = self.machine.dotenv if "env_file" in self.about else {}
        given = {name: self.machine.translated(str(value)) for name, value in self.about.get("environment", {}).items()}
        places = {name: str(self.volume) for name, value in given.items() if value == "/data"}
        image = {"PATH": self.machine.path, "HOME": "/", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return {**image, **from_file, **given, **places}

    def start(self, apart: list[str]) -> None:
        command = [self.machine.translated(word) for word in self.about["command"]]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*apart, *command],
                env=self.environment,
                cwd=self.volume,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def first(self) -> psutil.Process:
        """Process 1 of the container."""
        assert self.process is not None
        outer = psutil.Process(self.process.pid)
        return outer.children()[0] if outer.name() == "unshare" else outer

    def exec(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """As `docker compose exec` does."""
        return subprocess.run(
            command, env=self.environment, cwd=self.volume, capture_output=True, text=True, input=stdin, timeout=120
        )

    def is_healthy(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        kind, *test = self.about["healthcheck"]["test"]
        words = [self.machine.translated(word) for word in test]
        is_well = self.exec(*(words if kind == "CMD" else ["sh", "-c", *words])).returncode == 0
        time.sleep(0 if is_well else 0.5)  # a check costs what the services need to start
        return is_well

    def wait_healthy(self) -> None:
        wait_until(self.is_healthy, what=f"{self.name} to be healthy: {shlex.join(self.about['command'])}")

    def stop(self) -> int:
        """SIGTERM, and it must be gone within its grace period."""
        if self.process is None or self.process.poll() is not None:
            return 0
        began, grace = time.monotonic(), float(self.about.get("stop_grace_period", "10s").removesuffix("s"))
        self.first.terminate()
        code = self.process.wait(grace)
        assert time.monotonic() - began < grace
        return code

    def kill(self) -> None:
        """The container dies, with all that is in it."""
        assert self.process is not None
        os.kill(self.first.pid, signal.SIGKILL)
        self.process.wait(60)
