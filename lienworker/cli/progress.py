"""A progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, field

import click

_PLAIN_EVERY = 5.0


@dataclass
class Progress:
    """How far a job is. `show` may be called as often as one likes."""

    noun: str = "tasks"
    started: float = field(default_factory=time.monotonic)
    first_done: int | None = None
    last_plain: float = 0.0
    is_open: bool = False

    def show(self, done: int, total: int, failed: int) -> None:
        if self.first_done is None:
            self.first_done, self.started = done, time.monotonic()
        text = self._text(done, total, failed)
        if _is_terminal():
            width = shutil.get_terminal_size().columns - 1
            click.echo("\r" + text[:width].ljust(width), nl=False, err=True)
            self.is_open = True
        elif time.monotonic() - self.last_plain >= _PLAIN_EVERY:
            self.last_plain = time.monotonic()
            click.echo(text, err=True)

    def close(self) -> None:
        """Leaves the bar's last state on its line."""
        if self.is_open:
            click.echo("", err=True)
            self.is_open = False

    def _text(self, done: int, total: int, failed: int) -> str:
        share = done / total if total else 1.0
        bar = "#" * int(20 * share)
        parts = [f"[{bar:<20}] {done:,}/{total:,} {self.noun}"]
        rate = self._rate(done)
        if rate > 0:
            parts.append(f"{rate:.1f}/s")
            parts.append(f"{_duration((total - done) / rate)} left")
        if failed:
            parts.append(f"{failed:,} failed")
        return "  ".join(parts)

    def _rate(self, done: int) -> float:
        seconds = time.monotonic() - self.started
        return (done - (self.first_done or 0)) / seconds if seconds > 0.5 else 0.0


def _is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
