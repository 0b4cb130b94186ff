"""Charts as plain SVG: bars of what completed and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 120


@dataclass(frozen=True, slots=True)
class Bar:
    """One span of time. Positions are in the chart's own units."""

    x: float
    width: float
    good_y: float
    good_height: float
    bad_y: float
    bad_height: float
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars, and the sums that a screen reader says instead of them."""

    bars: list[Bar]
    top: int
    completed: int
    failed: int
    words: str


def throughput(counts: Mapping[str, Mapping[int, int]], now: int, spans: int, minutes: int, words: str) -> Chart:
    """Return `spans` bars of `minutes` each, the last one holding the current minute."""
    first = now // minutes - spans + 1
    good = _binned(counts.get("completed", {}), minutes)
    bad = _binned(counts.get("failed", {}), minutes)
    for span, n in _binned(counts.get("expired", {}), minutes).items():
        bad[span] = bad.get(span, 0) + n
    chosen = range(first, first + spans)
    top = max((good.get(span, 0) + bad.get(span, 0) for span in chosen), default=0)
    bars = [
        _bar(index, spans, good.get(span, 0), bad.get(span, 0), top, (now // minutes - span) * minutes, minutes)
        for index, span in enumerate(chosen)
    ]
    return Chart(bars, top, sum(good.get(s, 0) for s in chosen), sum(bad.get(s, 0) for s in chosen), words)


def _binned(counts: Mapping[int, int], minutes: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for minute, n in counts.items():
        found[minute // minutes] = found.get(minute // minutes, 0) + n
    return found


def _bar(index: int, spans: int, good: int, bad: int, top: int, age: int, minutes: int) -> Bar:
    step = WIDTH / spans
    unit = HEIGHT / top if top else 0.0
    # Failures are on top, never too thin to be seen.
    bad_height = max(2.0, bad * unit) if bad else 0.0
    good_height = min(good * unit, HEIGHT - bad_height)
    when = "now" if age < minutes else f"{age} min ago"
    return Bar(
        round(index * step, 2), round(step * 0.84, 2),
        round(HEIGHT - good_height, 2), round(good_height, 2),
        round(HEIGHT - good_height - bad_height, 2), round(bad_height, 2),
        f"{when}: {good:,} completed, {bad:,} failed",
    )  # fmt: skip
