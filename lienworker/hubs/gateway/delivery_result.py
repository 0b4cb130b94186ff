"""What became of one result that was to be delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lienworker.hubs.gateway.outcomes import Unavailable


@dataclass(frozen=True, slots=True)
class Stored:
    """Proven: it was in a batch of which everything was stored."""


@dataclass(frozen=True, slots=True)
class RefusedAlone:
    """Refused (400, 413, 422 …) when sent by itself: the item's fault."""

    words: str
    status: int | None


@dataclass(frozen=True, slots=True)
class FailedAlone:
    """Answered with a database error when sent by itself, in a delivery that stored others.

    Very likely the item's fault; to be believed after it happened several times. `by_crash`: the call itself broke (a
    5xx, a time-out) as it did for every group with this item in it, which chance can do too.
    """

    words: str
    by_crash: bool = False


@dataclass(frozen=True, slots=True)
class Undecided:
    """Not known to be stored, through the destination's fault: it loses no attempt and is sent again later.

    `alone`: it was sent by itself and failed, but nothing shows that the destination could have stored anything;
    `words` are what was said about it then.
    """

    cause: Unavailable
    alone: bool = False
    words: str = ""


Fate: TypeAlias = Stored | RefusedAlone | FailedAlone | Undecided
