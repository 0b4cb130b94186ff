"""What an operator says of sites and counties, as claims keep to it."""

from __future__ import annotations

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows
from lienworker.errors import InputError
from lienworker.maintenance.hosts import give_up_dead_hosts, heal_hosts
from lienworker.operator import hosts as operator
from lienworker.outbox.claims import Rules, claimable, next_due
from lienworker.outbox.pacing import Booking, Politeness, book, chosen_delay, record_host_failure, slow_down
from lienworker.outbox.registration import register_task
from lienworker.queries.hosts import host_named, hosts, pace_in_words, paused_by_hand, state_in_words
from lienworker.settings import Settings
from lienworker.store.tasks import NewTask
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import FREE, add, change, host_row, in_transaction, row_of, take, the_books_are_right

SETTINGS = Settings(host_delay=1.0, host_concurrency=4)
DIXIE = operator.County("FL", "Dixie")


@pytest.mark.parametrize(
    ("platform", "robots", "by_hand", "over_robots", "expected"),
    [
        (None, None, None, 0, (1.0, "setting")),
        (2.0, None, None, 0, (2.0, "platform")),
        (2.0, None, 0.5, 0, (0.5, "operator")),
        (2.0, 5.0, None, 0, (5.0, "robots.txt")),
        (2.0, 5.0, 0.5, 0, (5.0, "robots.txt")),
        (2.0, 5.0, 8.0, 0, (8.0, "operator")),
        (2.0, 5.0, 0.5, 1, (0.5, "operator")),
        (2.0, 5.0, None, 1, (5.0, "robots.txt")),
        (2.0, 0.5, 0.0, 0, (0.5, "robots.txt")),
    ],
)
def test_an_operator_counts_before_the_platform_and_before_robots_only_expressly(
    platform: float | None, robots: float | None, by_hand: float | None, over_robots: int, expected: tuple[float, str]
) -> None:
    assert chosen_delay(1.0, platform, robots, by_hand, over_robots) == expected


def test_claims_and_bookings_keep_to_what_an_operator_says(folder: DataFolder, clock: Clock) -> None:
    add(5)
    register_task(NewTask("cli", "http://a.example/x"), politeness=Politeness(delay=9.0, concurrency=4))
    operator.set_host("a.example", 0.1, 2)
    register_task(NewTask("cli", "http://a.example/y"), politeness=Politeness(delay=9.0, concurrency=4))

    assert [row.start_at - clock.ms for row in take(rules=Rules(1.0, 4))] == [0, 100]
    assert in_transaction(book, Booking("a.example"), 1.0, clock.ms).delay_ms == 100
    operator.unset_host("a.example")
    assert in_transaction(book, Booking("a.example"), 1.0, clock.ms).delay_ms == 9000


def test_robots_stays_the_least_until_it_is_overruled(folder: DataFolder, clock: Clock) -> None:
    add(2)
    in_transaction(slow_down, "a.example", 30.0)
    operator.set_host("a.example", 0.1)
    assert take(rules=Rules(1.0, 4))[0].delay_ms == 30_000
    operator.set_host("a.example", 0.1, over_robots=True)
    change("UPDATE hosts SET next_allowed_at = 0")
    assert take(rules=Rules(1.0, 4))[0].delay_ms == 100


def test_a_paused_site_is_not_asked_and_does_not_look_dead_or_due(folder: DataFolder, clock: Clock) -> None:
    add(2)
    add(1, "b.example")
    in_transaction(record_host_failure, "a.example", clock.ms, "timeout", None)
    change("UPDATE hosts SET failures_in_a_row = 9 WHERE host = 'a.example'")
    operator.pause_host("a.example")
    clock.go(3_600_000)

    assert [row.host for row in take()] == ["b.example"]
    assert (claimable("fetch", FREE, 10), next_due("fetch")) == (0, None)
    assert give_up_dead_hosts(60.0) == 0
    assert paused_by_hand() == ["a.example"]

    operator.resume_host("a.example")
    assert give_up_dead_hosts(60.0) == 0
    assert len(take()) == 2


def test_a_host_is_shown_with_whose_word_its_delay_is(folder: DataFolder, clock: Clock) -> None:
    add(3)
    in_transaction(slow_down, "a.example", 7.0)
    operator.set_host("a.example", 2.0, 1)
    operator.pause_host("a.example")

    (found,) = hosts(SETTINGS)
    assert (pace_in_words(found), found["concurrency"], found["concurrency_from"]) == (
        "7 s (robots.txt)",
        1,
        "operator",
    )
    assert found["said"] == {"operator": 2.0, "robots.txt": 7.0, "setting": 1.0}
    assert state_in_words(found).startswith("paused since ")
    assert found["ends"] is None, "it is paused"
    assert {**found, **(host_named("A.example.", SETTINGS) or {})} == found
    assert hosts(SETTINGS, busy=False) == [found]


def test_a_forgotten_host_keeps_what_waits_and_its_distance(folder: DataFolder, clock: Clock) -> None:
    add(2)
    operator.set_host("a.example", 5.0)
    take(1, rules=Rules(1.0, 4))
    operator.forget_host("a.example")
    assert host_row()["operator_delay"] is None
    assert host_row()["next_allowed_at"] == clock.ms + 5000

    operator.set_host("empty.example", 5.0)
    operator.forget_host("empty.example")
    assert host_named("empty.example", SETTINGS) is None


def test_a_paused_county_waits_and_others_of_its_site_do_not(folder: DataFolder, clock: Clock) -> None:
    add(2, name="d", state="FL", county="DIXIE")
    add(1, name="l", state="FL", county="Levy")
    assert operator.pause_county(DIXIE) == 2
    add(1, name="later", state="fl", county="Dixie")
    change("UPDATE outbox SET state = 'waiting', reason = NULL WHERE task_id = 'a.example/d0'")  # as if it came between

    assert [row.task_id for row in take()] == ["a.example/l0"]
    assert row_of("a.example/d0")["reason"] == "paused"
    assert paused_by_hand() == ["Dixie FL"]

    assert operator.resume_county(DIXIE) == 3
    assert len(take()) == 3
    the_books_are_right()


def test_a_resume_releases_what_a_kill_left_behind(folder: DataFolder) -> None:
    add(1, state="FL", county="Dixie")
    operator.pause_county(DIXIE)
    change("DELETE FROM paused_counties")
    assert operator.resume_county(DIXIE) == 1
    assert operator.resume_county(DIXIE) == 0


def test_everything_said_by_hand_is_in_the_audit(folder: DataFolder) -> None:
    operator.set_host("a.example", 2.0, 1)
    operator.pause_host("a.example")
    operator.resume_host("a.example")
    operator.unset_host("a.example")
    operator.forget_host("a.example")
    operator.pause_county(DIXIE)
    operator.resume_county(DIXIE)
    assert all_rows("SELECT action, what FROM audit ORDER BY id") == [
        ("set", "a.example: delay 2.0, concurrency 1"),
        ("pause", "a.example"),
        ("resume", "a.example"),
        ("set", "a.example: as its platform and the settings say"),
        ("forget", "a.example"),
        ("pause", "FL/Dixie"),
        ("resume", "FL/Dixie"),
    ]


def test_absurd_figures_are_refused_and_stored_ones_corrected(folder: DataFolder, clock: Clock) -> None:
    for delay, most_open in ((-1.0, None), (float("nan"), None), (4000.0, None), (None, 0), (None, 10_000)):
        with pytest.raises(InputError):
            operator.set_host("a.example", delay, most_open)
    operator.set_host("a.example", 1.0, 1)
    change("UPDATE hosts SET operator_delay = 'soon', operator_concurrency = -3")
    heal_hosts(clock.ms)
    assert (host_row()["operator_delay"], host_row()["operator_concurrency"]) == (None, None)


@pytest.mark.parametrize("words", ["https://A.Example/parcel/1?x=2", "a.example", " A.EXAMPLE. "])
def test_a_site_goes_by_its_name_or_by_an_address(words: str) -> None:
    assert operator.site_named(words) == "a.example"


@pytest.mark.parametrize("words", ["Dixie", "FL/", "/Dixie", ""])
def test_a_county_needs_its_state(words: str) -> None:
    with pytest.raises(InputError, match="FL/Dixie"):
        operator.county_named(words)
