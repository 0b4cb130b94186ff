"""When to try again. Pure decisions: they take the attempt, the error and a random number, and return a decision."""

from __future__ import annotations

import random
from dataclasses import dataclass

#: The longest that a site or the Gateway may ask us to wait.
LONGEST_RETRY_AFTER = 24 * 3600.0
_LONGEST_RETRY = 300.0
_FIRST_COOLING = 2.0
_LONGEST_COOLING = 300.0


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Try once more after this many milliseconds."""

    after_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No tries are left."""


def decide(
    attempts: int, most: int, first_delay: float, *, retryable: bool, chance: float | None = None
) -> TryAgain | GiveUp:
    """Decide what follows the `attempts`-th failed try: another one, four times as late each time, or giving up."""
    if not retryable or attempts >= most:
        return GiveUp()
    seconds = min(_LONGEST_RETRY, first_delay * 4 ** min(attempts - 1, 20))
    return TryAgain(int(1000 * seconds * _jitter(chance)))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a page is tried, and how long after its first failure it is tried again, s."""

    attempts: int
    first_delay: float

    def after(self, tries: int, *, retryable: bool) -> TryAgain | GiveUp:
        """Decide what follows the `tries`-th failed try."""
        return decide(tries, self.attempts, self.first_delay, retryable=retryable)


def cooling_ms(failures: int, retry_after: float | None, chance: float | None = None) -> int:
    """Return how long a host cools after its n-th failure in a row: at least as long as it asked for."""
    own = min(_LONGEST_COOLING, _FIRST_COOLING * 2 ** min(failures - 1, 20)) * _jitter(chance)
    asked = retry_after if retry_after is not None and retry_after >= 0 else 0.0  # this comparison also rules out NaN
    return int(1000 * max(own, min(asked, LONGEST_RETRY_AFTER)))


def _jitter(chance: float | None) -> float:
    """Return a factor from 0.8 to 1.2, so that what failed together does not retry together."""
    return 0.8 + 0.4 * (random.random() if chance is None else chance)  # dice, not secrets  # noqa: S311 # nosec B311
