from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db import clock as store_clock
from lienworker.db.database import close, open_store
from lienworker.outbox import leases
from tests.harness.outbox_rows import Player


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataFolder]:
    """An open store in an empty data folder, where holders look after each other only when a test says so."""
    monkeypatch.setattr(leases, "PULSE_SECONDS", 3600.0)
    yield open_store(tmp_path / "data")
    close()


class Clock:
    """A wall clock that stands still until it is set."""

    def __init__(self) -> None:
        self.ms = time.time_ns() // 1_000_000

    def go(self, ms: int) -> None:
        self.ms += ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(store_clock, "time", SimpleNamespace(time_ns=lambda: made.ms * 1_000_000))
    return made


@pytest.fixture
def player(folder: DataFolder) -> Iterator[Callable[..., Player]]:
    """Starts other processes on the same data folder; none of them is left over."""
    players: list[Player] = []

    def start(part: str, *arguments: Any, **environment: str) -> Player:
        players.append(Player(part, folder.root, *arguments, **environment))
        return players[-1]

    yield start
    for one in players:
        one.clear_away()
