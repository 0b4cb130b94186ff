"""Where the commands of a page are run: a folder of its own, with the demo county and a reference Gateway at hand."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import ReferenceGateway
from tests.docs.blocks import ROOT
from tests.harness.node import wait_until
from tests.web.monitor import free_port

#: Commands that stay until they are stopped, and what they say or do when they are ready.
_SERVERS = {
    r"lienworker up\b": None,
    r"lienworker web\b(?!.*--address)": "The monitor:",
    r"lienworker gateway serve\b": "Reference Gateway on",
    r"python -m lienworker\.testing\.county\.site\b": "http://",
    r"lienworker status --watch\b": "standalone",
}


class Sandbox:
    def __init__(self, folder: Path, site: DemoSite, gateway: ReferenceGateway) -> None:
        self.folder = folder
        self.servers: list[subprocess.Popen[str]] = []
        self.said: list[str] = []
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1",
            "LIENWORKER_HOST_DELAY": "0",
            "LIENWORKER_PROCESSES": "1",
            "LIENWORKER_WEB_PORT": str(free_port()),
        }
        # What a reader puts in place of our examples.
        self.instead = {
            "https://gateway.example": gateway.url,
            "GATEWAY_TOKEN=…": f"GATEWAY_TOKEN={gateway.token}",
            "http://county.example/parcel/123": site.parcels(1, start=900)[0]["url"],
            "https://www.sunny.example/1": site.parcels(1, start=901)[0]["url"],
            "8900": str(free_port()),
            "8800": str(free_port()),
        }
        self._fill(site)

    def _fill(self, site: DemoSite) -> None:
        columns = ("url", "platform", "state", "county", "parcel_id")
        for name, rows in {"parcels.csv": site.parcels(6), "auction.csv": site.parcels(3, start=100)}.items():
            lines = [",".join(columns), *(",".join(row[column] for column in columns) for row in rows)]
            (self.folder / name).write_text("\n".join(lines) + "\n")
        (self.folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in site.tasks(3)[:3]))
        (self.folder / ".venv").symlink_to(Path(sys.executable).parents[1])

    def run(self, command: str, codes: Collection[int] = (0,)) -> None:
        """Type a command, which must end with one of these codes."""
        for ours, theirs in self.instead.items():
            command = command.replace(ours, theirs)
        if command.startswith("export "):
            self.environment |= dict(word.partition("=")[::2] for word in shlex.split(command)[1:])
        elif command.startswith("make "):
            # What it does is tested elsewhere, and some of it is this very test; that it is there is tested here.
            self._finish(f"make --dry-run --directory {ROOT} {command.removeprefix('make ')}", codes)
        elif servers := [ready for pattern, ready in _SERVERS.items() if re.search(pattern, command)]:
            self._serve(command, servers[0])
        else:
            self._finish(command, codes)

    def _finish(self, command: str, codes: Collection[int]) -> None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )
        self.said.append(done.stdout + done.stderr)
        # Trying failed tasks again where none has failed is 1, as documented.
        fine = {0, 1} if "lienworker tasks retry" in command else codes
        assert done.returncode in fine, f"{command}\n{done.stdout}{done.stderr}"

    def _serve(self, command: str, ready: str | None) -> None:
        log = self.folder / f"server{len(self.servers)}.log"
        with log.open("w") as out:
            server = subprocess.Popen(
                ["bash", "-c", f"exec env {command}"],
                cwd=self.folder,
                env=self.environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self.servers.append(server)

        def is_ready() -> bool:
            assert server.poll() is None, f"{command}\n{log.read_text()}"
            return ready in log.read_text() if ready else self._has_workers()

        wait_until(is_ready, what=f"{command} to be ready: {log.read_text()}")

    def _has_workers(self) -> bool:
        command = ["lienworker", "health", "workers"]
        time.sleep(0.5)  # a check costs what the stack needs to start
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True).returncode == 0

    def close(self) -> None:
        for server in reversed(self.servers):
            if server.poll() is None:
                os.kill(server.pid, signal.SIGTERM)
                try:
                    server.wait(60)
                except subprocess.TimeoutExpired:
                    os.killpg(server.pid, signal.SIGKILL)
                    raise
        self.servers = []

    def advice(self) -> list[str]:
        """The commands that messages so far have told to type; what is a placeholder there is not typed."""
        told = {words for said in self.said for words in re.findall(r"`((?:\S+=\S+ )?lienworker [a-z][^`]*)`", said)}
        return sorted(words for words in told if not re.search(r"\b[A-Z]{2,}\b(?!=)|…", words))
