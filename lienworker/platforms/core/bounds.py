"""What a page may cost: pages that would hold a worker up, told before they are parsed, by counting.

Two bounds of each kind. What is over the larger one is no page for people, and fails at once. What is over the smaller
one may be a long list; it is parsed in a process with limits. Below both, the worst that a page can do takes about a
second. How deep a page is, libxml2 says while it reads it, for nothing (see `base.Page.selector`).

Also bounds for what grows faster than the page does, and memory for short texts only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import TypeVar

from lienworker.errors import HeavyPageError, PageError

T = TypeVar("T")
#: Cells of a table once its rows are as wide as its head. A head of 10,000 columns above 10,000 short rows is 60 KB.
MOST_CELLS = 2_000_000
#: Characters of what is remembered from page to page; a label is shorter.
LONGEST_REMEMBERED = 300


def too_complex(why: str) -> PageError:
    """The page's own fault, and a retry makes it no better."""
    return PageError("too_complex", why)


def check_cells(width: int, rows: int) -> None:
    """Refuses a table that would fill the memory with blanks."""
    if width * rows > MOST_CELLS:
        raise too_complex(f"a table of {width:,} columns and {rows:,} rows is more than we read")


def remember_short(maxsize: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """`lru_cache` for a function of a text, without long ones: thousands of those, kept for ever, fill the memory."""

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        remembered = lru_cache(maxsize)(function)

        @wraps(function)
        def call(text: str) -> T:
            return remembered(text) if len(text) <= LONGEST_REMEMBERED else function(text)

        return call

    return decorate


@dataclass(frozen=True, slots=True)
class Bounds:
    """Tags of HTML; lines and cells of a text; values of JSON."""

    tags: int
    lines: int
    cells: int
    values: int


#: The largest real pages that we know have 10,000 tags, or 3,300 lines of 20 cells.
PLAIN = Bounds(tags=15_000, lines=10_000, cells=100_000, values=50_000)
UNDER_LIMITS = Bounds(tags=500_000, lines=100_000, cells=2_000_000, values=2_000_000)
#: Bytes. Beyond that not even the text is looked at without limits: a byte that is no letter costs a call of Python.
MOST_PLAIN_BYTES = 600_000
#: libxml2 compares each attribute of a tag with all before it: a hundred kilobytes of them take seconds.
_MOST_ATTRIBUTES = 1_000
_LONG = 10_000
_LONG_TAG = re.compile(rf"<[a-zA-Z][^<>]{{{_LONG},}}")
_SHORTEST_TAG = len("<b>")
_TAG = re.compile("<[a-zA-Z]")
#: An attribute as libxml2 reads it, with brackets in names and, as `but` allows, in quotes; never gives back.
_ATTRIBUTE = r"""(?:[\s/]++[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"{but}]*+"|'[^'{but}]*+'|[^\s"'>][^\s>]*+)?+)?+)"""
#: A tag; its group is there if it has many attributes. Exact, and as dear as a twentieth of a parse: for long pages. In
#: shorter ones such a tag costs a few seconds at most. The look for them is a look ahead; what is passed over then is
#: what cannot hold another tag. Otherwise a name with a thousand brackets in it is read a thousand times.
_TAG_AND_ATTRIBUTES = re.compile(
    rf"<[a-zA-Z][^\s/>]*+(?=({_ATTRIBUTE.format(but='')}{{{_MOST_ATTRIBUTES}}})?+){_ATTRIBUTE.format(but='<>')}*+"
)
_LONG_PAGE = 200_000
_MANY = "the page is built to be slow: a tag has too many attributes"
_QUOTED = re.compile(r"""=\s*(?:"[^"]*"|'[^']*')""")


def _is_overloaded(tag: str) -> bool:
    """By its attributes: what stands in quotes is one value, however long (some sites keep a whole menu in one)."""
    return len(_QUOTED.sub(" ", tag).split(maxsplit=_MOST_ATTRIBUTES)) > _MOST_ATTRIBUTES


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Where no tag ends for more than ten thousand characters, found by leaps: a look at each tag is half a parse."""
    at = -1
    while at < len(text) - _LONG:
        leap = text.rfind(">", at + 1, at + _LONG + 2)
        if leap < 0:
            leap = text.find(">", at + 1)
            leap = leap if leap >= 0 else len(text)
            yield at + 1, leap
        at = leap


def long_tags(text: str) -> Iterator[str]:
    """Tags of more than ten thousand characters."""
    for start, end in _stretches(text):
        yield from _LONG_TAG.findall(text, start, end)


def check_attributes(text: str, *, under_limits: bool) -> None:
    """Raises PageError for a tag of a thousand attributes, which no page for people has."""
    for start, end in _stretches(text):
        if any(map(_is_overloaded, _LONG_TAG.findall(text, start, end))):
            raise too_complex(_MANY)
        # With brackets among its attributes it is hard to tell from a script that compares.
        tag = None if under_limits else _TAG.search(text, start, end)
        if tag and end - tag.start() > _LONG and _is_overloaded(text[tag.start() : end]):
            raise HeavyPageError("the page has what may be a tag of many attributes")
    if (under_limits or len(text) > _LONG_PAGE) and _has_many_attributes(text):
        raise too_complex(_MANY) if under_limits else HeavyPageError(_MANY)


def _has_many_attributes(text: str) -> bool:
    return any(tag.lastindex for tag in _TAG_AND_ATTRIBUTES.finditer(text))


def check_bytes(body: bytes) -> None:
    """What can be said of a page before it is decoded. Raises PageError."""
    if len(body) > MOST_PLAIN_BYTES:
        if body.count(b"<") > UNDER_LIMITS.tags:
            raise _over("tags", UNDER_LIMITS.tags)
        raise HeavyPageError(f"the page has {len(body):,} bytes")


def check_text(text: str, *, is_json: bool, under_limits: bool) -> None:
    """Raises PageError where a page has too much of anything."""
    for name, n in _count(text, is_json):
        if n > getattr(PLAIN, name):
            if n > getattr(UNDER_LIMITS, name):
                raise _over(name, getattr(UNDER_LIMITS, name))
            if not under_limits:
                raise HeavyPageError(f"the page has {n:,} {name}")


def _count(text: str, is_json: bool) -> Iterator[tuple[str, int]]:
    if is_json:
        yield "values", text.count(",") + text.count("[") + text.count("{")
    else:
        if len(text) > _SHORTEST_TAG * PLAIN.tags:
            yield "tags", text.count("<")
        if text[:64].lstrip("\ufeff \t\r\n")[:1] != "<":
            yield "cells", max(map(text.count, "\t|,;"))
            yield "lines", len(text.splitlines())


def _over(name: str, most: int) -> PageError:
    return too_complex(f"the page is built to be slow: it has more than {most:,} {name}")
