"""What a file of parcels is read into: rows, and the rows that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

RAW_LIMIT = 2_000


@dataclass(slots=True)
class ParcelRow:
    """One usable row: an address, or a platform and a parcel id from which one can be built.

    Treat it as frozen. It is not, because a million rows pay 1 µs each for it, a third of what reading one costs.
    """

    line: int
    url: str | None
    platform: str | None
    state: str | None
    county: str | None
    parcel_id: str | None
    queue: str | None
    priority: int | None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reject:
    """One row that cannot be used. `reason` is a stable word to filter by, `detail` the sentence for people."""

    line: int
    reason: str
    detail: str
    raw: str


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a row gets where the file says nothing."""

    platform: str | None = None
    state: str | None = None
    county: str | None = None
    queue: str | None = None
    priority: int | None = None


class BadRowError(Exception):
    """Inside the intake only: becomes a `Reject` as soon as the reader adds its line and text."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

    def at(self, line: int, raw: str) -> Reject:
        return Reject(line, self.reason, self.detail, tidy(raw))


def tidy(raw: str) -> str:
    """The text cut to a bearable length, and free of the half characters that no file or database takes."""
    cut = raw[:RAW_LIMIT]
    return cut if cut.isascii() else cut.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
