"""The parts of the stack as commands, the same that an operator types to run them by hand."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from lienworker.data_folder import DataFolder
from lienworker.settings import Settings
from lienworker.stack import redis_server

#: Our own command, without the current folder on the path: in a shared folder anybody may have put a `redis.py`.
_PYTHON = [sys.executable, "-P", "-m"]
#: How long a worker may take to stop, ms; then it is killed, and its leases are freed.
_WORKER_STOP_MS = 5_000


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the stack. Parts start in order and stop in reverse."""

    name: str
    command: list[str]
    #: A file that exists when the part is ready; None where nothing waits for it.
    ready_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which parts, and how: the monitor too, one part only, and a folder whose changes restart the workers."""

    with_web: bool = False
    only: str | None = None
    watch: Path | None = None


#: For one job: everything that it needs, and no monitor.
PLAIN = Choice()


def parts_of(settings: Settings, folder: DataFolder, choice: Choice = PLAIN) -> list[Part]:
    """Return the parts in the order in which they start."""
    parts = _all_parts(settings, folder, choice)
    return parts if choice.only is None else [part for part in parts if part.name == choice.only]


def _all_parts(settings: Settings, folder: DataFolder, choice: Choice) -> list[Part]:
    dramatiq, watch = [*_PYTHON, "dramatiq"], []
    if choice.watch:
        # The script: a module that restarts itself forgets its virtual environment. And the pattern, since watchdog 7
        # takes Dramatiq's own `*.py` for files at the top level only.
        dramatiq = [str(Path(sys.executable).with_name("dramatiq"))]
        watch = ["--watch", str(choice.watch.absolute()), "--watch-include", "**/*.py"]
    web = [Part("web", [*_PYTHON, "lienworker", "web"])] if choice.with_web and settings.web_port else []
    redis = [] if settings.redis_url else [Part("redis", redis_server.command(folder), folder.redis_socket)]
    return [
        *redis,
        Part(
            "workers",
            [
                *dramatiq, "lienworker.actors",
                "--path",  # Dramatiq's path for modules: empty, and not the current folder
                "--processes", str(settings.process_count),
                "--threads", str(settings.threads),
                "--worker-shutdown-timeout", str(_WORKER_STOP_MS),
                "--skip-logging",
                *watch,
            ],
        ),
        Part("schedule", [*_PYTHON, "lienworker.stack.schedule"]),
        *web,
    ]  # fmt: skip
