"""Blame the right one for failed calls: the destination as a whole, or nobody yet, so that only their rows wait."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.gateway.outcomes import Kind, Outcome, Refused, Unavailable
from lienworker.outbox import breaker, verdict
from lienworker.outbox.breaker import Trouble
from lienworker.outbox.verdict import Verdict
from lienworker.store.clock import now_ms

#: What no luck and no row can cause: the breaker opens at once, whatever else went through.
SURELY_THE_DESTINATION = {Kind.AUTH, Kind.MISSING, Kind.REDIRECTED}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What failed calls came to: whether the endpoint takes nothing until `open_until`, and when each row goes again.

    Rows go a millisecond later than the endpoint's probe, so that another row makes it.
    """

    first_delay: float
    is_outage: bool = False
    open_until: int = 0

    def due_at(self, failed: Unavailable) -> int:
        """Return the time from which the row of a failed call may go again."""
        if failed.kind is Kind.RATE_LIMITED:
            own = now_ms() + breaker.asked_ms(failed.retry_after, self.first_delay)
        elif self.is_outage:
            own = self.open_until
        else:
            own = now_ms() + breaker.delay_ms(1, self.first_delay, failed.retry_after)
        return max(own, self.open_until) + 1


def judge_calls(
    endpoint: str, outcomes: Sequence[Outcome[Any]], first_delay: float, sure: Collection[Kind] = SURELY_THE_DESTINATION
) -> Ruling:
    """Judge calls that ended together, and open the breaker if they say so. Part of a larger transaction."""
    found = breaker.note_calls(endpoint, "".join(_mark(outcome, sure) for outcome in outcomes))
    # The words that stay are those of the last: what is sure tells more than a reset beside it.
    failed = sorted((one for one in outcomes if isinstance(one, Unavailable)), key=lambda one: one.kind in sure)
    if found is Verdict.PAUSE:
        return Ruling(first_delay, open_until=_pause(endpoint, failed, first_delay))
    if found is Verdict.OPEN:
        return Ruling(first_delay, is_outage=True, open_until=_open(endpoint, failed, first_delay))
    if failed:
        breaker.call_off_probe(endpoint)  # if it was one: it says little, so another row makes the next at once
    return Ruling(first_delay)


def _pause(endpoint: str, failed: Sequence[Unavailable], first_delay: float) -> int:
    limited = [trouble_of_call(one) for one in failed if one.kind is Kind.RATE_LIMITED]
    return max(breaker.pause(endpoint, trouble, first_delay) for trouble in limited)


def _open(endpoint: str, failed: Sequence[Unavailable], first_delay: float) -> int:
    return max(breaker.note_trouble(endpoint, trouble_of_call(one), first_delay) for one in failed)


def trouble_of_call(failed: Unavailable) -> Trouble:
    return Trouble(failed.kind.value, failed.words, failed.retry_after)


def _mark(outcome: Outcome[Any], sure: Collection[Kind]) -> str:
    """Return the letter by which a call is remembered; none for one that was never sent."""
    if isinstance(outcome, Refused):  # a refusal is an answer, too
        return "" if outcome.status is None else verdict.ANSWERED
    if not isinstance(outcome, Unavailable):
        return verdict.ANSWERED
    if outcome.kind is Kind.RATE_LIMITED:
        return verdict.LIMITED
    return verdict.SURE if outcome.kind in sure else verdict.FAILED
