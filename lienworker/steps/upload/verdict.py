"""Who is to blame when an upload fails: the row, the destination, or nobody yet. The whole policy, as tables.

`decide` is pure: what the Gateway said to calls that ended together goes in, with what was known before; what happens
to each row, to the size of the next batch and to the endpoint's breaker comes out. It does no I/O and reads no clock;
`apply` reads what is known, calls it, and writes what it says.

Three ideas are behind the lines below:

- One failure among successes is not an outage. Only its own rows wait, and none of them loses an attempt.
- The destination is blamed for what no row can cause, and for a run of failures. Then its breaker opens.
- A row is blamed for a refusal of its own, or after it failed alone several times while others went through.

Each table is read from top to bottom, and the first line that fits holds. `None` fits everything. The facts are those
that were observed on the Gateway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

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
from lienworker.outbox.breaker import LEAST_BLAME, REMEMBERED, Known
from lienworker.steps.in_flight import AfterCall

# What goes in


@dataclass(frozen=True, slots=True)
class Record:
    """What is held against a row: failures counted, and how many others had gone through when it last failed."""

    #: Successes of the endpoint at the row's last failure; None where it has never failed.
    seen_successes: int | None = None
    blame: int = 0
    #: It was blamed before, and what was said about it now is word for word what was said then.
    is_same_again: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one row: of the call with its file or report, or of its item in a batch of results."""

    outcome: Outcome[Any] | DeliveryResult
    record: Record = Record()


@dataclass(frozen=True, slots=True)
class Group:
    """Calls that ended together. They speak for each other: if one of them was answered, the others are no run.

    Raw files and reports are a call for each row. Results are one batch, with as many calls as it took to find out
    what became of each item; a poll for work has a call and no rows.
    """

    calls: Sequence[Outcome[Any]]
    answers: Sequence[Answer] = ()
    is_batch: bool = False


# What comes out


class RowAction(Enum):
    """What happens to a row."""

    DELIVER = "the Gateway has it"
    PARK = "it is set aside with its reason, and its neighbors go through"
    COUNT = "one count against it; it waits"
    WAIT = "it waits, and nothing is held against it"


class Wait(Enum):
    """How long a row waits."""

    MOMENT = "our own first delay, whatever the endpoint does"
    RETRY = "our own first delay, or what was asked for if that is longer; not before the endpoint's pause is over"
    ASKED = "exactly what was asked for; not before the endpoint's pause is over"
    PROBE = "until the endpoint's next probe, which another row makes"


class BreakerAction(Enum):
    """What happens to the endpoint's breaker. The rows of failed calls wait in any case."""

    NOTHING = "all calls were answered"
    PROBE_AGAIN = "if the call was a probe, it says little: another row makes the next one at once"
    PAUSE = "nothing goes out for as long as was asked for"
    OPEN = "the endpoint is down: probes at growing intervals, until one is answered"


class BatchAction(Enum):
    """What happens to the number of calls under way, or to the number of results in a call."""

    GROW = "more the next time"
    KEEP = "as many as before"
    SHRINK = "fewer the next time"


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """What happens to one row, and what is written beside it."""

    action: RowAction
    reason: str = ""
    words: str = ""
    wait: Wait = Wait.MOMENT
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class BreakerVerdict:
    """What happens to an endpoint. An answer closes its breaker if it was the probe, before anything else."""

    action: BreakerAction
    is_answered: bool
    #: What is known of the endpoint from now on; None where this group leaves no trace.
    known: Known | None
    #: The failures behind the action. The last one's words are shown: what is sure says more than a reset beside it.
    because: tuple[Unavailable, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to rows (one verdict for each answer), batch and breaker."""

    rows: tuple[RowVerdict, ...]
    batch: BatchAction
    breaker: BreakerVerdict


# The kinds of failed calls

#: What a call came to, one letter each: a row of them is stored for each endpoint.
ANSWERED, LIMITED, FAILED, SURE = "a", "r", "f", "x"


@dataclass(frozen=True, slots=True)
class KindLine:
    """How a failed call is remembered, and what it means at once for calls that have not left yet."""

    mark: str
    after: AfterCall
    fact: str


KINDS: dict[Kind, KindLine] = {
    Kind.AUTH: KindLine(SURE, AfterCall.HALT, "401 (or 403): the token is wrong, for every call."),
    Kind.MISSING: KindLine(SURE, AfterCall.HALT, "404 or 405 on a route that a Gateway has: a wrong address."),
    Kind.REDIRECTED: KindLine(SURE, AfterCall.HALT, "Never followed: the token would go along."),
    Kind.RATE_LIMITED: KindLine(LIMITED, AfterCall.REST, "A rate limited deployment answers 429 with Retry-After."),
    Kind.DOWN: KindLine(FAILED, AfterCall.HALT, "No connection; nothing was sent, and the next call would fail too."),
    Kind.TIMEOUT: KindLine(FAILED, AfterCall.REST, "A client time-out may leave part of a batch stored."),
    Kind.RESET: KindLine(FAILED, AfterCall.REST, "The connection broke; what was sent may be stored."),
    Kind.SERVER_ERROR: KindLine(FAILED, AfterCall.REST, "5xx; one poisoned entry turns a whole call into a 500."),
    Kind.GARBAGE: KindLine(FAILED, AfterCall.REST, "Never assume that an error body is JSON."),
    Kind.FAILED: KindLine(FAILED, AfterCall.REST, "A 200 with status: error is a failure."),
    Kind.UNEXPECTED: KindLine(FAILED, AfterCall.REST, "A status that is not in the contract."),
    Kind.LOCAL: KindLine(FAILED, AfterCall.REST, "This machine could not even try: nobody's fault but ours."),
}


# Rows


class Said(Enum):
    """What the Gateway said about a row, as far as it is known."""

    TAKEN = "it has it"
    REFUSED = "refused, alone"
    NOT_STORED = "failed alone, in a delivery that stored others"
    BROKE_CALL = "broke every call it was in, while others were answered"
    UNKNOWN = "the call failed: it may or may not have it"


class History(Enum):
    """What is known of a row that failed."""

    FIRST = "it has not failed before"
    OTHERS_WENT = "since it failed last, others went through"
    NOBODY_WENT = "since it failed last, nobody went through"
    SAME_AGAIN = "blamed before, and the very same words again"


class Limit(Enum):
    """How many counts park a row."""

    LEAST = "three: the words are about this row"
    BY_CHANCE = "as many as chance cannot explain, on a way that loses as many calls as this one; three at least"


@dataclass(frozen=True, slots=True)
class RowLine:
    """A line of the table of rows. `by_row`: whether one row can provoke this kind of failure again and again."""

    said: Said
    by_row: bool | None
    alone: bool | None
    history: History | None
    action: RowAction
    limit: Limit | None
    fact: str


_R, _H, _A, _L = Said, History, RowAction, Limit
ROWS: tuple[RowLine, ...] = (
    RowLine(_R.TAKEN, None, None, None, _A.DELIVER, None,
            "Only inserted + updated == sent proves that all of a batch is stored. Any 200 closes a report."),
    RowLine(_R.REFUSED, None, None, None, _A.PARK, None,
            "One wrongly typed item rejects the whole batch with 400 and no detail: alone, it is the row's own."),
    RowLine(_R.NOT_STORED, None, None, None, _A.COUNT, _L.LEAST,
            "Partial failure is a 200; errors read '<parcel_id>: <database error>'."),
    RowLine(_R.BROKE_CALL, None, None, None, _A.COUNT, _L.BY_CHANCE,
            "A 5xx or a time-out for every group with this item; a lossy way can do that too."),
    RowLine(_R.UNKNOWN, True, True, _H.SAME_AGAIN, _A.COUNT, _L.BY_CHANCE,
            "Failed so before, while others were stored beside it: it is not the day."),
    RowLine(_R.UNKNOWN, False, True, _H.SAME_AGAIN, _A.COUNT, _L.LEAST,
            "The same, with a failure that no chance explains."),
    RowLine(_R.UNKNOWN, True, True, _H.FIRST, _A.WAIT, None,
            "5xx, time-out, reset, no answer: one failure says little. It tells how lossy the way is."),
    RowLine(_R.UNKNOWN, True, True, _H.OTHERS_WENT, _A.COUNT, _L.BY_CHANCE,
            "It fails alone again, with others' successes in between."),
    RowLine(_R.UNKNOWN, True, True, _H.NOBODY_WENT, _A.WAIT, None,
            "Nothing shows that the destination could have taken anything."),
    RowLine(_R.UNKNOWN, True, False, None, _A.WAIT, None,
            "Its database down: 200 with everything failed. In a batch nobody can tell who it was."),
    RowLine(_R.UNKNOWN, False, None, None, _A.WAIT, None,
            "401, 403, 404, 429, no connection: the Gateway's fault, not the items'."),
)  # fmt: skip


# When a row that waits goes again


@dataclass(frozen=True, slots=True)
class WaitLine:
    """A line of the table of waits, for rows whose call failed."""

    kind: Kind | None
    breaker: BreakerAction | None
    wait: Wait
    fact: str


WAITS: tuple[WaitLine, ...] = (
    WaitLine(Kind.RATE_LIMITED, None, Wait.ASKED, "429 with Retry-After (seconds or HTTP date)."),
    WaitLine(None, BreakerAction.OPEN, Wait.PROBE, "Down: no row is sent into it but the probe."),
    WaitLine(None, None, Wait.RETRY, "A lone failure: a resend is safe and counts as updated."),
)


# Breakers

#: So many calls in a row without an answer are a run.
RUN = 5
#: So many 429 among a call and the twenty before it are more than chance.
MANY_LIMITED = 6


@dataclass(frozen=True, slots=True)
class BreakerLine:
    """A line of the table of breakers: a call of this mark is in the group, after so many 429."""

    mark: str
    #: Whether nothing was answered, neither in the group nor in the last calls.
    is_run: bool | None
    #: 429 among a call of the group and the twenty before it, at the worst moment.
    limited: int
    action: BreakerAction
    fact: str


_B = BreakerAction
BREAKERS: tuple[BreakerLine, ...] = (
    BreakerLine(SURE, None, 0, _B.OPEN,
                "401, 403, 404, a redirect, or 200 with everything failed: no luck and no row can cause it."),
    BreakerLine(FAILED, True, 0, _B.OPEN,
                "The fifth failure in a row, or one with nothing before it."),
    BreakerLine(LIMITED, True, 2, _B.PAUSE,
                "A second 429, with nothing answered among the last five calls."),
    # A pause costs every row what one 429 asked for, so it must tell a limit from chance. Where 3 % of the calls get a
    # 429, six of twenty-one are chance once in 129,000 calls; where 40 % do, it takes 14 calls. Four, as tried, were
    # chance once in 1,600 calls, so that most drains of 2,000 results stood still for a while, and some twice.
    BreakerLine(LIMITED, False, MANY_LIMITED, _B.PAUSE,
                "A 429, with five or more among the twenty calls before it."),
    BreakerLine(FAILED, None, 0, _B.PROBE_AGAIN,
                "One failure among successes is not an outage."),
    BreakerLine(LIMITED, None, 0, _B.PROBE_AGAIN,
                "A lone 429: its row waits for what was asked, the others go on."),
    BreakerLine("", None, 0, _B.NOTHING,
                "A refusal (400, 413, 422) is an answer, too: the destination is there."),
)  # fmt: skip


# Batches


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A line of the table of batches. `failed`: a call's outcome is unknown; `limited`: one of those is a 429."""

    is_batch: bool
    failed: bool | None
    limited: bool | None
    any_stored: bool | None
    action: BatchAction
    fact: str


_N = BatchAction
BATCHES: tuple[BatchLine, ...] = (
    BatchLine(False, False, None, None, _N.GROW, "As many files or reports under way as the Gateway takes."),
    BatchLine(False, True, None, None, _N.SHRINK, "Half as many calls under way, and everything else goes on."),
    BatchLine(True, None, True, None, _N.KEEP, "A 429 says nothing about the size; smaller would be more calls."),
    BatchLine(True, False, None, None, _N.GROW, "What became of every item is known."),
    BatchLine(True, None, None, True, _N.GROW, "Something was stored: it is not the size."),
    BatchLine(True, True, None, False, _N.SHRINK, "An item that brings the Gateway down is alone in the end."),
)


def decide(group: Group, known: Known) -> Verdict:
    """Return what happens to rows, batch and breaker, given what was known of the endpoint before."""
    successes = known.successes + _taken(group)
    lines = [_row_line(answer, group, successes) for answer in group.answers]
    if any(line.history is History.SAME_AGAIN for line in lines):
        # What is known of the row explains the failure, so it is no news of the endpoint.
        breaker = BreakerVerdict(BreakerAction.PROBE_AGAIN, is_answered=False, known=None)
    else:
        breaker = _breaker_verdict(group, known)
    rows, after = _row_verdicts(group, lines, breaker, breaker.known or known)
    return Verdict(rows, batch_line(group).action, replace(breaker, known=after) if breaker.known else breaker)


class AfterCalls:
    """What an outcome means at once for the calls that have not left yet. Asked on the event loop, one after another.

    A lone 429 halts nobody: the verdict on it takes a commit, and at 3 % of 429 much of the time would go to waiting
    for verdicts. Where it is one of many a pause is likely, and nothing leaves until that is decided.
    """

    def __init__(self) -> None:
        self._were_limited: deque[bool] = deque(maxlen=REMEMBERED - 1)

    def __call__(self, outcome: Outcome[Any]) -> AfterCall:
        is_limited = isinstance(outcome, Unavailable) and outcome.kind is Kind.RATE_LIMITED
        is_one_of_many = is_limited and sum(self._were_limited) >= MANY_LIMITED - 1
        self._were_limited.append(is_limited)
        if not isinstance(outcome, Unavailable):
            return AfterCall.CONTINUE
        return AfterCall.HALT if is_one_of_many else KINDS[outcome.kind].after


def _taken(group: Group) -> int:
    return sum(_said(answer.outcome) is Said.TAKEN for answer in group.answers)


def _said(outcome: Outcome[Any] | DeliveryResult) -> Said:
    if isinstance(outcome, Accepted | Stored):
        return Said.TAKEN
    if isinstance(outcome, Refused | RefusedAlone):
        return Said.REFUSED
    if isinstance(outcome, FailedAlone):
        return Said.BROKE_CALL if outcome.by_crash else Said.NOT_STORED
    return Said.UNKNOWN


def _cause(outcome: Outcome[Any] | DeliveryResult) -> Unavailable | None:
    """Return the failed call behind an answer that says nothing about the row."""
    if isinstance(outcome, Undecided):
        return outcome.cause
    return outcome if isinstance(outcome, Unavailable) else None


# Rows


def _row_line(answer: Answer, group: Group, successes: int) -> RowLine:
    said, cause = _said(answer.outcome), _cause(answer.outcome)
    by_row = cause.perhaps_the_row if cause else None
    alone = not group.is_batch or len(group.answers) == 1
    history = _history(answer.record, successes)
    for line in ROWS:
        if (
            line.said is said
            and line.by_row in (None, by_row)
            and line.alone in (None, alone)
            and line.history in (None, history)
        ):
            return line
    raise LookupError(f"no line for {answer}")  # the tests walk through every combination


def _history(record: Record, successes: int) -> History:
    if record.is_same_again:
        return History.SAME_AGAIN
    if record.seen_successes is None:
        return History.FIRST
    return History.OTHERS_WENT if successes > record.seen_successes else History.NOBODY_WENT


def _row_verdicts(
    group: Group, lines: Sequence[RowLine], breaker: BreakerVerdict, known: Known
) -> tuple[tuple[RowVerdict, ...], Known]:
    """Return the verdicts, and what is known after them: a first failure tells how lossy the way is.

    A batch that failed is one such failure, however many rows were in it.
    """
    way, verdicts, batch_failure = known.way, [], None
    for answer, line in zip(group.answers, lines, strict=True):
        verdicts.append(_row_verdict(answer, line, breaker.action, way.most_blame))
        if line.said is Said.UNKNOWN and line.alone and line.history is History.FIRST:
            way = way.after_first_failure()
        elif line.said is Said.UNKNOWN and batch_failure is None:
            batch_failure = line
    if group.is_batch and len(lines) > 1 and batch_failure and batch_failure.by_row:
        way = way.after_first_failure()
    return tuple(verdicts), replace(known, way=way)


def _row_verdict(answer: Answer, line: RowLine, breaker: BreakerAction, most_blame: int) -> RowVerdict:
    outcome, cause = answer.outcome, _cause(answer.outcome)
    action = line.action
    if line.limit and answer.record.blame + 1 >= (LEAST_BLAME if line.limit is Limit.LEAST else most_blame):
        action = RowAction.PARK
    if isinstance(outcome, Refused):
        return RowVerdict(action, outcome.reason, outcome.words)
    if isinstance(outcome, RefusedAlone):
        return RowVerdict(action, "gateway_refused", outcome.words)
    if isinstance(outcome, FailedAlone):
        return RowVerdict(action, "gateway_failed", outcome.words)
    if cause is None:
        return RowVerdict(action)
    if line.history is History.SAME_AGAIN:
        return RowVerdict(action, "gateway_failed", words_about(outcome))
    return RowVerdict(action, cause.kind.value, cause.words, _wait(cause.kind, breaker), cause.retry_after)


def words_about(outcome: Outcome[Any] | DeliveryResult) -> str:
    """Return what was said about a row that failed: its own words, where it was sent alone."""
    cause = _cause(outcome)
    own = outcome.words if isinstance(outcome, Undecided) else ""
    return own or (cause.words if cause else "")


def _wait(kind: Kind, breaker: BreakerAction) -> Wait:
    return next(line.wait for line in WAITS if line.kind in (None, kind) and line.breaker in (None, breaker))


# Breakers


def _breaker_verdict(group: Group, known: Known) -> BreakerVerdict:
    said = [_said(answer.outcome) for answer in group.answers]
    taken, is_answered = said.count(Said.TAKEN), Said.TAKEN in said or Said.REFUSED in said
    # The 429 that it was paused for are forgotten with the pause: that was kept.
    before = "" if is_answered and known.closes_on_answer else known.last_calls
    if is_answered:
        known = replace(
            known,
            successes=known.successes + taken,
            way=known.way.after_answers(1 if group.is_batch else taken),
        )
    everything_failed = _everything_failed(group)
    sure = {kind for kind, line in KINDS.items() if line.mark == SURE} | {one.kind for one in everything_failed}
    calls = [*group.calls, *everything_failed]
    marks = "".join(_mark(call, sure) for call in calls)
    failed = sorted((call for call in calls if isinstance(call, Unavailable)), key=lambda call: call.kind in sure)
    known = replace(known, last_calls=remember(before, marks))
    return BreakerVerdict(breaker_line(before, marks).action, is_answered, known, tuple(failed))


def _everything_failed(group: Group) -> list[Unavailable]:
    """Each call was answered, and yet nothing was stored: that is a failure of the destination, and a sure one."""
    if not group.is_batch or _taken(group):
        return []
    causes = [cause for answer in group.answers if (cause := _cause(answer.outcome))]
    return [cause for cause in causes[:1] if cause.kind is Kind.FAILED]


def _mark(call: Outcome[Any], sure: set[Kind]) -> str:
    """Return the letter by which a call is remembered; none for one that was never sent."""
    if isinstance(call, Refused):
        return "" if call.status is None else ANSWERED
    if not isinstance(call, Unavailable):
        return ANSWERED
    return SURE if call.kind in sure else KINDS[call.kind].mark


def remember(before: str, marks: str) -> str:
    """Return the last calls, those of this group included, in the order in which they ended."""
    return (before + marks)[-REMEMBERED:]


def breaker_line(before: str, marks: str) -> BreakerLine:
    """Judge calls that came back together, given what the calls before them came to."""
    is_run = ANSWERED not in marks and ANSWERED not in remember(before, marks)[-RUN:]
    limited = _most_limited(before, marks)
    for line in BREAKERS:
        if line.mark in marks and line.is_run in (None, is_run) and limited >= line.limited:
            return line
    raise LookupError(f"no line for {marks!r} after {before!r}")


def _most_limited(before: str, marks: str) -> int:
    """Return how many 429 there were among the calls up to one of this group's, at the worst moment."""
    calls = before + marks
    ends = [len(before) + n + 1 for n, mark in enumerate(marks) if mark == LIMITED]
    return max((calls[max(0, end - REMEMBERED) : end].count(LIMITED) for end in ends), default=0)


# Batches


def batch_line(group: Group) -> BatchLine:
    """Judge how much is sent at a time, by what became of the rows."""
    causes = [cause.kind for answer in group.answers if (cause := _cause(answer.outcome))]
    failed, limited, any_stored = bool(causes), Kind.RATE_LIMITED in causes, bool(_taken(group))
    for line in BATCHES:
        if (
            line.is_batch is group.is_batch
            and line.failed in (None, failed)
            and line.limited in (None, limited)
            and line.any_stored in (None, any_stored)
        ):
            return line
    raise LookupError(f"no line for {group}")
