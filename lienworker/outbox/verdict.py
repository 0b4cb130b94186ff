"""Decide what failed calls mean for their endpoint. Pure: the last calls go in, a verdict comes out.

One failure among successes is not an outage: only its own rows wait. An endpoint pauses, for exactly what it asked,
when a 429 comes and three or more of the twenty calls before it were 429 as well (or one, where nothing was answered
lately).
It is taken for down on a run of failures, or at once on what no luck and no row can cause.
"""

from __future__ import annotations

from enum import Enum

#: What a call came to, one letter each: a row of them is stored for each endpoint.
ANSWERED, LIMITED, FAILED, SURE = "a", "r", "f", "x"
#: This call and the twenty before it.
REMEMBERED = 21
#: So many 429 among those are a pause: this one, and three before it. A pause costs every row what one 429 asked for,
#: so it must tell a limit from chance: 3 % of 429 lead to one pause in some 1,500 calls, 40 % to one at once. With two
#: before it, as tried, it was one in 350, and a drain of ready results ran at 0.33 of its rate.
MANY_LIMITED = 4
#: The same where nothing was answered lately.
_LIMITED_IN_A_RUN = 2
#: So many calls in a row without an answer are a run.
_RUN = 5


class Verdict(Enum):
    """What becomes of the endpoint. The rows of failed calls wait in any case."""

    GO_ON = "only the rows of the failed calls wait"
    PAUSE = "nothing goes out for as long as was asked for"
    OPEN = "it is down: probes at growing intervals, until one is answered"


def remember(before: str, group: str) -> str:
    """Return the last calls, those of `group` included, in the order in which they ended."""
    return (before + group)[-REMEMBERED:]


def judge(before: str, group: str) -> Verdict:
    """Judge calls that came back together, given what the calls before them came to.

    Calls that were under way together speak for each other: if one of them was answered, the others are no run.
    """
    if SURE in group:
        return Verdict.OPEN
    is_run = ANSWERED not in group and ANSWERED not in remember(before, group)[-_RUN:]
    if FAILED in group and is_run:
        return Verdict.OPEN
    if LIMITED in group and _most_limited(before, group) >= (_LIMITED_IN_A_RUN if is_run else MANY_LIMITED):
        return Verdict.PAUSE
    return Verdict.GO_ON


def _most_limited(before: str, group: str) -> int:
    """Return how many 429 there were among the calls up to one of this group's, at the worst moment."""
    calls = before + group
    ends = [len(before) + n + 1 for n, mark in enumerate(group) if mark == LIMITED]
    return max(calls[max(0, end - REMEMBERED) : end].count(LIMITED) for end in ends)
