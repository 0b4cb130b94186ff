"""Faults by command: what can go wrong with a Gateway, switched on and off while it runs.

down            the connection is closed at once, without a byte
slow            answers as usual, `seconds` late
hang            takes the request and never answers, until the client leaves or the faults are cleared
reset           does the work, then breaks the connection in the middle of the reply
lost_reply      does the work, then closes the connection without a reply
half_json       does the work, then sends half of the reply as if it were all of it
html            200 with an HTML page, as a proxy sends; nothing is done
status          `status` and nothing done; "401", "403", "500", "502", "503" and so on are short for it
rate_limited    429 with `Retry-After` (`seconds`; as an HTTP date with `as_date`); "429", "429-date" for short
database_down   results: 200 with everything failed; raw files: 200 with `status: error`
redis_down      results are stored and answered with 200, their tasks stay booked; work, complete and fail: 500
parcels         results of the parcels in `names` fail, each by itself, with `words`
raw_file        raw files whose name is (or contains one) in `names` always get a 500

hang and lost_reply take `items` on the endpoint results: the first so many rows of a batch are stored, then the client
hears nothing more. That is what a client's time-out leaves behind.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

ENDPOINTS = ("health", "metrics", "work", "raw", "results", "complete", "fail", "heartbeat", "other")
INSTEAD = frozenset({"down", "hang", "html", "status", "rate_limited"})  # nothing is done
AFTERWARDS = frozenset({"reset", "lost_reply", "half_json"})  # the work is done, the reply suffers
WITHIN = frozenset({"database_down", "redis_down", "parcels", "raw_file"})  # the work itself goes wrong
KINDS = INSTEAD | AFTERWARDS | WITHIN | {"slow"}
MIDWAY = "midway"  # how those with `items` strike: part of the work is done, and there is no reply
_MAY_BE_MIDWAY = frozenset({"hang", "lost_reply"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `count` is how often it strikes before it is over, `probability` how likely it strikes each time."""

    kind: str
    endpoint: str = "all"
    count: int | None = None
    probability: float = 1.0
    seconds: float = 1.0
    status: int = 500
    as_date: bool = False
    names: tuple[str, ...] = ()
    words: str = "ERROR: value out of range (SQLSTATE 22003)"
    items: int | None = None
    seed: int | None = None
    id: int = 0

    def concerns(self, endpoint: str) -> bool:
        return self.endpoint in {"all", endpoint}

    @property
    def strikes_as(self) -> str:
        """Return its kind, or `MIDWAY` where it strikes in the middle of the work."""
        return self.kind if self.items is None else MIDWAY


def make_fault(kind: str, **options: Any) -> Fault:
    """Return a fault by its name, in long or short form. Raises ValueError that names the valid ones."""
    if kind.isdigit() and kind != "429":
        kind, options = "status", {**options, "status": int(kind)}
    elif kind in {"429", "429-date"}:
        kind, options = "rate_limited", {**options, "status": 429, "as_date": kind == "429-date"}
    if kind not in KINDS:
        raise ValueError(f"unknown fault {kind!r}; use one of {', '.join(sorted(KINDS))} or a status such as 503")
    unknown = set(options) - set(Fault.__dataclass_fields__)
    if unknown:
        raise ValueError(f"unknown option {', '.join(sorted(unknown))} of a fault")
    fault = Fault(kind, **{name: _READ.get(name, _as_it_is)(value) for name, value in options.items()})
    if fault.endpoint not in (*ENDPOINTS, "all"):
        raise ValueError(f"unknown endpoint {fault.endpoint!r}; use all or one of {', '.join(ENDPOINTS)}")
    if fault.items is not None:
        _check_items(fault)
    return fault


def _check_items(fault: Fault) -> None:
    if fault.kind not in _MAY_BE_MIDWAY or fault.endpoint != "results":
        raise ValueError(f"items is for {' and '.join(sorted(_MAY_BE_MIDWAY))} with the endpoint results only")
    if fault.items is not None and fault.items < 0:
        raise ValueError("items must be 0 or more")


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def _as_it_is(value: Any) -> Any:
    return value


# What comes as JSON is checked here, not in the middle of somebody's request.
_READ: dict[str, Callable[[Any], Any]] = {
    "names": _names,
    "count": _count,
    "seed": _count,
    "items": _count,
    "probability": float,
    "seconds": float,
    "status": int,
}


@dataclass(slots=True)
class _Active:
    fault: Fault
    left: int | None
    dice: random.Random


@dataclass(slots=True)
class FaultBoard:
    """The faults that are on. Not locked: its owner is."""

    _active: dict[int, _Active] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, fault: Fault) -> int:
        fault = replace(fault, id=next(self._ids))
        self._active[fault.id] = _Active(fault, fault.count, random.Random(fault.seed))  # dice  # noqa: S311 # nosec B311
        return fault.id

    def clear(self, fault_id: int | None = None) -> None:
        if fault_id is None:
            self._active.clear()
        else:
            self._active.pop(fault_id, None)

    def strike(self, endpoint: str, kinds: Iterable[str]) -> Fault | None:
        """Return the first fault of these kinds (or `MIDWAY`) that strikes now; it is used up by one."""
        wanted = frozenset(kinds)
        for active in list(self._active.values()):
            if active.fault.strikes_as in wanted and active.fault.concerns(endpoint) and self._strikes(active):
                return active.fault
        return None

    def _strikes(self, active: _Active) -> bool:
        if active.dice.random() >= active.fault.probability:
            return False
        if active.left is not None:
            active.left -= 1
            if active.left <= 0:
                del self._active[active.fault.id]
        return True

    def is_on(self, fault: Fault) -> bool:
        return fault.id in self._active

    def failing(self, kind: str, endpoint: str) -> list[Fault]:
        """Return the faults of a kind that name what fails; they have no dice and no count."""
        return [a.fault for a in self._active.values() if a.fault.kind == kind and a.fault.concerns(endpoint)]

    def listed(self) -> list[Mapping[str, Any]]:
        return [{**asdict(active.fault), "left": active.left} for active in self._active.values()]
