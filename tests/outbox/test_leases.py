"""Leases live as long as their holder: real processes that die, stop, hang and come back."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, execute, one_row
from lienworker.outbox import leases, transitions
from lienworker.outbox.leases import MOST_CRASHES, Watch, WorkerLease, free, is_taken, turn
from lienworker.outbox.outcomes import try_again
from lienworker.outbox.relay import worker_slots
from lienworker.outbox.rows import Entry
from lienworker.outbox.states import Topic
from lienworker.outbox.transitions import end
from lienworker.store import tasks
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import (
    Player,
    add,
    change,
    in_transaction,
    row_of,
    status_of,
    take,
    the_books_are_right,
    until,
)


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> float:
    """Leases of 0.4 s in this process, so that nobody waits for 30 s."""
    monkeypatch.setattr(leases, "LEASE_MS", 400)
    return 0.4


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock by which this process judges others: it goes on when a test says so."""
    now = [1000.0]
    monkeypatch.setattr(leases, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def _beat(holder: str) -> int:
    row = one_row("SELECT beat FROM workers WHERE holder = ?", (holder,))
    return int(row[0]) if row else -1


# Death


def test_a_killed_holders_rows_are_free_after_the_next_look_of_a_living_one(
    folder: DataFolder, player: Callable[..., Player]
) -> None:
    ids = add(3)
    dying = player("hold", 2)
    dying.hear()
    watch = Watch(folder, "me")
    watch.reap_dead_workers()
    assert [row_of(task_id)["state"] for task_id in ids] == ["leased", "leased", "waiting"]

    dying.kill()
    watch.reap_dead_workers()

    assert [(row["state"], row["attempts"], row["alone"]) for row in map(row_of, ids)] == [
        ("waiting", 1, 1),
        ("waiting", 1, 1),
        ("waiting", 0, 0),
    ]
    assert [status_of(task_id) for task_id in ids] == ["pending"] * 3
    assert tasks.attempts_of(ids[0])[0]["reason"] == "worker_died"
    assert all_rows("SELECT * FROM workers") == []
    assert list(folder.holders.iterdir()) == []
    the_books_are_right()


def test_a_killed_holder_is_found_by_the_next_one_that_starts(
    folder: DataFolder, player: Callable[..., Player]
) -> None:
    (task_id,) = add()
    dying = player("hold", 1)
    dying.hear()
    dying.kill()
    with WorkerLease(folder, "worker", 4) as holder:
        assert row_of(task_id)["state"] == "waiting"
        assert [row[0] for row in all_rows("SELECT holder FROM workers")] == [holder.id]


def test_a_dead_holders_rows_are_free_even_if_its_sign_of_life_is_gone(
    folder: DataFolder, player: Callable[..., Player]
) -> None:
    (task_id,) = add()
    dying = player("hold", 1)
    dying.hear()
    dying.kill()
    change("DELETE FROM workers")
    Watch(folder, "me").reap_dead_workers()
    assert row_of(task_id)["state"] == "waiting"


def test_a_holder_that_leaves_in_order_gives_its_rows_back_without_blame(
    folder: DataFolder, player: Callable[..., Player]
) -> None:
    (task_id,) = add()
    leaving = player("hold", 1)
    leaving.hear()

    assert leaving.wait() == 0

    row = row_of(task_id)
    assert (row["state"], row["attempts"], row["alone"]) == ("waiting", 0, 0)
    assert all_rows("SELECT * FROM workers") == []
    assert list(folder.holders.iterdir()) == []


def test_a_look_at_the_others_never_frees_ones_own_rows(folder: DataFolder) -> None:
    (task_id,) = add()
    with WorkerLease(folder, "worker", 4) as holder, holder.lease() as token:
        take(token=token)
        holder._watch.reap_dead_workers()
        assert row_of(task_id)["state"] == "leased"


def test_only_the_dead_holders_rows_are_freed(folder: DataFolder, player: Callable[..., Player]) -> None:
    ids = add(2)
    living, dying = player("hold", 1), None
    living.hear()
    dying = player("hold", 1)
    dying.hear()
    dying.kill()
    Watch(folder, "me").reap_dead_workers()
    assert sorted(row_of(task_id)["state"] for task_id in ids) == ["leased", "waiting"]
    assert living.ask("end") == [True]


# Slowness


def test_a_living_holders_rows_are_never_freed_however_slow_it_is(
    folder: DataFolder, player: Callable[..., Player], short_leases: float, steady: list[float]
) -> None:
    (task_id,) = add()
    slow = player("hold", 1, 0.05)
    holder = slow.hear()["holder"]
    watch = Watch(folder, "me")
    for _ in range(10):
        watch.reap_dead_workers()
        assert row_of(task_id)["state"] == "leased"
        beats = _beat(holder)
        until(lambda beats=beats: _beat(holder) > beats)
        steady[0] += 0.45 * short_leases
    assert slow.ask("end") == [True]
    assert row_of(task_id)["state"] == "delivered"


def test_a_beat_gives_new_time_to_the_leases_in_hand_and_to_no_others(folder: DataFolder, clock: Clock) -> None:
    add(2)
    holder = WorkerLease(folder, "worker", 4)
    with holder.lease() as token:
        (mine,) = take(1, token=token)
        (other,) = take(1, token="other.1")
        before = row_of(other.task_id)["lease_until"]
        clock.go(5000)
        holder.beat()
        assert row_of(mine.task_id)["lease_until"] == before + 5000
        assert row_of(other.task_id)["lease_until"] == before


def test_a_jump_of_the_wall_clock_frees_nothing(folder: DataFolder, clock: Clock) -> None:
    (task_id,) = add()
    watch = Watch(folder, "me")
    with WorkerLease(folder, "worker", 4) as holder, holder.lease() as token:
        take(token=token)
        for jump in (10 * 86_400_000, -20 * 86_400_000, 3_600_000):
            watch.reap_dead_workers()
            clock.go(jump)
            watch.reap_dead_workers()
            assert row_of(task_id)["state"] == "leased"


# Standing still


def test_a_stopped_holders_rows_are_freed_after_the_lease_and_its_late_commit_is_refused(
    folder: DataFolder, player: Callable[..., Player], short_leases: float, steady: list[float]
) -> None:
    (task_id,) = add()
    stopped = player("hold", 1, 0.05)
    stopped.hear()
    with WorkerLease(folder, "worker", 4) as me, me.lease() as token:
        stopped.stop_in_its_tracks()
        watch, states = Watch(folder, me.id), []
        for _ in range(4):
            watch.reap_dead_workers()
            states.append(row_of(task_id)["state"])
            steady[0] += 0.45 * short_leases
        assert states == ["leased", "leased", "leased", "waiting"]
        (mine,) = take(token=token)
        stopped.signal(signal.SIGCONT)

        assert stopped.ask("end") == [False]
        assert row_of(task_id)["lease_token"] == token
        assert in_transaction(end, mine)
    the_books_are_right()


def test_a_holder_that_comes_back_after_a_stop_keeps_what_it_claims_from_then_on(
    folder: DataFolder, player: Callable[..., Player], short_leases: float
) -> None:
    """It lives and beats: were it still counted as dead, each of its rows would be taken from it and blamed."""
    (old,) = add(1, name="old")
    stopped = player("hold", 1, 0.05)
    stopped.hear()
    watch = Watch(folder, "me")
    watch.reap_dead_workers()
    stopped.stop_in_its_tracks()
    until(lambda: watch.reap_dead_workers() or row_of(old)["state"] == "waiting")
    change("UPDATE outbox SET state = 'held'")
    (new,) = add(1, name="new")
    stopped.signal(signal.SIGCONT)
    assert stopped.ask("beat") == "beaten"
    assert stopped.ask("claim") == [row_of(new)["id"]]

    watch.reap_dead_workers()

    assert row_of(new)["state"] == "leased"
    assert stopped.ask("end") == [True]


def test_a_holder_that_comes_back_after_a_stop_is_counted_as_a_worker_again(folder: DataFolder) -> None:
    with WorkerLease(folder, "worker", 7) as holder:
        free(holder.id, blame=True)  # what another one did while we stood still
        (folder.holders / holder.id).unlink()
        holder.beat()
        assert worker_slots() == 7


def test_a_watcher_that_stood_still_itself_looks_again_before_it_declares_others_dead(
    folder: DataFolder, steady: list[float]
) -> None:
    """Ctrl-Z on the whole stack, a frozen container, a database locked for long: all stand still together."""
    (task_id,) = add()
    watch = Watch(folder, "me")
    with WorkerLease(folder, "worker", 4) as holder, holder.lease() as token:
        take(token=token)
        watch.reap_dead_workers()
        steady[0] += 60  # nobody ran for a minute; this watcher happens to be the first to wake
        watch.reap_dead_workers()
        assert row_of(task_id)["state"] == "leased"


# What a lease leaves behind


def test_rows_that_a_broken_step_leaves_in_a_living_process_are_free_again(folder: DataFolder) -> None:
    """A full disk or a locked database ends a step with an error. Its process lives on, so nobody else frees them."""

    def broken_step(holder: WorkerLease) -> None:
        with holder.lease() as token:
            take(token=token)
            raise OSError("No space left on device")

    ids = add(3)
    with WorkerLease(folder, "worker", 4) as holder:
        with pytest.raises(OSError, match="No space"):
            broken_step(holder)
        holder.beat()
        holder._watch.reap_dead_workers()
        Watch(folder, "another").reap_dead_workers()

        assert [row_of(task_id)["state"] for task_id in ids] == ["waiting"] * 3


def test_the_pulse_goes_on_after_a_beat_that_failed(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(leases, "PULSE_SECONDS", 0.02)
    failures = [OSError("disk full"), OSError("disk full")]

    def after_beat() -> None:
        if failures:
            raise failures.pop()

    with WorkerLease(folder, "worker", 1, after_beat) as holder:
        until(lambda: _beat(holder.id) >= 5)
    assert "pulse failed, will try again: disk full" in caplog.text


def test_every_lease_has_a_token_of_its_own_that_names_its_holder(folder: DataFolder) -> None:
    holder = WorkerLease(folder, "worker", 4)
    with holder.lease() as one, holder.lease() as other:
        assert one != other
        assert {one.partition(".")[0], other.partition(".")[0]} == {holder.id}


# Suspects


def _crash(token: str = "dead.1") -> None:
    """The holder of a token dies."""
    free(token.partition(".")[0], blame=True)


def test_a_row_whose_holder_died_travels_alone_from_then_on(folder: DataFolder) -> None:
    add(3, name="suspect")
    take(token="dead.1")
    _crash()
    add(5, name="fresh")

    batches = [take(10) for _ in range(4)]

    assert [[row.alone > 0 for row in batch] for batch in batches] == [[True], [True], [True], [False] * 5]


def test_a_suspect_in_front_is_the_whole_batch_whatever_waits_elsewhere(folder: DataFolder) -> None:
    add(1, name="suspect", queue="urgent")
    take(token="dead.1")
    _crash()
    add(2, "b.example", name="fresh")
    add(2, "a.example", name="fresh", priority=4)

    assert [row.alone > 0 for row in take(10)] == [True]
    assert [row.alone for row in take(10)] == [0] * 4


def test_suspects_are_passed_over_where_there_is_no_room_for_them(folder: DataFolder) -> None:
    add(3, name="suspect")
    take(token="dead.1")
    _crash()
    add(2, name="fresh", priority=4)

    assert [row.alone for row in take(10, quarantined=False)] == [0, 0]
    assert take(10, quarantined=False) == []
    assert [row.alone > 0 for row in take(10)] == [True]


def test_a_suspect_behind_fresh_rows_does_not_join_their_batch(folder: DataFolder, clock: Clock) -> None:
    add(1, name="suspect", priority=4)
    take(token="dead.1")
    _crash()
    add(3, name="fresh", priority=1)
    assert [row.alone for row in take(10)] == [0, 0, 0]
    assert [row.alone > 0 for row in take(10)] == [True]


def test_one_suspect_travels_in_a_process_at_a_time(folder: DataFolder) -> None:
    holder = WorkerLease(folder, "worker", 4)
    with holder.room_for_quarantined() as first, holder.room_for_quarantined() as second:
        assert (first, second) == (True, False)
    with holder.room_for_quarantined() as third:
        assert third


def _crash_until_settled(killers: set[str], neighbours: int = 4) -> int:
    """A worker that claims a suspect and a batch beside it, again and again, and dies where it meets a killer.

    Gives the number of its deaths. What it works on without dying, it ends.
    """
    deaths = 0
    for n in range(200):
        holder = f"h{n}"
        first = take(neighbours, token=f"{holder}.1", quarantined=True)
        beside = take(neighbours, token=f"{holder}.2", quarantined=False)
        if not first and not beside:
            return deaths
        if any(row.task_id in killers for row in first + beside):
            _crash(f"{holder}.1")
            deaths += 1
        else:
            for row in first + beside:
                assert in_transaction(end, row)
                in_transaction(tasks.mark_completed, row.task_id)
    raise AssertionError("it never settled")


def test_a_page_that_kills_workers_is_convicted_and_its_neighbours_go_through(folder: DataFolder) -> None:
    ids = add(30)
    guilty = ids[13]

    deaths = _crash_until_settled({guilty})

    assert {task_id: status_of(task_id) for task_id in ids} == {
        **dict.fromkeys(ids, "completed"),
        guilty: "failed",
    }
    failed = tasks.task(guilty)
    assert failed is not None
    assert (failed["reason"], row_of(guilty)["state"]) == ("worker_died", "delivered")
    assert deaths == MOST_CRASHES
    the_books_are_right()


def test_two_pages_that_kill_workers_do_not_take_an_innocent_one_with_them(folder: DataFolder) -> None:
    """While an innocent suspect travels, a fresh killer strikes beside it: its deaths are not the suspect's fault."""
    ids = add(60)
    guilty = {ids[1], ids[12], ids[25]}

    _crash_until_settled(guilty)

    assert {task_id for task_id in ids if status_of(task_id) == "failed"} == guilty
    the_books_are_right()


def test_every_row_of_a_dead_holder_has_lost_an_attempt_also_beside_a_suspect(folder: DataFolder) -> None:
    """The design says so: a row whose holder died has lost an attempt and travels alone from then on."""
    (suspect,) = add(1, name="suspect")
    take(token="dead.1")
    _crash()
    (fresh,) = add(1, name="fresh")
    take(1, token="dead.1")
    take(1, token="dead.2", quarantined=False)

    _crash()

    assert row_of(suspect)["attempts"] == 2
    assert row_of(fresh)["alone"] == 1


def test_failed_tries_do_not_count_as_crashes(folder: DataFolder) -> None:
    """A page with a few time-outs behind it is not convicted by the first power loss."""
    (task_id,) = add()
    for _ in range(MOST_CRASHES - 1):
        in_transaction(try_again, take()[0], 0, "timeout", "too slow")
    take(token="dead.1")

    _crash()

    assert row_of(task_id)["state"] == "waiting"
    assert status_of(task_id) == "pending"


def test_an_upload_row_that_kills_workers_is_parked_and_its_task_stays_as_it_is(folder: DataFolder) -> None:
    (task_id,) = add()
    in_transaction(end, take()[0])
    in_transaction(tasks.mark_completed, task_id)
    in_transaction(transitions.add, [Entry(Topic.UPLOAD_RAW, task_id, 1, "default", 3)])
    for _ in range(MOST_CRASHES):
        assert len(take(topic="upload_raw", token="dead.1")) == 1
        _crash()

    assert row_of(task_id, "upload_raw")["state"] == "parked"
    assert row_of(task_id, "upload_raw")["reason"] == "worker_died"
    assert status_of(task_id) == "completed"
    the_books_are_right()


# Turns


def test_a_turn_is_taken_by_one_at_a_time_across_processes(folder: DataFolder, player: Callable[..., Player]) -> None:
    takers = [player("take_turn") for _ in range(4)]
    for taker in takers:
        assert taker.hear() == "ready"
    for taker in takers:
        taker.tell("go")
    got = [taker.hear() for taker in takers]
    assert sorted(got) == [False, False, False, True]

    winner = takers[got.index(True)]
    with turn("relay", "me") as mine:
        assert not mine
    assert is_taken("relay")
    assert winner.ask("end it") == "ended"
    with turn("relay", "me") as mine:
        assert mine
    assert not is_taken("relay")


def test_a_turn_of_a_dead_holder_is_free_after_the_next_look(folder: DataFolder, player: Callable[..., Player]) -> None:
    taker = player("take_turn")
    taker.hear()
    assert taker.ask("go") is True
    Watch(folder, "me").reap_dead_workers()
    assert is_taken("relay")

    taker.kill()
    Watch(folder, "me").reap_dead_workers()

    assert not is_taken("relay")


def test_a_turn_of_a_dead_holder_without_a_sign_of_life_is_free_too(
    folder: DataFolder, player: Callable[..., Player]
) -> None:
    """One that was counted as dead, came back and took the turn has no row of its own; then it really dies."""
    taker = player("take_turn")
    taker.hear()
    change("DELETE FROM workers")
    assert taker.ask("go") is True
    taker.kill()

    Watch(folder, "me").reap_dead_workers()

    assert not is_taken("relay")


def test_a_turn_ends_with_its_block_also_when_that_goes_wrong(folder: DataFolder) -> None:
    def go_wrong() -> None:
        with turn("relay", "me"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_wrong()
    assert not is_taken("relay")


def test_who_has_lost_a_turn_does_not_end_the_next_ones(folder: DataFolder) -> None:
    with turn("relay", "slow") as mine:
        assert mine
        free("slow", blame=True)
        with turn("collect", "other"), turn("relay", "other") as theirs:
            assert theirs
            change("UPDATE turns SET taken_at = taken_at")
        assert not is_taken("relay")
        change("INSERT INTO turns VALUES ('relay', 'other', '')")
    assert is_taken("relay")


def test_a_turn_whose_end_could_not_be_stored_is_taken_up_again_by_its_holder_alone(folder: DataFolder) -> None:
    """After a full disk nobody would relay any more: the turn is somebody's who lives, and who is not at it."""
    with turn("relay", "me"):
        execute("PRAGMA query_only = 1")  # as when the disk is full: reading works, writing does not
    execute("PRAGMA query_only = 0")
    assert is_taken("relay", "other")
    assert not is_taken("relay", "me")
    with turn("relay", "other") as theirs:
        assert not theirs
    with turn("relay", "me") as mine, turn("relay", "me") as twice:
        assert mine
        assert not twice
    assert not is_taken("relay", "other")
