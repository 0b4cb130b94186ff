"""One wheel and one environment for all tests here, also where several test processes run side by side."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lienworker.data_folder import one_at_a_time

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True)
class Installed:
    """What a user has who installed the wheel: an environment, and nothing of the repository."""

    wheel: Path
    archive: Path
    environment: Path

    def run(self, folder: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.environment / 'bin'}:/usr/bin:/bin"
        return subprocess.run(
            command,
            cwd=folder,
            env={"PATH": path, "HOME": str(folder), "UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1", **settings},
            capture_output=True,
            text=True,
            timeout=150,
        )

    def install(self, *what: str) -> None:
        call(UV, "pip", "install", "--quiet", "--python", self.environment / "bin" / "python", *what)


def call(*command: str | Path) -> None:
    # The machine's own certificates, as pip uses them: uv's built-in ones do not know a company's proxy.
    trusting = {**os.environ, "UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=150, env=trusting)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def lowest(installed: Installed, tmp_path: Path) -> Installed:
    """The same with the lowest versions that we say are enough; `make test-minimum` runs more tests on them."""
    there = Installed(installed.wheel, installed.archive, tmp_path / "lowest")
    versions = tmp_path / "lowest.txt"
    call(UV, "pip", "compile", "--quiet", "--resolution", "lowest-direct", "pyproject.toml", "--output-file", versions)
    call(UV, "venv", "--quiet", "--python", sys.executable, there.environment)
    there.install("--requirement", str(versions), str(there.wheel))
    return there


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    mine = tmp_path_factory.getbasetemp()
    shared = mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
    dist, environment = shared / "dist", shared / "environment"
    with one_at_a_time(shared / "packaging.lock"):
        if not (environment / "done").exists():
            shutil.rmtree(dist, ignore_errors=True)
            call(UV, "build", "--quiet", "--out-dir", dist)
            call(UV, "venv", "--quiet", "--clear", "--python", sys.executable, environment)
            there = Installed(next(dist.glob("*.whl")), next(dist.glob("*.tar.gz")), environment)
            there.install("--constraint", "constraints.txt", str(there.wheel))
            (environment / "done").touch()
    return Installed(next(dist.glob("*.whl")), next(dist.glob("*.tar.gz")), environment)
