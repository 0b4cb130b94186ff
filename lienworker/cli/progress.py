"""A progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, field

import click

from lienworker.cli.output import colored

_PLAIN_EVERY = 5.0
_LONGEST_BAR, _SHORTEST_BAR = 20, 5


@dataclass
class Progress:
    """How far a job is. `show` may be called as often as one likes."""

    noun: str = "tasks"
    started: float = field(default_factory=time.monotonic)
    first_done: int | None = None
    last_plain: float = 0.0
    is_open: bool = False
    unsaid: str = ""

    def show(self, done: int, total: int, failed: int, ends: str | None = None) -> None:
        """Show it; `ends` says when it will be done, where that is known better than by the rate so far."""
        if self.first_done is None:
            self.first_done, self.started = done, time.monotonic()
        share, words = done / total if total else 1.0, self._words(done, total, ends)
        trouble = f"  {failed:,} failed" if failed else ""
        if _is_terminal():
            self._draw(share, words, trouble)
            return
        self.unsaid = words + trouble
        if time.monotonic() - self.last_plain >= _PLAIN_EVERY:
            self.last_plain = time.monotonic()
            self._say()

    def close(self) -> None:
        """Leaves the last state on its line."""
        self._say()
        if self.is_open:
            click.echo("", err=True)
            self.is_open = False

    def _say(self) -> None:
        if self.unsaid:
            click.echo(self.unsaid, err=True)
            self.unsaid = ""

    def _draw(self, share: float, words: str, trouble: str) -> None:
        """In a narrow window the bar gives way first, then the words are cut."""
        width = shutil.get_terminal_size().columns - 1
        room = min(_LONGEST_BAR, max(_SHORTEST_BAR, width - len(words) - len(trouble) - 3))
        filled = int(room * share)
        words = words[: max(0, width - room - 3)]
        trouble = trouble[: max(0, width - room - 3 - len(words))]
        rest = " " * (width - room - 3 - len(words) - len(trouble))
        bar = colored("#" * filled, "green") + " " * (room - filled)
        click.echo(f"\r[{bar}] {words}{colored(trouble, 'red')}{rest}", nl=False, err=True)
        self.is_open = True

    def _words(self, done: int, total: int, ends: str | None) -> str:
        parts = [f"{done:,}/{total:,} {self.noun}"]
        rate = self._rate(done)
        if rate > 0:
            parts.append(f"{rate:.1f}/s")
        if ends is not None:
            parts += [ends] if ends and done < total else []
        elif rate > 0:
            parts.append(f"{_duration((total - done) / rate)} left")
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
