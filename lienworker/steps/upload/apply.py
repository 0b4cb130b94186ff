"""Write what `verdict` says: the one place where an upload's outcome changes breaker and rows that were not taken."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lienworker.db.clock import now_ms
from lienworker.db.database import after_commit
from lienworker.hubs.gateway.outcomes import Accepted, DeliveryResult, Kind, Outcome, Stored, Unavailable
from lienworker.outbox import breaker, uploads
from lienworker.outbox.breaker import Failure, Known, Outage
from lienworker.outbox.outcomes import fingerprint
from lienworker.outbox.rows import Claimed
from lienworker.outbox.uploads import Parked
from lienworker.steps.upload.verdict import (
    Answer,
    BreakerAction,
    BreakerVerdict,
    Group,
    Record,
    RowAction,
    RowVerdict,
    Verdict,
    Wait,
    decide,
    words_about,
)

logger = logging.getLogger(__name__)


def settle_calls(endpoint: str, outcomes: Sequence[tuple[Claimed, Outcome[Any]]], first_delay: float) -> Verdict:
    """Settle calls with one row each that ended together. Part of a larger transaction.

    Rows that were taken are left to the caller, who knows what follows from that.
    """
    answers = [Answer(outcome, _record(row, outcome)) for row, outcome in outcomes]
    group = Group(calls=[outcome for _, outcome in outcomes], answers=answers)
    return _settle(endpoint, [row for row, _ in outcomes], group, first_delay)


def settle_batch(
    outcomes: Sequence[tuple[Claimed, DeliveryResult]], calls: Sequence[Outcome[Any]], first_delay: float
) -> Verdict:
    """Settle a batch of results, with all the calls that it took. Part of a larger transaction, as above."""
    is_single = len(outcomes) == 1
    answers = [Answer(outcome, _record(row, outcome, compare=is_single)) for row, outcome in outcomes]
    group = Group(calls=calls, answers=answers, is_batch=True)
    return _settle("results", [row for row, _ in outcomes], group, first_delay)


def settle_polls(outcomes: Sequence[Outcome[Any]], first_delay: float) -> int:
    """Settle polls for work, which have no rows; return until when none goes out, 0 if they go on."""
    known = breaker.known("work")
    return _apply_breaker("work", known, decide(Group(calls=outcomes), known).breaker, first_delay)


def close_after_poll() -> None:
    """Close the breaker of polls that an answer has proven wrong. Part of a larger transaction."""
    known = breaker.known("work")
    breaker.remember("work", replace(known, successes=known.successes + 1, way=known.way.after_answers(1)))
    if known.closes_on_answer:
        before = breaker.outage("work")
        breaker.close("work")
        record_change("work", before)


def failure_of(failed: Unavailable) -> Failure:
    return Failure(kind=failed.kind.value, words=failed.words, retry_after=failed.retry_after)


def _record(row: Claimed, outcome: Outcome[Any] | DeliveryResult, *, compare: bool = False) -> Record:
    """Return what is held against a row; of one that went through nobody asks."""
    if isinstance(outcome, Accepted | Stored):
        return Record()
    seen_successes, blame, known_words = uploads.record_of(row)
    is_same_again = compare and bool(blame) and known_words == fingerprint(words_about(outcome))
    return Record(seen_successes=seen_successes, blame=blame, is_same_again=is_same_again)


def _settle(endpoint: str, rows: Sequence[Claimed], group: Group, first_delay: float) -> Verdict:
    known = breaker.known(endpoint)
    verdict = decide(group, known)
    open_until = _apply_breaker(endpoint, known, verdict.breaker, first_delay)
    successes = (verdict.breaker.known or known).successes
    for row, row_verdict in zip(rows, verdict.rows, strict=True):
        _apply_row(row, row_verdict, open_until, first_delay, successes)
    pairs = zip(rows, verdict.rows, strict=True)
    uploads.say_parked([Parked(row, one.reason, one.words) for row, one in pairs if one.action is RowAction.PARK])
    return verdict


def _apply_breaker(endpoint: str, known: Known, verdict: BreakerVerdict, first_delay: float) -> int:
    """Return until when nothing goes out; 0 where the endpoint goes on. What changes for people is logged."""
    before = breaker.outage(endpoint)
    open_until = _change_breaker(endpoint, known, verdict, first_delay)
    record_change(endpoint, before)
    return open_until


def record_change(endpoint: str, before: Outage | None) -> None:
    """Log that delivery trouble has begun or ended; an end is news for the other endpoints. Part of a transaction."""
    now, extra = breaker.outage(endpoint), {"action": "delivery", "endpoint": endpoint}
    n = uploads.waiting_for(endpoint)
    if now and not before:
        words = "the Gateway does not take %s for now: %s; %d wait, nothing is lost"
        after_commit(lambda: logger.warning(words, endpoint, now.words, n, extra=extra))
    elif before and not now:
        uploads.probe_others(endpoint)
        words, seconds = "the Gateway takes %s again, after %.0f s; %d waited", (now_ms() - before.since_ms) / 1000
        after_commit(lambda: logger.warning(words, endpoint, seconds, n, extra=extra))


def _change_breaker(endpoint: str, known: Known, verdict: BreakerVerdict, first_delay: float) -> int:
    if verdict.is_answered and known.closes_on_answer:
        breaker.close(endpoint)
    if verdict.known:
        breaker.remember(endpoint, verdict.known)
    if verdict.action is BreakerAction.PAUSE:
        limited = [failure_of(one) for one in verdict.because if one.kind is Kind.RATE_LIMITED]
        return max(breaker.pause(endpoint, trouble, first_delay) for trouble in limited)
    if verdict.action is BreakerAction.OPEN:
        return max(breaker.record_failure(endpoint, failure_of(one), first_delay) for one in verdict.because)
    if verdict.action is BreakerAction.PROBE_AGAIN:
        breaker.call_off_probe(endpoint)
    return 0


def _apply_row(row: Claimed, verdict: RowVerdict, open_until: int, first_delay: float, successes: int) -> None:
    if verdict.action is RowAction.PARK:
        uploads.park(row, verdict.reason, verdict.words)
    elif verdict.action is not RowAction.DELIVER:
        uploads.put_off(
            row,
            verdict.reason,
            verdict.words,
            _due_at(verdict, open_until, first_delay),
            blame=int(verdict.action is RowAction.COUNT),
            seen_successes=successes,
        )


def _due_at(verdict: RowVerdict, open_until: int, first_delay: float) -> int:
    """Return when a row goes again: a millisecond later than the endpoint's probe, so that another row makes it."""
    if verdict.wait is Wait.MOMENT:
        return now_ms() + breaker.delay_ms(1, first_delay, None)
    if verdict.wait is Wait.PROBE:
        return open_until + 1
    if verdict.wait is Wait.ASKED:
        own = breaker.asked_ms(verdict.retry_after, first_delay)
    else:
        own = breaker.delay_ms(1, first_delay, verdict.retry_after)
    return max(now_ms() + own, open_until) + 1
