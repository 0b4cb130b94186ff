"""Whether a share says something, or may be chance: pure arithmetic, for verdicts that people act on.

A share of a few pages swings. A verdict that turns red with each swing is soon ignored, so these are strict: they are
asked for each field of each county, again and again, and must still hardly ever be wrong.
"""

from __future__ import annotations

import math

#: Standard errors for one share: about one such share in 200 is as far off by chance.
_ONE_SHARE = 2.6
#: So unlikely must a drop be: thirty fields of a thousand counties are looked at.
_BY_CHANCE = 1e-6


def at_least(hits: int, n: int) -> float:
    """Return the share that is behind `hits` of `n` even if chance was against us (Wilson's lower bound)."""
    if not n:
        return 0.0
    share, z2 = hits / n, _ONE_SHARE**2
    spread = _ONE_SHARE * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, (share + z2 / (2 * n) - spread) / (1 + z2 / n))


def has_dropped(before: tuple[int, int], now: tuple[int, int]) -> bool:
    """Return whether the share (hits, of how many) is lower now by more than chance.

    This is Fisher's exact test of two proportions: among twenty pages, the usual approximation takes a single miss for
    a collapse.
    """
    (hits_before, n_before), (hits_now, n_now) = before, now
    if not n_before or not n_now or hits_before * n_now <= hits_now * n_before:
        return False
    misses = n_before - hits_before + n_now - hits_now
    most = min(misses, n_now)
    chance = sum(_chance(k, n_now, misses, n_before + n_now) for k in range(n_now - hits_now, most + 1))
    return chance < _BY_CHANCE


def _chance(k: int, drawn: int, marked: int, n: int) -> float:
    """Return how likely it is that `k` of `drawn` are marked, where `marked` of `n` are."""
    ways = _log_choose(marked, k) + _log_choose(n - marked, drawn - k) - _log_choose(n, drawn)
    return math.exp(ways)


def _log_choose(n: int, k: int) -> float:
    if not 0 <= k <= n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
