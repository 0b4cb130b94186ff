"""The parts of the stack as commands; the same that an operator types to run them by hand."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from lienworker.settings import Settings
from lienworker.stack import redis_server
from lienworker.store.folder import DataFolder

#: How long a worker may take to stop, ms; then it is killed, and its leases are freed.
_WORKER_STOP_MS = 5_000


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the stack. Parts start in order and stop in reverse."""

    name: str
    command: list[str]
    #: A file that is there when the part is ready; None where nothing waits for it.
    ready_file: Path | None = None


def parts_of(settings: Settings, folder: DataFolder, *, with_web: bool = False, only: str | None = None) -> list[Part]:
    """The parts in the order in which they start, or `only` one; the monitor where the stack is there to stay."""
    parts = _all_parts(settings, folder, with_web=with_web)
    return parts if only is None else [part for part in parts if part.name == only]


def _all_parts(settings: Settings, folder: DataFolder, *, with_web: bool) -> list[Part]:
    web = [Part("web", [sys.executable, "-m", "lienworker", "web"])] if with_web and settings.web_port else []
    redis = [] if settings.redis_url else [Part("redis", redis_server.command(folder), folder.redis_socket)]
    return [
        *redis,
        Part(
            "workers",
            [
                sys.executable, "-m", "dramatiq", "lienworker.actors",
                "--processes", str(settings.process_count),
                "--threads", str(settings.threads),
                "--worker-shutdown-timeout", str(_WORKER_STOP_MS),
                "--skip-logging",
            ],
        ),
        Part("schedule", [sys.executable, "-m", "lienworker.stack.schedule"]),
        *web,
    ]  # fmt: skip
