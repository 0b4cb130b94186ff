"""A doubtful batch is taken apart until the outcome of each item is known."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lienworker.hubs.gateway.bisect import deliver
from lienworker.hubs.gateway.outcomes import (
    Accepted,
    DeliveryResult,
    FailedAlone,
    Kind,
    Outcome,
    RefusedAlone,
    Stored,
    Undecided,
)
from lienworker.hubs.gateway.wire import ResultsReply
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.gateway_calls import client_of, item, items, run
from tests.hubs.gateway.simulated import DOWN, SimulatedGateway, delivered


@st.composite
def batches(draw: st.DrawFn, most_bad: float = 1.0) -> tuple[int, set[int]]:
    """A size and which of the batch are bad: scattered, in a row, at the front, at the end."""
    n = draw(st.integers(1, 100))
    most = max(int(n * most_bad), 0)
    scattered = st.sets(st.integers(0, n - 1), max_size=most)
    rows = st.tuples(st.integers(0, n - 1), st.integers(0, most)).map(lambda r: set(range(r[0], min(sum(r), n))))
    return n, draw(scattered | rows)


def named(outcomes: list[DeliveryResult], kind: type[DeliveryResult]) -> set[int]:
    return {number for number, outcome in enumerate(outcomes) if isinstance(outcome, kind)}


@settings(deadline=None, max_examples=400)
@given(batches(most_bad=0.5), st.sampled_from([11, 10**9]))
def test_every_good_item_is_stored_and_every_bad_one_named_in_two_calls_a_bad_item(
    batch: tuple[int, set[int]], stop: int
) -> None:
    n, bad = batch
    gateway = SimulatedGateway(bad, stop=stop)
    outcomes = delivered(n, gateway)
    if len(bad) < n:
        assert named(outcomes, Stored) == set(range(n)) - bad
        assert named(outcomes, FailedAlone) == bad
        assert len(gateway.calls) <= 2 + 2 * len(bad) + math.ceil(n / 11)


@settings(deadline=None, max_examples=400)
@given(batches(), st.sampled_from([11, 10**9]), st.booleans())
def test_with_any_share_of_bad_items_all_good_ones_are_stored(
    batch: tuple[int, set[int]], stop: int, names: bool
) -> None:
    n, bad = batch
    gateway = SimulatedGateway(bad, stop=stop, names=names)
    outcomes = delivered(n, gateway)
    assert named(outcomes, Stored) == set(range(n)) - bad
    assert named(outcomes, FailedAlone) | named(outcomes, Undecided) == bad


@settings(deadline=None, max_examples=400)
@given(batches(most_bad=0.1), st.sampled_from([11, 10**9]))
def test_without_names_it_takes_about_log_n_calls_a_bad_item(batch: tuple[int, set[int]], stop: int) -> None:
    n, bad = batch
    gateway = SimulatedGateway(bad, stop=stop, names=False)
    outcomes = delivered(n, gateway)
    if len(bad) < n:
        assert named(outcomes, FailedAlone) == bad
        assert len(gateway.calls) <= 2 + len(bad) * (math.ceil(math.log2(n)) + 3)


@settings(deadline=None, max_examples=400)
@given(batches())
def test_items_that_get_the_whole_batch_refused_are_found_in_log_n_calls(batch: tuple[int, set[int]]) -> None:
    n, bad = batch
    gateway = SimulatedGateway(refused=bad)
    outcomes = delivered(n, gateway)
    assert named(outcomes, Stored) == set(range(n)) - bad
    assert named(outcomes, RefusedAlone) == bad
    assert len(gateway.calls) <= 3 + len(bad) * (math.ceil(math.log2(n)) + 3)


@settings(deadline=None, max_examples=300)
@given(batches(most_bad=0.1), st.data())
def test_both_kinds_of_bad_items_at_once(batch: tuple[int, set[int]], data: st.DataObject) -> None:
    n, bad = batch
    refused = data.draw(st.sets(st.sampled_from(sorted(bad)))) if bad else set()
    outcomes = delivered(n, SimulatedGateway(bad - refused, refused))
    assert named(outcomes, RefusedAlone) == refused
    assert named(outcomes, Stored) == set(range(n)) - bad


@settings(deadline=None, max_examples=300)
@given(batches(most_bad=0.3), st.integers())
@example((27, {0, 1, 2, 3, 4, 25, 26}), 4)  # two that are named and two that are not, all bad, and in a row
@example((75, set(range(21))), 0)  # good ones are left among those that were named only
def test_names_are_a_hint_and_never_a_proof(batch: tuple[int, set[int]], seed: int) -> None:
    """The errors name anybody at all; still no item is believed stored that is not, and no good one is left out."""
    n, bad = batch
    gateway = SimulatedGateway(bad, names=random.Random(seed).choice)
    outcomes = delivered(n, gateway)
    assert named(outcomes, Stored) <= {int(one[2:]) for one in gateway.stored}
    assert not named(outcomes, FailedAlone) - bad
    assert named(outcomes, Stored) == set(range(n)) - bad


@settings(deadline=None, max_examples=300)
@given(batches(most_bad=0.3), st.integers(1, 30))
def test_a_destination_that_fails_in_the_middle_leaves_the_rest_undecided(
    batch: tuple[int, set[int]], call: int
) -> None:
    n, bad = batch
    gateway = SimulatedGateway(bad, unavailable_from=call)
    outcomes = delivered(n, gateway)
    assert len(gateway.calls) <= call
    assert named(outcomes, Stored) == {int(one[2:]) for one in gateway.proven}
    for number in named(outcomes, Undecided):
        outcome = outcomes[number]
        assert isinstance(outcome, Undecided)
        assert outcome.cause is DOWN or (outcome.alone and outcome.cause.kind is Kind.FAILED)


@settings(deadline=None, max_examples=300)
@given(batches(most_bad=0.3), st.integers(1, 12), st.sampled_from([11, 10**9]))
@example((4, {0, 1}), 2, 11)  # few witnesses
@example((100, set(range(22))), 4, 11)  # no witness
def test_a_database_that_dies_in_the_middle_is_blamed_and_not_the_items(
    batch: tuple[int, set[int]], call: int, stop: int
) -> None:
    n, bad = batch
    gateway = SimulatedGateway(bad, dead_from=call, stop=stop)
    outcomes = delivered(n, gateway)
    # Where no witness is left, those that had failed in company are each sent alone once more.
    assert len(gateway.calls) <= call + max(14, len(bad))
    assert named(outcomes, Stored) == {int(one[2:]) for one in gateway.proven}
    # At most the one item that was on its way alone when the database died is blamed wrongly, once.
    assert len(named(outcomes, FailedAlone) - bad) <= 1


@pytest.mark.parametrize(("stop", "calls"), [(10**9, 3), (11, 11)])
def test_a_dead_database_is_recognised_in_few_calls(stop: int, calls: int) -> None:
    gateway = SimulatedGateway(dead_from=1, stop=stop)
    outcomes = delivered(100, gateway)
    assert named(outcomes, Undecided) == set(range(100))
    assert {outcome.cause.kind for outcome in outcomes if isinstance(outcome, Undecided)} == {Kind.FAILED}
    assert len(gateway.calls) == calls


def test_a_dead_database_after_some_success_is_recognised_by_witnesses() -> None:
    gateway = SimulatedGateway([3, 50], dead_from=2)
    outcomes = delivered(100, gateway)
    assert named(outcomes, Undecided) == set(range(100))
    assert len(gateway.calls) == 5


def test_a_single_item_that_fails_is_undecided_but_known_to_have_failed_alone() -> None:
    (outcome,) = delivered(1, SimulatedGateway([0]))
    assert isinstance(outcome, Undecided)
    assert outcome.alone
    assert outcome.cause.kind is Kind.FAILED
    assert "P-0: ERROR" in outcome.cause.words


def test_a_single_item_that_is_refused_is_to_blame() -> None:
    assert delivered(1, SimulatedGateway(refused=[0])) == [RefusedAlone("HTTP 400: invalid JSON", 400)]


def test_nothing_to_deliver_is_no_call() -> None:
    gateway = SimulatedGateway()
    assert delivered(0, gateway) == []
    assert gateway.calls == []


def test_a_clean_batch_is_one_call() -> None:
    gateway = SimulatedGateway()
    assert named(delivered(100, gateway), Stored) == set(range(100))
    assert len(gateway.calls) == 1


def test_the_words_of_a_failure_are_the_gateways() -> None:
    assert delivered(5, SimulatedGateway([2]))[2] == FailedAlone("P-2: ERROR")


def test_a_database_that_comes_back_in_the_middle_blames_nobody() -> None:
    class Recovering(SimulatedGateway):
        async def __call__(self, sent: list[Any]) -> Outcome[ResultsReply]:
            self.dead_from = 1 if len(self.calls) < 2 else None
            return await super().__call__(sent)

    gateway = Recovering()
    assert named(delivered(100, gateway), Stored) == set(range(100))
    assert len(gateway.calls) <= 8


def test_two_parcels_of_the_same_id_in_two_counties_are_told_apart() -> None:
    sent = [item("P-1"), item("P-1", county="Other"), item("P-2")]

    async def submit(batch: list[Any]) -> Outcome[ResultsReply]:
        bad = sum(one["county"] == "Other" for one in batch)
        return Accepted(ResultsReply(len(batch), len(batch) - bad, 0, bad, ("P-1: ERROR",) * bad))

    outcomes = run(deliver(sent, submit))
    assert [type(outcome) for outcome in outcomes] == [Stored, FailedAlone, Stored]


# The same on the reference Gateway, through the client, with the calls counted where they arrive.


def _deliver_all(gateway: ReferenceGateway, all_items: list[dict[str, Any]], size: int = 100) -> list[DeliveryResult]:
    async def body() -> list[DeliveryResult]:
        outcomes: list[DeliveryResult] = []
        async with client_of(gateway) as client:
            for start in range(0, len(all_items), size):
                outcomes += await deliver(all_items[start : start + size], client.submit_results)
        return outcomes

    return run(body())


@pytest.mark.parametrize("position", [0, 1, 99, 500, 555, 999])
def test_one_failing_item_among_1000_takes_12_calls(gateway: ReferenceGateway, position: int) -> None:
    gateway.fault("parcels", names=[f"P-{position}"], words="ERROR: boom")
    outcomes = _deliver_all(gateway, items(1000))
    assert outcomes[position] == FailedAlone(f"P-{position}: ERROR: boom")
    assert len(gateway.state.results) == len(named(outcomes, Stored)) == 999
    assert len(gateway.state.calls("results")) == 12


@pytest.mark.parametrize("position", [0, 1, 99, 500, 555, 999])
def test_one_refused_item_among_1000_takes_at_most_20_calls(gateway: ReferenceGateway, position: int) -> None:
    sent = items(1000)
    sent[position]["parse_duration_ms"] = 12.0
    outcomes = _deliver_all(gateway, sent)
    assert outcomes[position] == RefusedAlone("HTTP 400: invalid JSON", 400)
    assert len(gateway.state.results) == 999
    assert len(gateway.state.calls("results")) <= 20


def test_forty_failing_items_in_a_batch_are_all_named(gateway: ReferenceGateway) -> None:
    bad = random.Random(1).sample(range(100), 40)
    gateway.fault("parcels", names=[f"P-{n}" for n in bad])
    outcomes = _deliver_all(gateway, items(100))
    assert named(outcomes, FailedAlone) == set(bad)
    assert len(gateway.state.results) == 60


def test_a_dead_database_blames_no_item(gateway: ReferenceGateway) -> None:
    gateway.fault("database_down")
    assert named(_deliver_all(gateway, items(100)), Undecided) == set(range(100))
    gateway.clear_faults()
    assert named(_deliver_all(gateway, items(100)), Stored) == set(range(100))


def test_a_lost_reply_leaves_its_batch_undecided_and_a_resend_stores_it_once(gateway: ReferenceGateway) -> None:
    gateway.fault("lost_reply", count=1)
    outcomes = _deliver_all(gateway, items(200))
    assert named(outcomes, Undecided) == set(range(100))
    assert len(gateway.state.results) == 200
    assert named(_deliver_all(gateway, items(100)), Stored) == set(range(100))
    assert len(gateway.state.results) == 200
