"""The plan of a run: which fault strikes when, and for how long. A seed gives the same plan each time."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_GATEWAY_FAULTS = (
    "500", "502", "503", "401", "429", "hang", "reset", "lost_reply", "half_json", "html", "slow", "database_down",
)  # fmt: skip
_GATEWAY_ENDPOINTS = ("all", "work", "raw", "results", "fail", "heartbeat")
_COUNTY_FAULTS = ("500", "503", "429", "slow", "reset", "hang", "half")
#: Seconds that the node's clock is off from then on. Small steps both ways, hours and days ahead, and days back.
_CLOCKS = (-20, -5, 5, 30, 3600, 7200, 86_400, 3 * 86_400, -5 * 86_400, 0)

Options = Callable[[random.Random], dict[str, Any]]


def _nothing(_dice: random.Random) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: how often it strikes, how long it lasts, and what is drawn for it."""

    weight: int
    shortest: float = 0.0
    longest: float = 0.0
    options: Options = _nothing


KINDS: dict[str, Kind] = {
    "kill_worker": Kind(6),
    "kill_master": Kind(2),
    "kill_schedule": Kind(2),
    "kill_redis": Kind(2),
    "kill_web": Kind(1),
    "kill_supervisor": Kind(2),
    "kill_everything": Kind(1),
    "stop_worker": Kind(2, 1, 8),
    "stop_redis": Kind(2, 1, 6),
    "flush_redis": Kind(2),
    "gateway_fault": Kind(
        6,
        2,
        8,
        lambda dice: {
            "kind": dice.choice(_GATEWAY_FAULTS),
            "endpoint": dice.choice(_GATEWAY_ENDPOINTS),
            "probability": dice.choice((0.3, 0.7, 1.0)),
            "seed": dice.randrange(10**6),
        },
    ),
    "gateway_down": Kind(2, 2, 8),
    "county_fault": Kind(
        5, 2, 6, lambda dice: {"kind": dice.choice(_COUNTY_FAULTS), "probability": dice.choice((0.2, 0.5, 1.0))}
    ),
    "clock_jump": Kind(2, options=lambda dice: {"offset": dice.choice(_CLOCKS)}),
    "rude_writer": Kind(2, 1, 8),
    "full_disk": Kind(2, 3, 8),
    "few_files": Kind(2, 2, 6),
    "no_inodes": Kind(2, 3, 8),
    "eio": Kind(2, 2, 8, lambda dice: {"calls": dice.choice(("eio_writes", "eio"))}),
    "read_only": Kind(2, 2, 8),
    "run": Kind(1, 6, 12, lambda dice: {"rows": dice.choice((5, 40))}),
    "import": Kind(3, options=lambda dice: {"rows": dice.choice((5, 40, 120))}),
    "replay": Kind(2),
}
#: What is there all the time: people who look, a Gateway that answers 3 % of the calls with 429, sites that mean harm,
#: and sites that measure how often they are asked.
CONDITIONS = ("look", "rate_limit", "hostile_pages", "hostile_robots", "polite")
#: Once each, in a run that is long enough. The writer is locked out for longer than its patience, so that transactions
#: really fail.
_LONG: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("rude_writer", 34.0, {}),
    ("no_inodes", 60.0, {}),
    ("eio", 60.0, {"calls": "eio"}),
    ("read_only", 60.0, {}),
)
LONG_RUN = 300.0
_MEAN_GAP = 2.5


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    kind: str
    seconds: float
    options: dict[str, Any]

    def in_words(self) -> str:
        said = " ".join(f"{name}={value}" for name, value in self.options.items() if name != "seed")
        return f"{self.at:6.1f} s  {self.kind}" + (f" for {self.seconds:.1f} s" if self.seconds else "") + f" {said}"


def make_plan(seed: int, seconds: float, only: Sequence[str] = ()) -> list[Event]:
    """Each kind at least once, as far as there is time, and then by chance."""
    dice = random.Random(seed)
    kinds = {name: kind for name, kind in KINDS.items() if not only or name in only}
    deck = list(kinds)
    dice.shuffle(deck)
    gap = min(_MEAN_GAP, (seconds - 2.0) / (len(kinds) + 5))  # a short run is as dense as it must be to have them all
    events, at = [], 2.0
    while kinds and at < seconds:
        kind = deck.pop() if deck else dice.choices(list(kinds), [one.weight for one in kinds.values()])[0]
        events.append(_event(dice, kind, at))
        at += gap * dice.uniform(0.5, 1.5)
    if seconds >= LONG_RUN:
        events += [event for event in _long_ones(dice, seconds) if event.kind in kinds]
    return sorted(events, key=lambda event: event.at)


def _long_ones(dice: random.Random, seconds: float) -> list[Event]:
    """One after the other, with room between them."""
    order = dice.sample(_LONG, len(_LONG))
    share = 0.8 * seconds / len(order)
    return [
        Event((number + dice.uniform(0.1, 0.3)) * share, kind, min(long, 0.6 * share), options)
        for number, (kind, long, options) in enumerate(order)
    ]


def _event(dice: random.Random, name: str, at: float) -> Event:
    kind = KINDS[name]
    return Event(at, name, dice.uniform(kind.shortest, kind.longest), kind.options(dice))
