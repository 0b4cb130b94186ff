"""What a call to the Gateway came to. Expected failures are values, split where behavior splits.

Accepted      the Gateway answered as the contract says; `reply` has what it said
Refused       the row's fault: sent again as it is, it would be refused again
Unavailable   the destination's fault (or nobody can tell yet): no row loses an attempt, a breaker opens

Each has the `request_id` by which the call is found in the Gateway's own log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Kind(StrEnum):
    """Why the destination could not take a call; stable words that people filter by."""

    DOWN = "down"  # no connection: refused, no route, no such name, bad certificate, connecting took too long
    TIMEOUT = "timeout"  # connected, but no whole answer in time; what was sent may be stored
    RESET = "reset"  # the connection broke; what was sent may be stored
    AUTH = "auth"  # 401 or 403
    MISSING = "missing"  # 404 or 405 on a route that a Gateway has: not a Gateway, or the wrong address
    RATE_LIMITED = "rate_limited"  # 429
    SERVER_ERROR = "server_error"  # 5xx
    GARBAGE = "garbage"  # an answer that is not in the contract: HTML, half a JSON, too large, impossible counts
    FAILED = "failed"  # a 200 that says it failed: `status: error`, or every single item failed
    REDIRECTED = "redirected"  # never followed: the token would go along
    UNEXPECTED = "unexpected_status"
    LOCAL = "local"  # this machine could not even try (too many open files and the like)


# Failures that one row alone can provoke again and again (a page that makes the server crash). Such a row is to be
# blamed only after it failed alone several times with another row's success in between.
_PERHAPS_THE_ROW = frozenset({Kind.TIMEOUT, Kind.RESET, Kind.SERVER_ERROR, Kind.GARBAGE, Kind.FAILED})


@dataclass(frozen=True, slots=True)
class Accepted(Generic[T_co]):
    """The Gateway answered as the contract says."""

    reply: T_co
    request_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """The row's fault. `status` is None where nothing was sent; `reason` is a stable word, `words` a sentence."""

    status: int | None
    words: str
    reason: str = "gateway_refused"
    request_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The destination's fault. `retry_after` is in seconds, where the destination asked for a pause."""

    kind: Kind
    words: str
    retry_after: float | None = None
    request_id: str = field(default="", compare=False)

    @property
    def perhaps_the_row(self) -> bool:
        """Say whether one particular row could be the cause; settled by sending it alone, and others in between."""
        return self.kind in _PERHAPS_THE_ROW


Outcome: TypeAlias = Accepted[T_co] | Refused | Unavailable


# What became of one result that was to be delivered.


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


DeliveryResult: TypeAlias = Stored | RefusedAlone | FailedAlone | Undecided
