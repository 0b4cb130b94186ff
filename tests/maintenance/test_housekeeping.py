"""Small chores: hosts that never answer, clocks that were wrong, disks that fill up."""

from __future__ import annotations

import logging
import shutil
from collections import namedtuple
from contextlib import AbstractContextManager

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows, database
from lienworker.errors import OperatorError
from lienworker.maintenance import hosts
from lienworker.maintenance.clocks import forgive_clock_jumps
from lienworker.maintenance.disk_limits import Size, measure, refuse_new_work, remember_size, room_in, watch_disk
from lienworker.maintenance.hosts import give_up_dead_hosts
from lienworker.operator.tasks import retry_tasks
from lienworker.outbox import clock_jumps, transitions
from lienworker.outbox.backoff import GiveUp, TryAgain, cooling_ms, decide
from lienworker.outbox.claims import claim_task
from lienworker.outbox.clock_jumps import correct_clock_jump, notice_clock_jump
from lienworker.outbox.outcomes import try_again
from lienworker.outbox.pacing import FAILING_AFTER, record_host_answer, record_host_failure
from lienworker.outbox.pauses import pauses, set_pause
from lienworker.outbox.rows import NEVER_DUE, Entry
from lienworker.outbox.states import Topic
from lienworker.settings import Settings
from lienworker.store import tasks
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import (
    FREE,
    add,
    change,
    host_row,
    in_transaction,
    row_of,
    states,
    status_of,
    take,
    the_books_are_right,
)

_GIVE_UP = 1800.0


def _fails(host: str, clock: Clock, times: int = FAILING_AFTER, apart: float = 700.0) -> None:
    """A host fails, and fails again each time that it has cooled."""
    for _ in range(times):
        in_transaction(record_host_failure, host, clock.ms, "connect_failed", None)
        clock.go(int(1000 * apart))


# Hosts that are dead


def test_a_host_without_an_answer_for_too_long_is_given_up_and_only_that_one(folder: DataFolder, clock: Clock) -> None:
    dead, alive = add(3, "dead.example"), add(2, "alive.example")
    assert claim_task(dead[0], "fetch", "me.1", FREE)
    _fails("dead.example", clock)

    assert give_up_dead_hosts(_GIVE_UP) == 2

    assert [status_of(task_id) for task_id in dead] == ["processing", "failed", "failed"]
    assert [status_of(task_id) for task_id in alive] == ["pending"] * 2
    failed = tasks.task(dead[1])
    assert failed is not None
    assert failed["reason"] == "host_down"
    assert "dead.example has not answered once in 30 minutes (connect_failed)" in failed["last_error"]
    assert [one["reason"] for one in tasks.attempts_of(dead[1])] == ["host_down"]
    the_books_are_right()


@pytest.mark.parametrize(("times", "apart"), [(FAILING_AFTER - 1, 3600.0), (FAILING_AFTER + 5, 100.0)])
def test_a_host_is_not_given_up_for_few_failures_or_too_early(
    folder: DataFolder, clock: Clock, times: int, apart: float
) -> None:
    add(2, "shaky.example")
    _fails("shaky.example", clock, times, apart)
    assert give_up_dead_hosts(_GIVE_UP) == 0


def test_one_answer_gives_a_host_all_its_time_again(folder: DataFolder, clock: Clock) -> None:
    add(2, "shaky.example")
    _fails("shaky.example", clock)
    in_transaction(record_host_answer, "shaky.example", clock.ms)
    assert give_up_dead_hosts(_GIVE_UP) == 0
    assert host_row("shaky.example")["failures_in_a_row"] == 0


def test_a_host_that_answers_now_and_then_is_not_given_up(folder: DataFolder, clock: Clock) -> None:
    """Requests go out together: one fails, and the others' answers come while the host cools. Answers they are."""
    add(2, "shaky.example")
    for _ in range(8):
        in_transaction(record_host_failure, "shaky.example", clock.ms, "timeout", None)
        clock.go(100)
        in_transaction(record_host_answer, "shaky.example", clock.ms)
        clock.go(400_000)

    assert give_up_dead_hosts(_GIVE_UP) == 0
    assert states() == {"waiting": 2}


def test_a_dead_host_is_given_up_in_chunks_until_nothing_waits(
    folder: DataFolder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "_ENDED_AT_ONCE", 4)
    add(10, "dead.example")
    _fails("dead.example", clock)
    assert [give_up_dead_hosts(_GIVE_UP) for _ in range(4)] == [4, 4, 2, 0]
    assert states() == {"delivered": 10}
    the_books_are_right()


def test_new_tasks_of_a_host_that_was_given_up_are_tried_before_they_fail(folder: DataFolder, clock: Clock) -> None:
    """The county's site was down last week. Today's import must not fail without one request."""
    add(2, "back.example")
    _fails("back.example", clock)
    assert give_up_dead_hosts(_GIVE_UP) == 2
    assert give_up_dead_hosts(_GIVE_UP) == 0
    clock.go(7 * 86_400_000)

    new = add(2, "back.example", name="new")

    assert give_up_dead_hosts(_GIVE_UP) == 0
    assert [row.task_id for row in take()] == new


def test_a_retry_by_hand_gives_a_dead_host_another_chance(folder: DataFolder, clock: Clock) -> None:
    ids = add(2, "dead.example")
    _fails("dead.example", clock)
    give_up_dead_hosts(_GIVE_UP)
    retry_tasks(ids, "host_down")
    assert give_up_dead_hosts(_GIVE_UP) == 0
    assert len(take()) == 2


# Cooling


def test_a_host_cools_longer_each_time_and_failures_in_the_air_together_are_one(
    folder: DataFolder, clock: Clock
) -> None:
    add(1)
    cooled = []
    for _ in range(4):
        for _ in range(5):
            in_transaction(record_host_failure, "a.example", clock.ms, "http_503", None)
            clock.go(1)
        cooled.append(host_row()["cooling_until"] - clock.ms)
        clock.ms = host_row()["cooling_until"]
    assert host_row()["failures_in_a_row"] == 4
    assert cooled == sorted(cooled)
    assert cooled[-1] > 3 * cooled[0]


def test_a_late_success_does_not_end_the_cooling(folder: DataFolder, clock: Clock) -> None:
    add(1)
    in_transaction(record_host_failure, "a.example", clock.ms, "http_429", 60.0)
    in_transaction(record_host_answer, "a.example", clock.ms + 10)
    assert host_row()["cooling_until"] == clock.ms + 60_000
    in_transaction(record_host_failure, "a.example", clock.ms + 20, "http_503", None)
    assert host_row()["cooling_until"] == clock.ms + 60_000, "nor does a shorter one"


@pytest.mark.parametrize(("failures", "asked", "wanted"), [(1, None, 2_000), (3, None, 8_000), (99, None, 300_000)])
def test_cooling_doubles_up_to_a_limit(failures: int, asked: float | None, wanted: int) -> None:
    assert cooling_ms(failures, asked, chance=0.5) == wanted


@pytest.mark.parametrize(("asked", "wanted"), [(60.0, 60_000), (1.0, 2_000), (10.0**9, 86_400_000), (-5.0, 2_000)])
def test_what_a_host_asks_for_counts_if_it_is_longer_and_not_absurd(asked: float, wanted: int) -> None:
    assert cooling_ms(1, asked, chance=0.5) == wanted


def test_each_try_comes_four_times_as_late_until_there_is_none() -> None:
    decisions = [decide(n, 4, 5.0, retryable=True, chance=0.5) for n in (1, 2, 3, 4)]
    assert decisions == [TryAgain(5_000), TryAgain(20_000), TryAgain(80_000), GiveUp()]
    assert decide(1, 4, 5.0, retryable=False) == GiveUp()
    assert decide(20, 100, 5.0, retryable=True, chance=1.0) == TryAgain(360_000)


def test_a_thousandth_try_is_as_good_as_the_hundredth() -> None:
    assert decide(1000, 10_000, 5.0, retryable=True, chance=0.5) == TryAgain(300_000)


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_chance_moves_a_time_by_a_fifth_at_most(chance: float) -> None:
    decision = decide(1, 4, 5.0, retryable=True, chance=chance)
    assert isinstance(decision, TryAgain)
    assert 4_000 <= decision.after_ms <= 6_000


# Clocks


def test_after_a_clock_was_set_back_nothing_waits_for_a_time_only_the_wrong_clock_knew(
    folder: DataFolder, clock: Clock
) -> None:
    days = 30 * 86_400_000
    clock.go(days)
    (first, second) = add(2)
    in_transaction(record_host_failure, "a.example", clock.ms, "http_503", 60.0)
    clock.go(61_000)
    in_transaction(try_again, take(1)[0], 5_000, "http_500", "oh")
    clock.go(-days)
    assert take() == []

    forgive_clock_jumps()

    assert {row.task_id for row in take()} == {first, second}
    the_books_are_right()


def test_a_clock_set_back_makes_nothing_wait_longer_than_it_should(folder: DataFolder, clock: Clock) -> None:
    """Also by less than what would be absurd: a day's cooling may be what a site has asked for."""
    add(2, "a.example")
    notice_clock_jump()
    change(f"UPDATE outbox SET due_at = {clock.ms + 5_000} WHERE id = 1")
    change(f"UPDATE hosts SET cooling_until = {clock.ms + 60_000}, next_allowed_at = {clock.ms - 1}")
    change(f"INSERT INTO breakers (endpoint, is_open, retry_at) VALUES ('raw', 1, {clock.ms + 7_000})")
    clock.ms -= 3_600_000
    assert notice_clock_jump() == pytest.approx(-3_600_000, abs=1_000)
    (due,), (later,) = all_rows("SELECT due_at FROM outbox ORDER BY id")
    ((cooling,),) = all_rows("SELECT cooling_until FROM hosts")
    ((probe,),) = all_rows("SELECT retry_at FROM breakers")
    assert [round((at - clock.ms) / 1000) for at in (due, later, cooling, probe)] == [5, 0, 60, 7]
    assert notice_clock_jump() == 0
    the_books_are_right()


def test_a_clock_set_ahead_makes_no_host_dead_and_none_asked_too_soon(folder: DataFolder, clock: Clock) -> None:
    waiting = add(3, "a.example")
    notice_clock_jump()
    for _ in range(FAILING_AFTER):
        in_transaction(record_host_failure, "a.example", clock.ms, "http_503", 0.0)
    change(f"UPDATE hosts SET cooling_until = {clock.ms + 60_000}, next_allowed_at = {clock.ms + 3_000}")
    change(f"UPDATE hosts SET failing_since = {clock.ms - 30_000}, failures_in_a_row = {FAILING_AFTER}")
    clock.ms += 86_400_000

    assert notice_clock_jump() == pytest.approx(86_400_000, abs=1_000)

    host = host_row("a.example")
    since, cooling, allowed = (host[name] for name in ("failing_since", "cooling_until", "next_allowed_at"))
    assert [round((at - clock.ms) / 1000) for at in (since, cooling, allowed)] == [-30, 60, 3]
    assert give_up_dead_hosts(_GIVE_UP) == 0
    assert [status_of(task_id) for task_id in waiting] == ["pending"] * 3
    the_books_are_right()


def test_a_jump_that_another_process_has_corrected_meanwhile_is_not_corrected_again(
    folder: DataFolder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(1, "a.example")
    notice_clock_jump()
    change(f"UPDATE hosts SET cooling_until = {clock.ms + 3_600_000 + 60_000}")
    clock.ms -= 3_600_000
    really_write = clock_jumps.write

    def write_after_another(name: str) -> AbstractContextManager[object]:
        monkeypatch.setattr(clock_jumps, "write", really_write)
        assert notice_clock_jump() < 0
        return really_write(name)

    monkeypatch.setattr(clock_jumps, "write", write_after_another)

    assert notice_clock_jump() == 0
    assert round((host_row("a.example")["cooling_until"] - clock.ms) / 1000) == 3_660


def test_a_process_that_books_requests_corrects_the_jump_itself(folder: DataFolder, clock: Clock) -> None:
    """A second until the next upkeep is enough to ask a site too soon."""
    add(1, "a.example")
    in_transaction(correct_clock_jump)
    change(f"UPDATE hosts SET next_allowed_at = {clock.ms + 3_000}")
    clock.ms += 30_000

    in_transaction(correct_clock_jump)

    assert round((host_row("a.example")["next_allowed_at"] - clock.ms) / 1000) == 3


def test_a_process_that_sees_a_clock_later_than_others_leaves_no_host_alone_for_a_day(
    folder: DataFolder, clock: Clock
) -> None:
    """Where it booked by the old clock after the others had corrected the schedule, nothing would correct that."""
    add(1, "a.example")
    clock.ms += 86_400_000
    in_transaction(correct_clock_jump)
    clock.ms -= 86_400_000
    in_transaction(correct_clock_jump)  # by one process
    clock.ms += 86_400_000
    in_transaction(correct_clock_jump)  # by another, which still has the old clock, and books
    change(f"UPDATE hosts SET next_allowed_at = {clock.ms + 3_000}")
    clock.ms -= 86_400_000

    in_transaction(correct_clock_jump)

    assert round((host_row("a.example")["next_allowed_at"] - clock.ms) / 1000) == 3


def test_rows_that_hide_behind_others_are_forgiven_in_the_end(folder: DataFolder, clock: Clock) -> None:
    (now_task,) = add(1, name="now")
    clock.go(30 * 86_400_000)
    (later,) = add(1, name="later")
    clock.go(-30 * 86_400_000)
    forgive_clock_jumps()
    assert take(1)[0].task_id == now_task
    for _ in range(3):
        forgive_clock_jumps()
        if taken := take(1):
            break
    assert taken[0].task_id == later


def test_what_waits_for_a_good_reason_goes_on_waiting(folder: DataFolder, clock: Clock) -> None:
    put_off, blocked = add(1, "a.example") + add(1, "b.example")
    in_transaction(try_again, take(1)[0], 3_600_000, "http_500", "oh")
    in_transaction(transitions.add, [Entry(Topic.UPLOAD_RESULT, blocked, 1, "default", 3, due_at=NEVER_DUE)])
    in_transaction(record_host_failure, "b.example", clock.ms, "http_429", 86_400.0)
    before = row_of(put_off)["due_at"], host_row("b.example")["cooling_until"]

    forgive_clock_jumps()

    assert (row_of(put_off)["due_at"], host_row("b.example")["cooling_until"]) == before
    assert row_of(blocked, "upload_result")["due_at"] == NEVER_DUE


def test_a_clock_that_is_right_costs_no_write(folder: DataFolder) -> None:
    add(3)
    assert _changes_of(forgive_clock_jumps) == 0


def _changes_of(work: object) -> int:
    before = database.connection().total_changes
    work()  # type: ignore[operator]
    return int(database.connection().total_changes - before)


# Disks

_Usage = namedtuple("_Usage", "total used free")


def limits(stop_intake_mb: int) -> Settings:
    return Settings(disk_stop_intake_mb=stop_intake_mb, disk_stop_fetch_mb=0)


def test_a_disk_that_fills_up_pauses_intake_then_fetching_and_both_resume(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(2)
    seen = []
    for free_mb in (1000, 299, 310, 99, 105, 150, 1000):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, mb=free_mb: _Usage(0, 0, mb * 1_000_000))
        watch_disk(folder, Settings(disk_stop_intake_mb=300, disk_stop_fetch_mb=100))
        seen.append([lane for lane, cause, _, _ in pauses() if cause == "disk"])
        if "fetch" in seen[-1]:
            assert take(1) == []
            assert "only 99 MB are free" in pauses()[0][3]
    # A little more room than it was stopped at is not enough: no going to and fro.
    assert seen == [[], ["intake"], ["intake"], ["fetch", "intake"], ["fetch", "intake"], ["intake"], []]
    assert len(take()) == 2


def test_the_real_disk_is_looked_at(folder: DataFolder) -> None:
    free_mb = shutil.disk_usage(folder.root).free // 1_000_000
    watch_disk(folder, limits(free_mb + 10_000))
    assert [lane for lane, *_ in pauses()] == ["intake"]
    watch_disk(folder, limits(0))
    assert pauses() == []


def test_the_disk_does_not_lift_an_operators_pause(folder: DataFolder) -> None:
    set_pause("fetch", "operator", True, "by hand")
    watch_disk(folder, limits(0))
    assert [(lane, cause) for lane, cause, _, _ in pauses()] == [("fetch", "operator")]


def test_looking_at_a_disk_that_has_not_changed_costs_no_write(folder: DataFolder) -> None:
    watch_disk(folder, limits(10**9))
    assert all_rows("SELECT lane FROM pauses") == [("intake",)]
    assert _changes_of(lambda: watch_disk(folder, limits(10**9))) == 0


def test_a_folder_that_grows_too_large_warns_then_stops_intake_then_fetching(
    folder: DataFolder, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(data_max_mb=1000, disk_warn_mb=0, disk_stop_intake_mb=0, disk_stop_fetch_mb=0)
    caplog.set_level(logging.INFO)
    seen = []
    for mb in (700, 800, 900, 1000, 960, 949, 860, 849):
        remember_size(Size(0, mb * 1_000_000, 0, 0, "2026-11-16T00:00:00.000Z"))
        watch_disk(folder, settings)
        stopped = [lane for lane, cause, _, _ in pauses() if cause == "disk"]
        seen.append((mb, stopped, bool(room_in(folder, settings).warnings())))
    assert seen == [
        (700, [], False),
        (800, [], True),
        (900, ["intake"], True),
        (1000, ["fetch", "intake"], True),
        (960, ["fetch", "intake"], True),
        (949, ["intake"], True),
        (860, ["intake"], True),
        (849, [], True),
    ]
    said = [record.getMessage() for record in caplog.records if getattr(record, "action", "") == "disk"]
    assert said == [
        "intake is paused: the data folder takes 900 of 1,000 MB; it resumes at 850 MB",
        "fetch is paused: the data folder takes 1,000 of 1,000 MB; it resumes at 950 MB",
        "fetch resumes: there is room again",
        "intake resumes: there is room again",
    ]


def test_new_work_by_hand_is_refused_with_what_to_do(folder: DataFolder) -> None:
    remember_size(Size(0, 950_000_000, 0, 0, "2026-11-16T00:00:00.000Z"))
    with pytest.raises(OperatorError, match=r"takes 950 of 1,000 MB .*lienworker purge"):
        refuse_new_work(folder, Settings(data_max_mb=1000, disk_stop_intake_mb=0, disk_stop_fetch_mb=0))


def test_the_size_of_the_folder_is_what_its_files_take(folder: DataFolder) -> None:
    (folder.raw / "a").mkdir()
    (folder.raw / "a" / "page.html.gz").write_bytes(b"x" * 100_000)

    size = measure(folder)

    assert 100_000 <= size.raw < 120_000
    assert size.database > 4096
