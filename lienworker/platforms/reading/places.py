"""Where the texts of a page stand to each other in its tree.

How deep each text is, and what it shares with the one before it, is known from the walk over the page. Texts come in
reading order, so the ways from each to the next cover every branch of the tree at most twice. Asking the tree again for
each label (all that is around it, all that is in its row) would cost its depth each time: many seconds on a hostile
page of 30 KB.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from lienworker.platforms.reading.tokens import Element, Token


class Meeting(NamedTuple):
    """The lowest element around a label and the text after it, and its children that hold them (None: itself)."""

    home: Element
    label_child: Element | None
    value_child: Element | None


class Places:
    """Depths in the tree, by the place of a text in the list. The root has the depth 0."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.shared = [token.shared for token in tokens]
        """How deep the lowest element is that is around both this text and the one before it."""

    def meeting(self, at: int) -> Meeting:
        """Where the text at this place and the one after it meet."""
        label, value = self._tokens[at], self._tokens[at + 1]
        shared = value.shared
        label_child = _above(label.element, label.depth - shared - 1)
        value_child = _above(value.element, value.depth - shared - 1)
        home = label.element if label_child is None else label_child.getparent()
        return Meeting(home, label_child, value_child)

    def is_inside(self, at: int, element: Element, depth: int) -> bool:
        """Whether a text stands in an element of that depth."""
        if at >= len(self._tokens):
            return False
        above = self._tokens[at].element
        for _ in range(self._tokens[at].depth - depth):
            above = above.getparent()
        return above is element

    def end_of(self, at: int, depth: int) -> int | None:
        """The first text after the element of that depth which the text `at` stands in; None at the page's end."""
        shared, after = self.shared, at + 1
        while after < len(shared) and shared[after] >= depth:
            after = self._drops[after]
        return after if after < len(shared) else None

    @cached_property
    def _drops(self) -> list[int]:
        """For each text the next one that shares less with the one before it; so a whole row is passed in a step."""
        drops = [len(self.shared)] * len(self.shared)
        open_ones: list[int] = []
        for at, shared in enumerate(self.shared):
            while open_ones and self.shared[open_ones[-1]] > shared:
                drops[open_ones.pop()] = at
            open_ones.append(at)
        return drops


def _above(element: Element, steps: int) -> Element | None:
    """The element so many steps above; None for less than none."""
    if steps < 0:
        return None
    for _ in range(steps):
        element = element.getparent()
    return element
