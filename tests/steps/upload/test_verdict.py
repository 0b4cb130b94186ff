"""Who is to blame: every line of every table of the upload policy, and that nothing falls between the lines."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from lienworker.hubs.gateway.outcomes import (
    Accepted,
    DeliveryResult,
    FailedAlone,
    Kind,
    Outcome,
    Refused,
    RefusedAlone,
    Stored,
    Unavailable,
    Undecided,
)
from lienworker.outbox.breaker import LEAST_BLAME, REMEMBERED, Known, Way, asked_ms
from lienworker.steps.in_flight import AfterCall
from lienworker.steps.upload import verdict as policy
from lienworker.steps.upload.verdict import (
    BATCHES,
    BREAKERS,
    KINDS,
    MANY_LIMITED,
    ROWS,
    WAITS,
    AfterCalls,
    Answer,
    BreakerAction,
    Group,
    History,
    Record,
    RowAction,
    RowVerdict,
    Said,
    Verdict,
    Wait,
    batch_line,
    breaker_line,
    decide,
    remember,
)

OK: Accepted[Any] = Accepted(None)
REFUSED = Refused(400, "no", "too_large")
NEW = Record()
#: It failed when three had gone through.
FAILED_BEFORE = Record(seen_successes=3)
SAME_AGAIN = Record(seen_successes=3, blame=1, is_same_again=True)
#: The last calls were answered: one failure is none of an outage.
HEALTHY = Known(last_calls="aaaaa", successes=3)
#: A way that loses three calls in ten: chance is an excuse for a while.
LOSSY = Way(tries=100.0, failures=30.0)


def failed(kind: Kind, retry_after: float | None = None) -> Unavailable:
    return Unavailable(kind, f"words of {kind}", retry_after)


def undecided(kind: Kind, words: str = "") -> Undecided:
    return Undecided(failed(kind), alone=bool(words), words=words)


def calls(*answers: Answer) -> Group:
    """Raw files or reports: a call for each row."""
    outcomes: list[Outcome[Any]] = [answer.outcome for answer in answers]  # type: ignore[misc]
    return Group(calls=outcomes, answers=answers)


def batch(*answers: Answer, call: Outcome[Any] = OK) -> Group:
    return Group(calls=[call], answers=answers, is_batch=True)


def only_row(verdict: Verdict) -> RowVerdict:
    (row,) = verdict.rows
    return row


# Rows

#: For each line of the table, in its order: what was said, what is known of the endpoint, what happens to the row.
ROW_CASES = [
    (calls(Answer(OK)), HEALTHY, RowVerdict(RowAction.DELIVER)),
    (calls(Answer(REFUSED)), HEALTHY, RowVerdict(RowAction.PARK, "too_large", "no")),
    (
        batch(Answer(FailedAlone("ERROR: value too long"))),
        HEALTHY,
        RowVerdict(RowAction.COUNT, "gateway_failed", "ERROR: value too long", Wait.MOMENT),
    ),
    (
        batch(Answer(FailedAlone("HTTP 500", by_crash=True))),
        HEALTHY,
        RowVerdict(RowAction.COUNT, "gateway_failed", "HTTP 500", Wait.MOMENT),
    ),
    (
        batch(Answer(undecided(Kind.SERVER_ERROR), SAME_AGAIN), call=failed(Kind.SERVER_ERROR)),
        HEALTHY,
        RowVerdict(RowAction.COUNT, "gateway_failed", "words of server_error", Wait.MOMENT),
    ),
    (
        batch(Answer(undecided(Kind.UNEXPECTED, "its own words"), SAME_AGAIN), call=failed(Kind.UNEXPECTED)),
        HEALTHY,
        RowVerdict(RowAction.COUNT, "gateway_failed", "its own words", Wait.MOMENT),
    ),
    (
        calls(Answer(failed(Kind.TIMEOUT), NEW)),
        HEALTHY,
        RowVerdict(RowAction.WAIT, "timeout", "words of timeout", Wait.RETRY),
    ),
    (
        calls(Answer(failed(Kind.RESET), FAILED_BEFORE)),
        Known(last_calls="aaaaa", successes=4),
        RowVerdict(RowAction.COUNT, "reset", "words of reset", Wait.RETRY),
    ),
    (
        calls(Answer(failed(Kind.RESET), FAILED_BEFORE)),
        HEALTHY,
        RowVerdict(RowAction.WAIT, "reset", "words of reset", Wait.RETRY),
    ),
    (
        batch(Answer(undecided(Kind.GARBAGE), FAILED_BEFORE), Answer(Stored()), call=failed(Kind.GARBAGE)),
        Known(last_calls="aaaaa", successes=4),
        RowVerdict(RowAction.WAIT, "garbage", "words of garbage", Wait.RETRY),
    ),
    (
        calls(Answer(failed(Kind.DOWN), FAILED_BEFORE)),
        Known(last_calls="aaaaa", successes=4),
        RowVerdict(RowAction.WAIT, "down", "words of down", Wait.RETRY),
    ),
]


@pytest.mark.parametrize(
    ("line", "case"), list(zip(ROWS, ROW_CASES, strict=True)), ids=[line.fact[:40] for line in ROWS]
)
def test_each_line_of_the_table_of_rows(line: policy.RowLine, case: tuple[Group, Known, RowVerdict]) -> None:
    group, known, expected = case
    successes = known.successes + sum(isinstance(answer.outcome, Accepted | Stored) for answer in group.answers)
    assert policy._row_line(group.answers[0], group, successes) is line
    assert line.action is expected.action
    assert decide(group, known).rows[0] == expected


EVERY_OUTCOME: list[Outcome[Any]] = [OK, REFUSED, *(failed(kind) for kind in Kind)]
EVERY_FATE: list[DeliveryResult] = [
    Stored(),
    RefusedAlone("no", 422),
    FailedAlone("words"),
    FailedAlone("words", by_crash=True),
    *(undecided(kind) for kind in Kind),
]


@pytest.mark.parametrize("known", [Known(), HEALTHY, Known(last_calls="r" * REMEMBERED), Known(last_calls="fffff")])
@pytest.mark.parametrize("record", [NEW, FAILED_BEFORE, Record(seen_successes=2), SAME_AGAIN])
def test_nothing_falls_between_the_lines(record: Record, known: Known) -> None:
    for outcome, other in itertools.product(EVERY_OUTCOME, repeat=2):
        assert len(decide(calls(Answer(outcome, record), Answer(other)), known).rows) == 2
    for outcome, beside in itertools.product(EVERY_FATE, [None, *EVERY_FATE]):
        answers = [Answer(outcome, record), *([Answer(beside)] if beside else [])]
        assert len(decide(batch(*answers), known).rows) == len(answers)


@pytest.mark.parametrize("kind", Kind)
def test_in_a_batch_nobody_can_tell_who_it_was(kind: Kind) -> None:
    both = [Answer(undecided(kind), Record(seen_successes=0, blame=50)), Answer(undecided(kind))]
    assert {row.action for row in decide(batch(*both, call=failed(kind)), HEALTHY).rows} == {RowAction.WAIT}


@pytest.mark.parametrize(("blame", "action"), [(LEAST_BLAME - 2, RowAction.COUNT), (LEAST_BLAME - 1, RowAction.PARK)])
@pytest.mark.parametrize(
    "outcome", [FailedAlone("words"), FailedAlone("words", by_crash=True), undecided(Kind.TIMEOUT)], ids=repr
)
def test_a_row_that_fails_while_others_go_through_is_parked_at_its_third_count(
    outcome: DeliveryResult, blame: int, action: RowAction
) -> None:
    group = batch(Answer(outcome, Record(seen_successes=3, blame=blame)))
    assert only_row(decide(group, Known(last_calls="aaaaa", successes=9))).action is action


def test_on_a_lossy_way_chance_is_an_excuse_for_a_broken_call_but_not_for_a_database_error() -> None:
    counted = Record(seen_successes=3, blame=LEAST_BLAME - 1)
    known = Known(last_calls="aaaaa", successes=9, way=LOSSY)
    assert only_row(decide(calls(Answer(failed(Kind.RESET), counted)), known)).action is RowAction.COUNT
    assert only_row(decide(batch(Answer(FailedAlone("x", by_crash=True), counted)), known)).action is RowAction.COUNT
    assert only_row(decide(batch(Answer(FailedAlone("x"), counted)), known)).action is RowAction.PARK
    enough = Record(seen_successes=3, blame=LOSSY.most_blame - 1)
    assert only_row(decide(calls(Answer(failed(Kind.RESET), enough)), known)).action is RowAction.PARK


def test_successes_of_the_same_group_count_as_others_that_went_through() -> None:
    group = calls(Answer(OK), Answer(failed(Kind.RESET), FAILED_BEFORE))
    assert [row.action for row in decide(group, HEALTHY).rows] == [RowAction.DELIVER, RowAction.COUNT]


# Waits


@pytest.mark.parametrize(
    ("line", "kind", "before", "expected"),
    [
        (WAITS[0], Kind.RATE_LIMITED, "aaaaa", Wait.ASKED),
        (WAITS[0], Kind.RATE_LIMITED, "rrr", Wait.ASKED),
        (WAITS[1], Kind.DOWN, "affff", Wait.PROBE),
        (WAITS[1], Kind.AUTH, "aaaaa", Wait.PROBE),
        (WAITS[2], Kind.SERVER_ERROR, "aaaaa", Wait.RETRY),
    ],
)
def test_each_line_of_the_table_of_waits(line: policy.WaitLine, kind: Kind, before: str, expected: Wait) -> None:
    row = only_row(decide(calls(Answer(failed(kind, 7.0))), Known(last_calls=before)))
    assert (row.wait, row.retry_after) == (expected, 7.0)
    assert line.wait is expected


# Kinds


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_failure_has_a_line(kind: Kind) -> None:
    group = Group(calls=[failed(kind)])
    known = decide(group, HEALTHY).breaker.known
    assert known is not None
    assert known.last_calls == "aaaaa" + KINDS[kind].mark
    assert AfterCalls()(failed(kind)) is KINDS[kind].after


@pytest.mark.parametrize("kind", Kind)
def test_what_one_row_can_cause_is_never_sure_to_be_the_destination(kind: Kind) -> None:
    assert not (failed(kind).perhaps_the_row and KINDS[kind].mark == policy.SURE)


def test_an_answer_lets_the_next_call_start() -> None:
    after_call = AfterCalls()
    assert after_call(OK) is after_call(REFUSED) is AfterCall.CONTINUE


def test_a_lone_429_halts_nobody_and_one_of_many_halts_all() -> None:
    after_call = AfterCalls()
    for _ in range(MANY_LIMITED - 1):
        assert after_call(failed(Kind.RATE_LIMITED)) is AfterCall.REST
        assert after_call(OK) is AfterCall.CONTINUE
    assert after_call(failed(Kind.RATE_LIMITED)) is AfterCall.HALT


# Breakers


@pytest.mark.parametrize(
    ("before", "marks", "line"),
    [
        ("aaaaa", "x", 0),  # 401: no luck and no row can cause it
        ("aaaaa", "aaax", 0),
        ("affff", "f", 1),  # a run of five
        ("", "f", 1),  # nothing speaks for the destination
        ("ffff", "fr", 1),  # down, whatever else was asked for
        ("", "rr", 2),  # nothing else came
        ("r", "r", 2),
        ("aaarrrr", "r", 2),  # none of the last five was answered
        ("arrarrar", "r", 3),  # five of the twenty before it
        ("r" + 14 * "a" + "rarrr", "r", 3),  # the first of them is the twentieth before it
        ("a", "rararararar" + 30 * "a", 3),  # many ended together: the worst moment counts
        ("aaaaa", "f", 4),  # a lone 5xx, reset or time-out
        ("afff", "f", 4),
        ("fffff", "fa", 4),  # one of those under way together was answered
        ("aaaaa", "r", 5),  # a lone 429
        ("", "r", 5),  # nothing else is known
        ("aaarrr", "r", 5),
        ("arrarar", "r", 5),  # four of the twenty before it
        ("rrrrr" + 20 * "a", "r", 5),  # all are older than that
        ("r" + 15 * "a" + "rarrr", "r", 5),
        ("aaaaa", "aa", 6),
        ("rrr", "a", 6),
        ("fffff", "", 6),  # nothing was sent
    ],
)
def test_each_line_of_the_table_of_breakers(before: str, marks: str, line: int) -> None:
    assert breaker_line(before, marks) is BREAKERS[line]


def calls_until_a_pause(dice: random.Random, share: float, most: int) -> int | None:
    before = ""
    for call in range(most):
        mark = policy.LIMITED if dice.random() < share else policy.ANSWERED
        if breaker_line(before, mark).action is BreakerAction.PAUSE:
            return call
        before = remember(before, mark)
    return None


def test_three_calls_in_a_hundred_are_chance_and_forty_are_a_limit() -> None:
    """2,000 results are some 2,100 calls; a pause among them would cost each of them what was asked."""
    drains = [calls_until_a_pause(random.Random(seed), 0.03, most=2100) for seed in range(25)]
    assert drains == [None] * 25
    limits = [calls_until_a_pause(random.Random(seed), 0.4, most=60) for seed in range(25)]
    assert None not in limits


def test_no_more_is_remembered_than_is_needed() -> None:
    assert remember("r" + 30 * "a", "f") == 20 * "a" + "f"
    assert len(remember("", 100 * "a")) == REMEMBERED


def test_a_200_by_which_everything_failed_opens_the_breaker_at_once() -> None:
    """The Gateway's database is down: each call was answered, and yet nothing was stored."""
    group = batch(Answer(undecided(Kind.FAILED)), Answer(undecided(Kind.FAILED)))
    breaker = decide(group, HEALTHY).breaker
    assert (breaker.action, breaker.is_answered) == (BreakerAction.OPEN, False)
    beside_a_stored_one = batch(Answer(undecided(Kind.FAILED)), Answer(Stored()))
    assert decide(beside_a_stored_one, HEALTHY).breaker.action is BreakerAction.NOTHING
    lone_file = calls(Answer(failed(Kind.FAILED)))  # a 200 with `status: error` for one raw file
    assert decide(lone_file, HEALTHY).breaker.action is BreakerAction.PROBE_AGAIN


@pytest.mark.parametrize("answer", [OK, REFUSED])
def test_an_answer_closes_the_breaker_and_what_it_was_opened_for_is_forgotten(answer: Outcome[Any]) -> None:
    breaker = decide(calls(Answer(answer)), Known(last_calls="rrr", closes_on_answer=True)).breaker
    assert breaker.is_answered
    assert breaker.known is not None
    assert breaker.known.last_calls == "a"


def test_an_answer_that_was_under_way_when_a_pause_was_asked_for_ends_no_pause() -> None:
    breaker = decide(calls(Answer(OK)), Known(last_calls="rrr")).breaker
    assert breaker.known is not None
    assert breaker.known.last_calls == "rrra"


def test_a_row_that_is_at_it_again_is_no_news_of_the_endpoint() -> None:
    group = batch(Answer(undecided(Kind.SERVER_ERROR), SAME_AGAIN), call=failed(Kind.SERVER_ERROR))
    breaker = decide(group, Known(last_calls="ffff")).breaker
    assert (breaker.action, breaker.known, breaker.because) == (BreakerAction.PROBE_AGAIN, None, ())


def test_the_words_that_stay_are_those_of_the_sure_failure() -> None:
    group = calls(Answer(failed(Kind.AUTH)), Answer(failed(Kind.RESET)))
    assert [one.kind for one in decide(group, HEALTHY).breaker.because] == [Kind.RESET, Kind.AUTH]


def test_a_poll_has_a_call_and_no_row() -> None:
    verdict = decide(Group(calls=[failed(Kind.DOWN)]), Known(last_calls="affff"))
    assert (verdict.rows, verdict.breaker.action) == ((), BreakerAction.OPEN)
    assert not decide(Group(calls=[OK]), Known(closes_on_answer=True)).breaker.is_answered


# Batches


@pytest.mark.parametrize(
    ("line", "group"),
    [
        (0, calls(Answer(OK), Answer(REFUSED))),
        (1, calls(Answer(OK), Answer(failed(Kind.RATE_LIMITED)))),
        (2, batch(Answer(Stored()), Answer(undecided(Kind.RATE_LIMITED)))),
        (3, batch(Answer(RefusedAlone("no", 400)))),
        (4, batch(Answer(Stored()), Answer(undecided(Kind.TIMEOUT)))),
        (5, batch(Answer(RefusedAlone("no", 400)), Answer(undecided(Kind.TIMEOUT)))),
    ],
)
def test_each_line_of_the_table_of_batches(line: int, group: Group) -> None:
    assert batch_line(group) is BATCHES[line]
    assert decide(group, HEALTHY).batch is BATCHES[line].action


# How lossy the way is


def way_after(group: Group, way: Way = LOSSY) -> Way:
    known = decide(group, Known(last_calls="aaaaa", successes=9, way=way)).breaker.known
    assert known is not None
    return known.way


def test_only_first_failures_that_a_row_could_cause_tell_how_lossy_the_way_is() -> None:
    lost = LOSSY.after_first_failure()
    assert way_after(calls(Answer(failed(Kind.TIMEOUT)))) == lost
    assert way_after(calls(Answer(failed(Kind.TIMEOUT), FAILED_BEFORE))) == LOSSY
    assert way_after(calls(Answer(failed(Kind.DOWN)))) == LOSSY
    assert way_after(calls(Answer(failed(Kind.TIMEOUT)), Answer(failed(Kind.RESET)))) == lost.after_first_failure()


def test_a_batch_that_failed_is_one_failure_however_many_rows_were_in_it() -> None:
    three = [Answer(undecided(Kind.TIMEOUT))] * 3
    assert way_after(batch(*three, call=failed(Kind.TIMEOUT))) == LOSSY.after_first_failure()


def test_answers_make_the_way_better_known() -> None:
    assert way_after(calls(Answer(OK), Answer(OK))) == LOSSY.after_answers(2)
    assert way_after(batch(*[Answer(Stored())] * 50)) == LOSSY.after_answers(1)
    assert way_after(calls(Answer(REFUSED))) == LOSSY


def test_histories_and_words_are_all_in_the_table() -> None:
    assert {line.said for line in ROWS} == set(Said)
    assert {line.history for line in ROWS} - {None} == set(History)


@pytest.mark.parametrize(
    ("asked", "ms"), [(2.0, 2000), (90.5, 90_500), (None, 5000), (0.0, 1000), (1e9, 24 * 3600 * 1000)]
)
def test_a_429_makes_wait_for_what_it_asked_and_not_for_times_of_our_own(asked: float | None, ms: int) -> None:
    assert asked_ms(asked, first_delay=30.0) == ms
