"""What a harvest is going to do, and where it stands: a plan for all of its pages, a cursor for the next one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Protocol

from lienworker.errors import LienworkerError, PageError

#: Of what is made of rows here; a change is a reason to read stored pages again.
VERSION = "1"
#: What is taken in one page at most, whatever the source would give.
MOST_IN_A_PAGE = 2_000
#: A page with more than this, in bytes or in values, is asked for again in smaller pieces: as objects it takes ten
#: times the memory.
MOST_BYTES = 8_000_000
MOST_VALUES = 1_000_000


class TooMuchError(LienworkerError):
    """A page with more in it than one page should have: less is to be asked for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the pages of a source are asked for and read. It is stored as JSON."""

    kind: str
    #: Of the layer or the resource, without a query; the name of a file.
    url: str
    platform: str
    #: The names of the columns in their order, and of those the ones that hold dates as milliseconds.
    columns: tuple[str, ...]
    dates: tuple[str, ...] = ()
    #: What the operator chose: canonical name to column.
    chosen: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    limit: int | None = None
    #: Parcels in a page.
    size: int = MOST_IN_A_PAGE
    #: The column that orders the rows.
    id_column: str = ""
    #: Ids from and to, a page each, where the source cannot skip rows.
    ranges: tuple[tuple[int, int], ...] = ()
    #: When the source was last changed, in its own words.
    edited: str | None = None
    announced: int | None = None
    delimiter: str = ","

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        said = json.loads(text)
        known = {item.name for item in fields(cls)}
        kept = {name: value for name, value in said.items() if name in known}
        kept |= {name: tuple(kept[name]) for name in ("columns", "dates")}
        kept["ranges"] = tuple((low, high) for low, high in kept["ranges"])
        return cls(**kept)

    @property
    def expected(self) -> int | None:
        """How many parcels will be read, as far as the source says."""
        if self.announced is None or self.limit is None:
            return self.announced
        return min(self.announced, self.limit)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place in a source where a page begins. It is stored with the page's task."""

    #: Which page it is, counted from 1.
    number: int = 1
    #: How many rows to skip; in a source that is read by ranges of ids, which range.
    at: int = 0
    size: int = MOST_IN_A_PAGE
    #: The piece of its range that this page asks for.
    low: int | None = None
    high: int | None = None
    #: Rows of the pages before it, and the last id in them.
    read: int = 0
    last_id: int | None = None
    #: The last request asks whether the source was changed meanwhile.
    is_check: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Cursor:
        return cls(**said)


@dataclass(frozen=True, slots=True)
class SourcePage:
    """What a page has: rows to make parcels of, what a person should know, and where the next page begins."""

    rows: Sequence[Any] = ()
    next: Cursor | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One address to ask, with a secret in its headers."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class SourceKind(Protocol):
    """A kind of source: how its pages are asked for, and how they are read. Pure."""

    def request(self, plan: Plan, cursor: Cursor, secret: str | None) -> Request: ...

    def read(self, plan: Plan, cursor: Cursor, body: bytes) -> SourcePage: ...

    def values(self, plan: Plan, row: Any) -> dict[str, Any]:
        """Return a row's values by column."""

    def geometry(self, plan: Plan, row: Any) -> dict[str, Any]:
        """Return what a row says of its shape, under canonical names."""

    def address(self, plan: Plan, row: Any, parcel_id: str) -> str:
        """Return an address by which a person finds the row."""


def loaded(body: bytes) -> Any:
    """Return the JSON of a page; raise TooMuchError for one that would fill the memory."""
    if len(body) > MOST_BYTES or body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_VALUES:
        raise TooMuchError(f"the page has {len(body):,} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise PageError("not_a_source", "the answer should be JSON and is not", retryable=True) from None


def smaller(plan: Plan, cursor: Cursor) -> Cursor:
    """Return the cursor of the same place that asks for half as much; raise PageError where that is nothing."""
    if plan.ranges:
        low, high = window(plan, cursor)
        if low == high:
            raise PageError("too_complex", f"the row {low} alone has more in it than we read")
        return replace(cursor, number=cursor.number + 1, low=low, high=(low + high) // 2)
    if cursor.size <= 1:
        raise PageError("too_complex", f"the row at {cursor.at:,} alone has more in it than we read")
    return replace(cursor, number=cursor.number + 1, size=cursor.size // 2)


def window(plan: Plan, cursor: Cursor) -> tuple[int, int]:
    """Return the ids, from and to, that a page of a range asks for."""
    low, high = plan.ranges[cursor.at]
    return cursor.low if cursor.low is not None else low, cursor.high if cursor.high is not None else high


def following(plan: Plan, cursor: Cursor, n: int, last_id: int | None, *, has_more: bool) -> Cursor | None:
    """Return where the page after one with `n` rows begins; None where it was the last."""
    read = cursor.read + n
    after = replace(cursor, number=cursor.number + 1, read=read, last_id=last_id or cursor.last_id)
    if plan.limit is not None and read >= plan.limit:
        return _check(plan, after)
    left = plan.size if plan.limit is None else min(plan.size, plan.limit - read)
    if not plan.ranges:
        return replace(after, at=cursor.at + n, size=min(cursor.size, left)) if has_more and n else _check(plan, after)
    high = window(plan, cursor)[1]
    if high < plan.ranges[cursor.at][1]:
        return replace(after, low=high + 1, high=None)
    if cursor.at + 1 < len(plan.ranges):
        return replace(after, at=cursor.at + 1, low=None, high=None)
    return _check(plan, after)


def _check(plan: Plan, cursor: Cursor) -> Cursor | None:
    return replace(cursor, is_check=True) if plan.edited else None


def count_note(plan: Plan, cursor: Cursor, n: int, following: Cursor | None) -> tuple[str, ...]:
    """Say, at the end, where a source gave another number of rows than it had announced."""
    is_end = following is None or following.is_check
    read = cursor.read + n
    if not is_end or plan.expected is None or read == plan.expected:
        return ()
    said = f"It announced {plan.expected:,} parcels and gave {read:,}"
    return (f"{said}: it was changed while it was read. Harvest it again.",)


def edit_note(plan: Plan, edited: str | None) -> tuple[str, ...]:
    """Say where a source was edited since the harvest began."""
    if edited == plan.edited:
        return ()
    return ("It was edited while it was read: parcels may be missing or out of date. Harvest it again.",)
