"""When it will be done: on a made-up day with a clock of its own, and from a real database."""

from __future__ import annotations

from collections import Counter

import pytest

from lienworker.data_folder import DataFolder
from lienworker.maintenance.paces import Pace, look_at_paces, seen_again
from lienworker.operator import hosts as operator
from lienworker.outbox.pacing import Politeness, record_host_failure
from lienworker.outbox.pauses import set_pause
from lienworker.outbox.transitions import end
from lienworker.queries.forecast.facts import (
    Work,
    county_parts,
    facts_now,
    forecast_of_import,
    forecast_with,
    import_part,
)
from lienworker.queries.forecast.model import Facts, Hindrance, Lot, SiteFacts, forecast, forecast_of, urgent_part
from lienworker.queries.forecast.words import as_facts, before_start, for_progress, stuck_in_words
from lienworker.settings import Settings
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import add, change, in_transaction, take
from tests.queries.auction_day import ATTEMPTS, GIVE_UP_MS, RETRY_MS, Day, Site, a_day, load

SETTINGS = Settings(host_delay=1.0, host_give_up=600.0, retry_delay=5.0, fetch_attempts=4)
LOOK_MS = 10_000
#: Nearer to the end, a single retry of the last task decides.
LAST_MINUTES_MS = 120_000


def told(site: Site, pace: Pace | None) -> SiteFacts:
    """What a database would say of a made-up site."""
    ranks = sorted({rank for rank, _, _ in site.rows})
    dues = {rank: [due for other, due, _ in site.rows if other == rank] for rank in ranks}
    failures = Counter(site.failed_tries.get(number, 0) for _, _, number in site.rows)
    return SiteFacts(
        site.name,
        tuple(Lot(rank, len(dues[rank]), max(dues[rank])) for rank in ranks),
        in_hand=len(site.flying),
        tried=tuple(failures[k] for k in range(1, ATTEMPTS)),
        delay=site.delay / 1000,
        ms_per_try=pace.ms_per_try if pace else None,
        tries_per_task=pace.tries_per_task if pace else None,
        seen=pace.seen if pace else 0.0,
        free_at=max(site.next_turn, site.cooling_until),
        dead_since=site.failing_since if site.failures >= 3 else None,
    )


class Watched:
    """A day, and who looks at it as the chores of a worker do."""

    def __init__(self, seed: int) -> None:
        self.day: Day = a_day(seed)
        self._paces: dict[str, Pace] = {}

    def go_on(self) -> None:
        self.day.go_to(self.day.now + LOOK_MS)
        for site in self.day.sites.values():
            is_busy = any(due <= self.day.now for _, due, _ in site.rows)
            before = self._paces.get(site.name)
            self._paces[site.name] = seen_again(before, self.day.now, site.tries, site.ended, is_busy=is_busy)

    def ends_in(self) -> int:
        """The predicted remaining time, ms."""
        sites = tuple(told(site, self._paces.get(site.name)) for site in self.day.sites.values())
        facts = Facts(self.day.now, sites, give_up_ms=GIVE_UP_MS, retry_ms=RETRY_MS, attempts=ATTEMPTS)
        ends = forecast(facts).ends
        assert ends is not None
        assert ends.early <= ends.likely <= ends.late
        return ends.likely - self.day.now


def play(seed: int) -> tuple[float, list[float]]:
    """Predicted by true remaining time: before the start, and at each look from a tenth on."""
    watched = Watched(seed)
    day = watched.day
    for name in day.sites:  # the day before, by which the sites are known
        day.add(name, 40)
    while day.left:
        watched.go_on()
    began, ended_before = day.now, day.ended
    load(day)
    total, before = day.left, watched.ends_in()
    looks = []
    while day.left:
        watched.go_on()
        if day.left and day.ended - ended_before >= total / 10 and (day.now - began) % 30_000 == 0:
            looks.append((day.now, watched.ends_in()))
    end = max(site.last_end for site in day.sites.values())
    shares = [left / (end - now) for now, left in looks if end - now >= LAST_MINUTES_MS]
    return before / (end - began), shares


@pytest.mark.parametrize("seed", range(2, 10))
def test_the_forecast_of_an_auction_day_is_true(seed: int) -> None:
    before, shares = play(seed)
    assert 0.75 <= before <= 1.25
    assert len(shares) >= 40
    assert sum(0.85 <= share <= 1.15 for share in shares) >= 0.9 * len(shares), shares
    assert min(shares) >= 0.8, shares


# What a look at a site tells


def test_a_pace_is_seen_only_between_two_looks_with_work() -> None:
    first = seen_again(None, 0, 100, 90, is_busy=True)
    assert (first.ms_per_try, first.seen) == (None, 0)
    second = seen_again(first, 10_000, 105, 94, is_busy=True)
    assert (second.ms_per_try, second.tries_per_task, second.seen) == (2000, 1.25, 5)
    idle = seen_again(second, 20_000, 106, 95, is_busy=False)
    assert (idle.ms_per_try, idle.tries) == (2000, 106)
    assert seen_again(idle, 90_000, 107, 96, is_busy=True).ms_per_try == 2000
    unsure = seen_again(second, 900_000, 110, 99, is_busy=True, is_sure=False)
    assert (unsure.ms_per_try, unsure.at) == (2000, 900_000)


def test_the_time_of_a_slow_site_counts_until_its_next_try() -> None:
    first = seen_again(None, 0, 0, 0, is_busy=True)
    assert seen_again(first, 10_000, 0, 0, is_busy=True) == first
    assert seen_again(first, 30_000, 1, 1, is_busy=True).ms_per_try == 30_000


def test_paces_are_looked_at_in_the_database_and_not_after_a_stop(folder: DataFolder, clock: Clock) -> None:
    add(20)
    look_at_paces()
    for _ in range(2):
        for row in take(5):
            in_transaction(end, row)
        clock.go(LOOK_MS)
        look_at_paces()
    (site,) = facts_now(SETTINGS).sites
    assert (site.ms_per_try, site.tries_per_task, site.seen) == (2000, 1.0, 10)
    for row in take(5):
        in_transaction(end, row)
    clock.go(3_600_000)
    look_at_paces()
    assert facts_now(SETTINGS).sites[0].ms_per_try == 2000
    operator.set_host("a.example", 0.1)
    assert facts_now(SETTINGS).sites[0].ms_per_try is None


# From the database


def ends_in(found: object) -> float:
    ends = found.ends  # type: ignore[attr-defined]
    return round((ends.likely - found.now) / 1000) if ends else -1  # type: ignore[attr-defined]


def test_each_site_ends_by_its_own_delay_and_the_last_one_counts(folder: DataFolder, clock: Clock) -> None:
    add(100)
    add(10, "slow.example")
    operator.set_host("slow.example", 60.0)
    found = forecast(facts_now(SETTINGS))
    assert [site.facts.site for site in found.sites] == ["slow.example", "a.example"]
    assert 600 <= ends_in(found) <= 700
    assert "slow.example: 10 to go at 60 s (operator)" in as_facts(found)["longest"]


def test_requests_of_a_flow_count_before_it_was_seen(folder: DataFolder, clock: Clock) -> None:
    add(100)
    change("UPDATE hosts SET requests = 4")
    assert 400 <= ends_in(forecast(facts_now(SETTINGS))) <= 450


def test_urgent_work_ends_first_and_an_import_after_what_was_there(folder: DataFolder, clock: Clock) -> None:
    add(100, import_id=1, state="FL", county="Dixie")
    clock.go(60_000)
    add(50, name="later", import_id=2, state="FL", county="Levy")
    add(20, name="now", queue="urgent", import_id=3)
    facts = facts_now(SETTINGS)
    assert 20 <= ends_in(forecast_of(facts, urgent_part(facts))) <= 35
    assert import_part(facts, 1) == {"a.example": Lot(13, 120, clock.ms - 60_000, own=100)}
    first, second = (ends_in(forecast_of_import(SETTINGS, number)) for number in (1, 2))
    assert 120 <= first <= 140
    assert 170 <= second <= 200
    counties = county_parts(facts)
    assert counties["", "FL", "Dixie"]["a.example"].n == 100
    assert counties["", "FL", "Levy"]["a.example"].n >= 150


def test_what_does_not_move_is_told_apart(folder: DataFolder, clock: Clock) -> None:
    add(3)
    add(22, "dead.example")
    add(5, "paused.example")
    add(4, "d.example", state="FL", county="Dixie")
    for _ in range(3):
        in_transaction(record_host_failure, "dead.example", clock.ms, "timeout", None)
        change("UPDATE hosts SET cooling_until = 0")
    operator.pause_host("paused.example")
    operator.pause_county(operator.County("FL", "Dixie"))
    found = forecast(facts_now(SETTINGS))
    assert {site.facts.site: site.hindrance for site in found.hindered} == {
        "dead.example": Hindrance.DEAD, "paused.example": Hindrance.PAUSED,
    }  # fmt: skip
    assert ends_in(found) == 600
    assert found.moving == 3
    words = "; ".join(stuck_in_words(found))
    assert "22 tasks wait for dead.example, which has not answered since" in words
    assert "5 tasks wait for paused.example, which is paused" in words
    assert "4 tasks are held (their county is paused)" in words
    assert "dead.example silent since" in for_progress(found)


def test_nothing_ends_while_fetching_is_paused(folder: DataFolder) -> None:
    add(3)
    set_pause("fetch", "operator", True, "an operator paused it")
    found = forecast(facts_now(SETTINGS))
    assert (found.ends, as_facts(found)["words"]) == (None, None)
    assert list(stuck_in_words(found)) == ["fetch is paused (an operator paused it); nothing ends until it is resumed"]


def test_a_retry_that_is_not_due_yet_is_waited_for(folder: DataFolder, clock: Clock) -> None:
    add(1)
    change("UPDATE outbox SET due_at = due_at + 80000, attempts = 2")
    facts = facts_now(SETTINGS)
    assert facts.sites[0].tried == (0, 1)
    assert ends_in(forecast(facts)) >= 81


def test_work_is_forecast_before_it_is_imported(folder: DataFolder, clock: Clock) -> None:
    add(60)
    work = [Work("a.example", 13, 40, Politeness()), Work("b.example", 13, 30, Politeness(delay=5.0))]
    found = forecast_with(SETTINGS, work, is_open=True)
    assert 150 <= ends_in(found) <= 170
    said = before_start(found, 70)
    assert said.startswith("70 parcels on 2 hosts: about 2 min")
    assert "the longest is b.example: 30 to go at 5 s (platform)" in said
    assert ends_in(forecast_with(SETTINGS, work, is_open=False)) >= 150
