"""What areas and values are usual in a county, and whether a record's are.

Areas and values of a county spread over several powers of ten, evenly above and below their middle, so they are
compared by their logarithms. A hundred pages say what is usual; what lies six deviations off, and at least a thousand
times the middle or a thousandth of it, is rarely a parcel and often a unit or a decimal point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lienworker.store.history import Place, ranges_of

if TYPE_CHECKING:
    from lienworker.platforms.core.doubts import Doubt

#: Of each field: how many pages had it, the mean of their logarithms, and the sum of the squares around it.
Ranges = dict[str, list[float]]
WATCHED = (
    "acres", "land_area_sqft", "building_area_sqft", "land_value", "building_value", "market_value", "assessed_value",
    "tax_amount",
)  # fmt: skip
ENOUGH = 100
_FAR = 6.0
#: A county of equal lots has nearly no deviation, and a farm among them is no reason to doubt.
_LEAST_DEVIATION = 0.5
#: Pages after which the past counts half.
_LONG = 2000


def sizes_of(record: Mapping[str, Any]) -> dict[str, float]:
    """The logarithms of what is watched; nothing and less than nothing have none."""
    return {
        name: math.log10(value)
        for name in WATCHED
        if isinstance(value := record.get(name), int | float) and value > 0 and not isinstance(value, bool)
    }


def out_of_range(ranges: Ranges, record: Mapping[str, Any]) -> list[Doubt]:
    """Doubts about what is unlike the county's other parcels; none while too few of them are known."""
    from lienworker.platforms.core.doubts import Doubt  # and all platforms with it: `status` needs none

    return [
        Doubt("out_of_range", name, f"{record[name]:g}, where {10 ** ranges[name][1]:.3g} is usual")
        for name, size in sizes_of(record).items()
        if name in ranges and _is_far(size, *ranges[name])
    ]


def _is_far(size: float, n: float, mean: float, squares: float) -> bool:
    deviation = max(math.sqrt(squares / n), _LEAST_DEVIATION) if n >= ENOUGH else math.inf
    return abs(size - mean) > _FAR * deviation


def take_in(ranges: Ranges, sizes: Mapping[str, float]) -> None:
    """One more page. By Welford's way: no value is kept, and nothing cancels out."""
    for name, size in sizes.items():
        n, mean, squares = ranges.get(name, [0.0, 0.0, 0.0])
        if n >= _LONG:
            n, squares = n / 2, squares / 2
        n += 1
        gap = size - mean
        mean += gap / n
        ranges[name] = [n, mean, squares + gap * (size - mean)]


class UsualSizes:
    """How large areas and values are in the counties of a group; each is asked for once."""

    def __init__(self) -> None:
        self._known: dict[Place, Ranges] = {}

    def __getitem__(self, place: Place) -> Ranges:
        if place not in self._known:
            self._known[place] = ranges_of(place)
        return self._known[place]
