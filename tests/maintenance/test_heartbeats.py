"""Heartbeats: what they say, and what comes of what the Gateway answers."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import execute, fact, set_fact, write
from lienworker.maintenance.heartbeat import CpuSampler, book_heartbeat, is_due
from lienworker.outbox.pauses import pauses
from lienworker.outbox.registration import register_task
from lienworker.store.heartbeats import BEAT_OUTCOME, COMMANDS, last_heartbeat
from lienworker.store.tasks import NewTask
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import QUICK, Desk


def depths(here: Desk) -> Any:
    return here.heartbeat_body()["queue_depth"]


def test_a_heartbeat_has_the_fields_of_the_contract(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(3)
    register_task(NewTask("gateway", "http://county.example/1", task_id="t-1"))
    here.heartbeat()
    (beat,) = gateway.state.heartbeats
    said = beat.body
    assert said["completed_last_minute"] == 3
    assert said["failed_last_minute"] == 0
    assert said["active_tasks"] == 0
    assert "demo" in said["platforms"]
    assert isinstance(said["cpu_percent"], float)
    assert isinstance(said["memory_percent"], float)
    assert said["queue_depth"]["pending"] == 1
    assert said["queue_depth"]["completed"] == 3
    assert fact(BEAT_OUTCOME) == "acknowledged"


def test_every_thread_is_told_how_busy_the_machine_was(here: Desk) -> None:
    """psutil keeps its state by thread: a beat from a new one said 0."""

    def beat() -> Any:
        spin_until = time.process_time() + 0.1
        while time.process_time() < spin_until:
            pass
        return here.heartbeat_body()["cpu_percent"]

    for _ in range(3):
        with ThreadPoolExecutor(1) as fresh:
            assert fresh.submit(beat).result() > 0


@pytest.mark.parametrize(
    ("looks", "percents"),
    [
        ([(10, 100), (15, 110)], [50.0]),
        ([(10, 100), (15, 110), (15, 110), (15, 120)], [50.0, 50.0, 0.0]),
        ([(10, 100), (9, 110)], [0.0]),
    ],
    ids=["half of the time", "no time at all", "a clock that goes back"],
)
def test_the_machine_is_busy_for_a_share_of_the_time(looks: list[tuple[float, float]], percents: list[float]) -> None:
    told = iter(looks)
    sampler = CpuSampler(lambda: next(told))
    assert [sampler.percent() for _ in percents] == percents


def test_unsynced_counts_what_is_to_be_synced(here: Desk) -> None:
    """Pages that are to be fetched are `pending`, not unsynced."""
    for n in range(5):
        register_task(NewTask("gateway", f"http://county.example/{n}", task_id=f"t-{n}"))
    assert depths(here)["unsynced"] == 0
    assert depths(here)["pending"] == 5


def test_parked_counts_what_is_parked(here: Desk) -> None:
    here.add(2, county=None)
    here.upload_until()
    assert depths(here)["parked"] == 4  # results that can never be stored, and their raw files
    assert depths(here)["unsynced"] == 0


@pytest.mark.parametrize("form", ["pause", {"command": "PAUSE"}, {"name": "pause", "why": "x"}])
def test_a_pause_is_obeyed_and_a_resume_too(here: Desk, gateway: ReferenceGateway, form: Any) -> None:
    here.add(2)
    gateway.configure(sends_commands=True)
    gateway.command(form)
    here.heartbeat()
    assert [(lane, cause) for lane, cause, _, _ in pauses()] == [("fetch", "gateway"), ("intake", "gateway")]
    here.upload_until()
    assert len(gateway.state.results) == 2  # what we have is still delivered
    gateway.command("resume")
    here.heartbeat()
    assert pauses() == []


def test_an_operators_pause_is_not_ended_by_the_gateway(here: Desk, gateway: ReferenceGateway) -> None:
    with write("test"):
        execute("INSERT INTO pauses VALUES ('fetch', 'operator', '', '')")
    gateway.configure(sends_commands=True)
    gateway.command("pause", "resume")
    here.heartbeat()
    assert [cause for _, cause, _, _ in pauses()] == ["operator"]


@pytest.mark.parametrize("command", ["dance", {}, 12, None, ["pause"], "x" * 10_000, json.loads('"\\ud800"'), "a\0b"])
def test_an_unknown_command_is_shown_and_harmless(here: Desk, gateway: ReferenceGateway, command: Any) -> None:
    gateway.configure(sends_commands=True)
    gateway.command(command, "pause")
    here.heartbeat()
    assert "pause" in (fact(COMMANDS) or "")
    assert len(pauses()) == 2


@pytest.mark.parametrize("fault", ["401", "503", "hang", "reset", "html", "down"])
def test_a_heartbeat_that_fails_is_noted_in_words(here: Desk, gateway: ReferenceGateway, fault: str) -> None:
    gateway.fault(fault, endpoint="heartbeat")
    here.give_up_after(QUICK)
    here.heartbeat()
    assert fact(BEAT_OUTCOME) not in (None, "acknowledged")
    assert pauses() == []


def test_one_process_books_a_beat_and_the_next_one_finds_it_booked(here: Desk) -> None:
    assert book_heartbeat(60)
    assert not book_heartbeat(60)
    assert not is_due(60)


def test_a_clock_that_was_set_back_does_not_silence_the_heart(here: Desk) -> None:
    with write("test"):
        set_fact("heartbeat_at", str(now_ms() + 86_400_000))
    assert is_due(60)


def test_a_heartbeat_that_failed_is_tried_again_before_two_minutes_are_over(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 60 s, never more than 120 s apart: one lost beat must not make it 120 s and a bit."""
    gateway.fault("503", endpoint="heartbeat", count=1)
    assert book_heartbeat(60)
    here.heartbeat()
    clock = sys.modules["lienworker.maintenance.heartbeat"]
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms() + 30_000)
    assert is_due(60)


def test_what_a_heartbeat_came_to_is_told(here: Desk, gateway: ReferenceGateway) -> None:
    assert set(last_heartbeat().values()) == {None}
    gateway.configure(sends_commands=True)
    gateway.command("dance")
    before = rfc3339()
    here.heartbeat()
    well = last_heartbeat()
    assert well["outcome"] == "acknowledged"
    assert all(before <= well[name] <= rfc3339() for name in ("at", "acknowledged_at", "commands_at")), well
    assert well["commands"] == "dance"
    gateway.fault("503", endpoint="heartbeat")
    here.heartbeat()
    ill = last_heartbeat()
    assert "503" in ill["outcome"]
    assert ill["at"] >= well["at"]
    assert ill["acknowledged_at"] == well["acknowledged_at"]
