"""The relay: tokens for what is due, no more, again if they are lost, and Redis is only the wake-up call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms
from lienworker.outbox import relay, transitions
from lienworker.outbox.claims import Rules
from lienworker.outbox.leases import WorkerLease
from lienworker.outbox.outcomes import try_again
from lienworker.outbox.pauses import set_pause
from lienworker.outbox.relay import Lane, Relay, tokens_wanted, top_up, worker_slots
from lienworker.outbox.rows import Entry
from lienworker.outbox.states import Topic
from tests.harness.node import PATIENCE
from tests.harness.outbox_rows import FREE, add, change, host_row, in_background, in_transaction, row_of, take

_FETCH = [Lane("fetch", 16)]


class FakeRedis:
    """Where tokens lie until a worker takes them. Can lose them, and can be away."""

    def __init__(self) -> None:
        self.lying: dict[str, int] = {}
        self.is_away = False
        self.sends: list[tuple[str, int, int]] = []
        self._changed = threading.Condition()

    def queued(self, topic: str) -> int:
        if self.is_away:
            raise redis.ConnectionError("connection refused")
        return self.lying.get(topic, 0)

    def send(self, topic: str, n: int) -> None:
        with self._changed:
            self.lying[topic] = self.queued(topic) + n
            self.sends.append((topic, n, now_ms()))
            self._changed.notify_all()

    def wait_for_sends(self, n: int) -> list[tuple[str, int, int]]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.sends) >= n, PATIENCE), "no token came"
            return self.sends


@contextmanager
def _running(
    tokens: FakeRedis, rules: Rules = FREE, housekeeping: Callable[[], None] = lambda: None
) -> Iterator[threading.Event]:
    stop = threading.Event()
    turn = Relay(_FETCH, tokens, rules, housekeeping)
    with in_background(lambda: turn.run(stop, lambda: False)):
        try:
            yield stop
        finally:
            stop.set()


@pytest.fixture
def no_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found by chance: the relay wakes for a reason or not at all."""
    monkeypatch.setattr(relay, "SWEEP_SECONDS", 3600.0)


# How many


@pytest.mark.parametrize(
    ("due", "batch", "capacity", "queued", "wanted"),
    [
        (0, 16, 8, 0, 0),
        (1, 16, 8, 0, 1),
        (16, 16, 8, 0, 1),
        (17, 16, 8, 0, 2),
        (1000, 16, 8, 0, 8),
        (1000, 16, 8, 5, 3),
        (1000, 16, 8, 9, 0),
        (5, 1, 8, 2, 3),
    ],
)
def test_tokens_are_enough_for_what_is_due_and_no_more_than_workers_can_take(
    due: int, batch: int, capacity: int, queued: int, wanted: int
) -> None:
    assert tokens_wanted(due, batch, capacity, queued) == wanted


@given(st.integers(0, 10**6), st.integers(1, 1000), st.integers(1, 100), st.integers(0, 200))
def test_tokens_never_exceed_capacity_and_never_leave_due_rows_without_one(
    due: int, batch: int, capacity: int, queued: int
) -> None:
    n = tokens_wanted(due, batch, capacity, queued)
    assert n >= 0
    assert n == 0 or n + queued <= capacity
    assert not due or n + queued >= 1
    assert n + queued >= min(capacity, due / batch)


def test_every_lane_gets_tokens_for_its_own_rows(folder: DataFolder) -> None:
    ids = add(40)
    in_transaction(transitions.add, [Entry(Topic.SCRAPE, task_id, 1, "default", 3) for task_id in ids[:3]])
    tokens = FakeRedis()
    with WorkerLease(folder, "worker", 8):
        top_up([Lane("fetch", 16), Lane("scrape", 2), Lane("upload_raw", 1)], tokens, FREE)
    assert tokens.lying == {"fetch": 3, "scrape": 2}


def test_what_no_host_allows_gets_no_token(folder: DataFolder) -> None:
    add(100, "slow.example")
    tokens = FakeRedis()
    with WorkerLease(folder, "worker", 8):
        take(rules=Rules(60.0, 4))
        top_up(_FETCH, tokens, Rules(60.0, 4))
        assert tokens.sends == []
        add(3, "free.example")
        top_up(_FETCH, tokens, Rules(60.0, 4))
    assert tokens.lying == {"fetch": 1}


def test_a_paused_lane_gets_no_tokens(folder: DataFolder) -> None:
    add(5)
    set_pause("fetch", "disk", True, "full")
    tokens = FakeRedis()
    top_up(_FETCH, tokens, FREE)
    assert tokens.sends == []


def test_nothing_piles_up_while_no_worker_runs(folder: DataFolder) -> None:
    add(1000)
    tokens = FakeRedis()
    for _ in range(20):
        top_up(_FETCH, tokens, FREE)
        add(1, name=f"more{_}")
    assert tokens.lying == {"fetch": 1}


def test_capacity_is_what_all_living_workers_can_take(folder: DataFolder) -> None:
    assert worker_slots() == 1
    with WorkerLease(folder, "worker", 4), WorkerLease(folder, "by hand", 0):
        assert worker_slots() == 4
        with WorkerLease(folder, "worker", 3):
            assert worker_slots() == 7
    assert worker_slots() == 1


# When


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """One for each look of the relay."""
    has_changed, seen = Relay._has_changed, threading.Semaphore(0)

    def look(self: Relay) -> bool:
        seen.release()
        return has_changed(self)

    monkeypatch.setattr(Relay, "_has_changed", look)
    return seen


def wait_for_looks(looks: threading.Semaphore, n: int) -> None:
    for _ in range(n):
        assert looks.acquire(timeout=PATIENCE)


def test_a_task_that_is_added_gets_its_token_at_once(
    folder: DataFolder, no_sweeps: None, looks: threading.Semaphore
) -> None:
    tokens = FakeRedis()
    with _running(tokens):
        wait_for_looks(looks, 3)
        assert tokens.sends == []
        add()
        ((topic, n, _),) = tokens.wait_for_sends(1)  # no sweep would have found it
    assert (topic, n) == ("fetch", 1)


def test_a_row_gets_its_token_when_it_comes_due_and_not_before(folder: DataFolder, no_sweeps: None) -> None:
    add()
    (row,) = take()
    in_transaction(try_again, row, 700, "http_500", "oh")
    due = row_of(row.task_id)["due_at"]
    assert take() == []  # the worker's look in vain, which notes when the row is due
    tokens = FakeRedis()
    with _running(tokens):
        ((_, _, sent),) = tokens.wait_for_sends(1)
    assert sent >= due


def test_a_row_gets_its_token_when_its_host_allows_it_again(folder: DataFolder, no_sweeps: None) -> None:
    add(2)
    rules = Rules(host_delay=0.8, host_concurrency=4)
    take(rules=rules)
    allowed = host_row()["next_allowed_at"]
    tokens = FakeRedis()
    with _running(tokens, rules):
        ((_, _, sent),) = tokens.wait_for_sends(1)
    assert sent >= allowed - 250  # a claim may look so far ahead


def test_tokens_that_redis_lost_are_sent_again(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "SWEEP_SECONDS", 0.2)
    add()
    tokens = FakeRedis()
    with _running(tokens):
        tokens.wait_for_sends(1)
        tokens.lying.clear()  # FLUSHALL
        tokens.wait_for_sends(2)


def test_tokens_that_still_lie_there_are_not_sent_again(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "SWEEP_SECONDS", 0.05)
    add(5)
    tokens, looks = FakeRedis(), threading.Semaphore(0)
    with _running(tokens, housekeeping=looks.release):
        wait_for_looks(looks, 4)
    assert [n for _, n, _ in tokens.sends] == [1]


def test_a_redis_that_is_away_is_survived(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relay, "SWEEP_SECONDS", 0.05)
    add()
    tokens, looks = FakeRedis(), threading.Semaphore(0)
    tokens.is_away = True
    with _running(tokens, housekeeping=looks.release):
        wait_for_looks(looks, 3)  # the chores go on
        assert tokens.sends == []
        tokens.is_away = False
        tokens.wait_for_sends(1)
    assert "Redis is unreachable" in caplog.text


def test_the_relay_ends_when_its_turn_is_over_and_when_told_to_stop(folder: DataFolder) -> None:
    chores: list[int] = []
    ending = Relay(_FETCH, FakeRedis(), FREE, lambda: chores.append(1))
    ending.run(threading.Event(), lambda: True)
    assert chores == [1]
    stopped = threading.Event()
    stopped.set()
    ending.run(stopped, lambda: False)
    assert chores == [1]


def test_an_idle_relay_touches_neither_rows_nor_redis(
    folder: DataFolder, no_sweeps: None, looks: threading.Semaphore, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = FakeRedis()
    tokens.is_away = True  # would be said
    change("UPDATE tasks SET status = status")
    with _running(tokens):
        wait_for_looks(looks, 4)
    assert tokens.sends == []
    assert "Redis is unreachable" not in caplog.text
