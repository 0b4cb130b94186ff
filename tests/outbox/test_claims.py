"""Claiming: the best due rows of a lane, within what each host allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import one_row
from lienworker.outbox import transitions
from lienworker.outbox.claims import Rules, claim_task, claimable, next_due
from lienworker.outbox.outcomes import give_back, try_again
from lienworker.outbox.pacing import HORIZON_MS, Politeness, Slot, record_host_failure, slow_down
from lienworker.outbox.pauses import set_pause
from lienworker.outbox.registration import register_task
from lienworker.outbox.rows import NEVER_DUE, Entry
from lienworker.outbox.states import Topic
from lienworker.outbox.transitions import end
from lienworker.store.tasks import NewTask
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import (
    FREE,
    Player,
    add,
    change,
    host_row,
    in_transaction,
    row_of,
    status_of,
    take,
    the_books_are_right,
)


def _next_step(task_id: str, **fields: object) -> None:
    in_transaction(transitions.add, [Entry(Topic.SCRAPE, task_id, 1, "default", 3, **fields)])  # type: ignore[arg-type]


# What comes first


def test_urgent_comes_before_default_then_priority_then_age(folder: DataFolder, clock: Clock) -> None:
    for name, queue, priority in [
        ("default-4", "default", 4),
        ("default-1-old", "default", 1),
        ("urgent-4", "urgent", 4),
        ("default-1-new", "default", 1),
        ("urgent-1", "urgent", 1),
    ]:
        clock.go(1)
        add(name=name, queue=queue, priority=priority)

    taken = [row.task_id.removeprefix("a.example/").removesuffix("0") for row in take()]

    assert taken == ["urgent-1", "urgent-4", "default-1-old", "default-1-new", "default-4"]


def test_the_order_holds_across_hosts_and_across_claims(folder: DataFolder) -> None:
    ids = add(3, "b.example") + add(3, "a.example", priority=2) + add(2, "c.example", queue="urgent", priority=4)
    hosts = [row.host for _ in range(4) for row in take(2)]

    assert hosts == ["c.example"] * 2 + ["a.example"] * 3 + ["b.example"] * 3
    assert len(ids) == 8


def test_rows_of_one_moment_come_in_the_order_of_their_coming(folder: DataFolder, clock: Clock) -> None:
    ids = add(20)
    assert [row.task_id for _ in range(4) for row in take(5)] == ids


def test_an_urgent_task_overtakes_a_backlog_at_once(folder: DataFolder) -> None:
    add(500)
    take(10)
    (urgent,) = add(name="now", queue="urgent", priority=4)
    assert take(1)[0].task_id == urgent


def test_a_claim_marks_rows_and_tasks_and_says_why_they_were_taken(folder: DataFolder, clock: Clock) -> None:
    (task_id,) = add()

    (row,) = take(token="me.7", message_id="m-1")

    stored = row_of(task_id)
    assert (stored["state"], stored["lease_token"], stored["message_id"]) == ("leased", "me.7", "m-1")
    assert stored["lease_until"] > clock.ms
    assert (row.id, row.token, row.start_at) == (stored["id"], "me.7", clock.ms)
    assert status_of(task_id) == "processing"
    the_books_are_right()


def test_a_claim_takes_no_more_than_asked_for_and_nothing_twice(folder: DataFolder) -> None:
    ids = add(10)
    batches = [take(4), take(4), take(4), take(4)]
    assert [len(batch) for batch in batches] == [4, 4, 2, 0]
    assert [row.task_id for batch in batches for row in batch] == ids


def test_lanes_do_not_mix(folder: DataFolder) -> None:
    (task_id,) = add()
    _next_step(task_id)
    assert [row.topic for row in take(topic="scrape")] == ["scrape"]
    assert [row.topic for row in take(topic="fetch")] == ["fetch"]
    assert take(topic="upload_raw") == []


# When it is due


@pytest.mark.parametrize("topic", ["fetch", "scrape"])
def test_a_row_is_not_claimed_a_millisecond_early_and_is_claimed_when_due(
    folder: DataFolder, clock: Clock, topic: str
) -> None:
    (task_id,) = add()
    if topic == "scrape":
        _next_step(task_id, due_at=clock.ms + 5000)
    else:
        in_transaction(try_again, take()[0], 5000, "http_500", "oh")

    clock.go(4999)
    assert take(topic=topic) == []
    assert claimable(topic, FREE, 10) == 0
    assert next_due(topic) == clock.ms + 1
    clock.go(1)
    assert claimable(topic, FREE, 10) == 1
    assert [row.task_id for row in take(topic=topic)] == [task_id]
    the_books_are_right()


def test_a_delayed_row_in_front_does_not_hide_those_behind_it(folder: DataFolder, clock: Clock) -> None:
    first, second = add(2)
    in_transaction(try_again, take(1)[0], 60_000, "http_500", "oh")
    assert [row.task_id for row in take()] == [second]
    clock.go(60_000)
    assert [row.task_id for row in take()] == [first]


def test_a_row_that_comes_after_a_look_in_vain_is_found(folder: DataFolder, clock: Clock) -> None:
    add(1)
    in_transaction(try_again, take()[0], 60_000, "http_500", "oh")
    assert take() == []  # which notes when to look next
    (new,) = add(1, name="new")
    assert [row.task_id for row in take()] == [new]
    the_books_are_right()


def test_a_blocked_row_waits_for_ever_and_nobody_waits_for_it(folder: DataFolder, clock: Clock) -> None:
    (task_id,) = add()
    _next_step(task_id, due_at=NEVER_DUE)
    clock.go(10 * 365 * 86_400_000)
    assert take(topic="scrape") == []
    assert next_due("scrape") is None


def test_the_next_due_time_is_said_while_other_rows_are_due_already(folder: DataFolder, clock: Clock) -> None:
    """A busy host's rows are due all the time; they must not hide when the next host's turn comes."""
    rules = Rules(0.0, 1)
    add(2, "busy.example")
    take(rules=rules)
    add(1, "later.example")
    in_transaction(try_again, take(rules=rules)[0], 300, "http_500", "oh")

    assert take(rules=rules) == []  # which notes when to look next

    assert claimable("fetch", rules, 10) == 0
    assert next_due("fetch") == clock.ms + 300


# What hosts allow


def test_the_delay_of_a_host_is_kept_exactly_within_a_claim_and_across_claims(folder: DataFolder, clock: Clock) -> None:
    add(40)
    rules = Rules(host_delay=0.1, host_concurrency=1000)
    starts: list[int] = []
    for _ in range(12):
        for row in take(7, rules=rules):
            assert clock.ms <= row.start_at <= clock.ms + HORIZON_MS
            starts.append(row.start_at)
        clock.go(130)

    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert len(starts) >= 15
    assert min(gaps) == 100
    # Nor is time lost: as long as there is work, each start is used.
    assert max(gaps) == 100


def test_a_row_that_was_not_there_does_not_cost_the_host_its_time(folder: DataFolder, clock: Clock) -> None:
    add(3)
    for row in take(2):
        in_transaction(try_again, row, 60_000, "http_500", "oh")
    change("UPDATE hosts SET next_allowed_at = 0")

    assert len(take(10, rules=Rules(host_delay=0.1, host_concurrency=10))) == 1

    assert host_row()["next_allowed_at"] == clock.ms + 100


def test_open_requests_of_a_host_are_limited_within_a_claim_and_across_claims(folder: DataFolder) -> None:
    add(20)
    rules = Rules(host_delay=0.0, host_concurrency=3)
    first = take(2, rules=rules)
    second = take(10, rules=rules)
    assert (len(first), len(second), len(take(rules=rules))) == (2, 1, 0)

    in_transaction(end, first[0])
    in_transaction(try_again, first[1], 60_000, "http_500", "oh")
    assert len(take(rules=rules)) == 2
    give_back(second)
    assert len(take(rules=rules)) == 1
    assert take(rules=rules) == []


def test_ranks_of_one_host_share_its_limits(folder: DataFolder, clock: Clock) -> None:
    for priority in (1, 2, 3, 4):
        add(2, name=f"n{priority}-", priority=priority)
    taken = take(rules=Rules(0.1, 1000))
    assert [row.priority for row in taken] == [1, 1, 2]
    assert [row.start_at - clock.ms for row in taken] == [0, 100, 200]

    assert len(take(rules=Rules(0.0, 3))) == 0


def test_a_platform_asks_for_its_own_delay_and_concurrency(folder: DataFolder, clock: Clock) -> None:
    add(5)
    register_task(NewTask("cli", "http://a.example/x"), politeness=Politeness(delay=0.2, concurrency=2))
    assert [row.start_at - clock.ms for row in take()] == [0, 200]
    assert take() == []


def test_a_delay_longer_than_the_horizon_gives_one_row_at_a_time(folder: DataFolder, clock: Clock) -> None:
    add(3)
    rules = Rules(1.0, 10)
    assert len(take(rules=rules)) == 1
    assert next_due("fetch") == clock.ms + 1000
    clock.go(1000 - HORIZON_MS - 1)
    assert take(rules=rules) == []
    clock.go(1)
    (row,) = take(rules=rules)
    assert row.start_at == clock.ms + HORIZON_MS


def test_one_host_that_is_full_does_not_hold_up_another(folder: DataFolder) -> None:
    add(50, "slow.example", priority=1)
    add(2, "fast.example", priority=4)
    assert Counter(row.host for row in take(rules=Rules(10.0, 1))) == {"slow.example": 1, "fast.example": 1}


def test_a_cooling_host_is_left_alone_until_it_has_cooled(folder: DataFolder, clock: Clock) -> None:
    add(3, "hot.example")
    add(1, "cool.example")
    in_transaction(record_host_failure, "hot.example", clock.ms, "http_503", 30.0)

    assert [row.host for row in take()] == ["cool.example"]
    assert claimable("fetch", FREE, 10) == 0
    assert next_due("fetch") == clock.ms + 30_000
    clock.go(29_999)
    assert take() == []
    clock.go(1)
    assert len(take()) == 3


def test_the_latest_wish_of_robots_slows_a_host_down(folder: DataFolder, clock: Clock) -> None:
    add(10)
    in_transaction(slow_down, "a.example", 20.0)
    in_transaction(slow_down, "a.example", 5.0)
    take(rules=Rules(1.0, 10))
    assert host_row()["next_allowed_at"] == clock.ms + 5_000


def test_a_short_wish_of_robots_does_not_undercut_the_setting(folder: DataFolder, clock: Clock) -> None:
    """A crawl delay of 1 s on a site that the operator calls every 10 s must not speed it up."""
    add(10)
    in_transaction(slow_down, "a.example", 1.0)
    take(rules=Rules(host_delay=10.0, host_concurrency=10))
    assert host_row()["next_allowed_at"] == clock.ms + 10_000


def test_an_import_does_not_undo_what_robots_asked_for(folder: DataFolder, clock: Clock) -> None:
    polite = Politeness(delay=1.0)
    register_task(NewTask("cli", "http://a.example/1"), politeness=polite)
    in_transaction(slow_down, "a.example", 20.0)

    register_task(NewTask("cli", "http://a.example/2"), politeness=polite)

    take()
    assert host_row()["next_allowed_at"] == clock.ms + 20_000


@pytest.mark.parametrize(("delay", "open_now", "wanted"), [(0, 0, 4), (100, 0, 3), (250, 0, 2), (251, 0, 1), (0, 4, 0)])
def test_a_slot_gives_the_starts_within_the_horizon_and_takes_them_back(delay: int, open_now: int, wanted: int) -> None:
    slot = Slot(delay_ms=delay, concurrency=4, next_allowed_at=0, open=open_now)
    starts = slot.take(1000, 10)
    assert starts == [1000 + k * delay for k in range(wanted)]
    slot.give_back(starts[1:])
    assert slot.open == open_now + min(1, wanted)
    if wanted > 1:
        assert slot.next_allowed_at == starts[1]


# Pauses


def test_a_paused_lane_gives_nothing_until_the_last_cause_is_gone(folder: DataFolder) -> None:
    (task_id,) = add()
    _next_step(task_id)
    set_pause("fetch", "disk", True, "full")
    set_pause("fetch", "operator", True, "by hand")
    assert (take(), claimable("fetch", FREE, 10)) == ([], 0)
    assert len(take(topic="scrape")) == 1, "parsing needs no new room"
    set_pause("fetch", "disk", False, "")
    assert take() == []
    set_pause("fetch", "operator", False, "")
    assert len(take()) == 1


def test_uploads_have_a_pause_of_their_own(folder: DataFolder) -> None:
    (task_id,) = add()
    in_transaction(transitions.add, [Entry(Topic.UPLOAD_RAW, task_id, 1, "default", 3)])
    set_pause("upload", "operator", True, "by hand")
    assert take(topic="upload_raw") == []
    assert len(take()) == 1


# One task for somebody who waits


def test_one_task_is_claimed_for_who_waits_and_its_host_is_paced(folder: DataFolder, clock: Clock) -> None:
    first, second = add(2)
    rules = Rules(1.0, 10)
    one = claim_task(second, "fetch", "me.1", rules)
    assert one is not None
    assert (one.task_id, one.start_at, row_of(second)["state"]) == (second, clock.ms, "leased")
    assert claim_task(second, "fetch", "you.1", rules) is None
    two = claim_task(first, "fetch", "me.1", rules)
    assert two is not None
    assert two.start_at == clock.ms + 1000
    assert claim_task("nobody", "fetch", "me.1", rules) is None


def test_who_waits_for_one_task_does_not_call_a_cooling_host_either(folder: DataFolder, clock: Clock) -> None:
    (task_id,) = add()
    in_transaction(record_host_failure, "a.example", clock.ms, "http_429", 60.0)
    row = claim_task(task_id, "fetch", "me.1", FREE)
    assert row is None or row.start_at >= clock.ms + 60_000


# Counting what could be claimed


@pytest.mark.parametrize("rules", [FREE, Rules(0.1, 10), Rules(0.0, 2), Rules(5.0, 5)])
def test_what_is_counted_as_claimable_is_what_a_claim_gets(folder: DataFolder, rules: Rules) -> None:
    add(3, "a.example")
    add(4, "b.example", priority=1)
    add(1, "c.example", queue="urgent")
    for most in (100, 5):
        assert claimable("fetch", rules, most) == min(most, claimable("fetch", rules, 100))
    assert claimable("fetch", rules, 100) == len(take(100, rules=rules))


# Races


def test_processes_that_claim_at_once_never_get_the_same_row(player: Callable[..., Player]) -> None:
    ids = {row_of(task_id)["id"] for host in ("a.example", "b.example") for task_id in add(150, host)}
    claimers = [player("claim_all", 7, 0.0, 1000) for _ in range(4)]
    for claimer in claimers:
        assert claimer.hear() == "ready"
    for n, claimer in enumerate(claimers):
        claimer.tell(f"holder{n}.1")
    taken = [[row_id for row_id, _ in claimer.hear()] for claimer in claimers]

    together = [row_id for batch in taken for row_id in batch]
    assert len(together) == len(set(together)) == len(ids)
    assert set(together) == ids
    for n, batch in enumerate(taken):
        assert {row_id for row_id in batch if _holder_of(row_id) != f"holder{n}.1"} == set()
    the_books_are_right()


def _holder_of(row_id: int) -> str:
    return str(one_row("SELECT lease_token FROM outbox WHERE id = ?", (row_id,))[0])


def test_processes_that_claim_at_once_keep_a_hosts_limits_together(player: Callable[..., Player]) -> None:
    add(100, "few.example")
    add(100, "slow.example")
    change("UPDATE hosts SET concurrency = 3 WHERE host = 'few.example'")
    change("UPDATE hosts SET delay = 0.05 WHERE host = 'slow.example'")
    claimers = [player("claim_all", 5, 0.0, 20) for _ in range(4)]
    for claimer in claimers:
        assert claimer.hear() == "ready"
    for n, claimer in enumerate(claimers):
        claimer.tell(f"holder{n}.1")
    starts = dict(row for claimer in claimers for row in claimer.hear())

    hosts = {row_id: _host_of(row_id) for row_id in starts}
    slow = sorted(starts[row_id] for row_id, host in hosts.items() if host == "slow.example")
    assert Counter(hosts.values())["few.example"] == 3
    assert len(slow) <= 20
    assert all(later - earlier >= 50 for earlier, later in pairwise(slow))


def _host_of(row_id: int) -> str:
    return str(one_row("SELECT host FROM outbox WHERE id = ?", (row_id,))[0])
