"""Which amount a page means, where it shows several under labels that mean the same.

Labels come again for each year, installment, building and line of land. The first of them is as often wrong as right,
so it is never taken for being the first: the newest year counts, or the sum that the page itself states, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Said(NamedTuple):
    """An amount, the words of its label, and the year of the title above it."""

    amount: float
    word: str
    year: int | None


def chosen(said: Sequence[Said], *, any_word: bool = True) -> float | None:
    """The amount that counts; None where the page contradicts itself.

    With `any_word`, other words for the same thing may have other amounts (just value, appraised value): then the first
    word counts, where its own amounts agree.
    """
    if len(said) == 1 or len({one.amount for one in said}) < 2:
        return said[0].amount if said else None
    said = [one for one in said if one.year is None] or _newest(said)
    # Beside what it is worth, the part of it that is assessed.
    said = [one for one in said if "assess" not in one.word] or said
    sums = [one for one in said if one.word.startswith(("total", "grand total"))]
    own = [one for one in said if one.word == said[0].word] if any_word else said
    for candidates in (said, sums, own):
        amounts = {one.amount for one in candidates}
        if len(amounts) == 1 and (candidates is not sums or max(amounts) >= max(one.amount for one in said)):
            return amounts.pop()
    return None


def _newest(said: Sequence[Said]) -> list[Said]:
    newest = max(one.year or 0 for one in said)
    return [one for one in said if one.year == newest]
