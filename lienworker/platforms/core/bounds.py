"""What a page may come to: bounds for what grows faster than the page does, and memory for short texts only."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from lienworker.errors import PageError

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
