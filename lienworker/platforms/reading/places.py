"""Where the texts of a page stand to each other in its tree, worked out in one walk over the texts.

Texts come in reading order, so the ways from each to the next cover every branch of the tree at most twice. Asking the
tree again for each label (all that is around it, all that is in its row) costs its depth each time: many seconds on a
hostile page of 30 KB.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from lienworker.platforms.reading.tokens import BLOCKS, Element, Token


class Meeting(NamedTuple):
    """The lowest element around a label and the text after it, and its children that hold them (None: itself)."""

    home: Element
    label_child: Element | None
    value_child: Element | None


class Places:
    """Depths in the tree, by the place of a text in the list. The root has the depth 0."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.depth: list[int] = []
        self.shared: list[int] = []
        """How deep the lowest element is that is around both this text and the one before it."""
        self.block: list[int] = []
        """How deep the nearest block around this text is."""
        self.meetings: dict[int, Meeting] = {}
        """Of each label with the text after it, by the label's place."""
        self._walk()

    def _walk(self) -> None:
        path: list[Element] = []
        blocks: list[int] = []
        depth_of: dict[Element, int] = {}
        for at, token in enumerate(self._tokens):
            branch = []
            element = token.element
            while element is not None and element not in depth_of:
                branch.append(element)
                element = element.getparent()
            shared = -1 if element is None else depth_of[element]
            left = path[shared + 1 :]
            if at and self._tokens[at - 1].label:
                meeting = Meeting(element, left[0] if left else None, branch[-1] if branch else None)
                self.meetings[at - 1] = meeting
            for gone in left:
                del depth_of[gone]
            del path[shared + 1 :], blocks[shared + 1 :]
            depth, block = shared, blocks[-1] if blocks else -1
            for element in reversed(branch):
                depth += 1
                depth_of[element] = depth
                if element.tag in BLOCKS:
                    block = depth
                blocks.append(block)
                path.append(element)
            self.depth.append(depth)
            self.shared.append(shared)
            self.block.append(blocks[-1])

    def is_inside(self, at: int, element: Element, depth: int) -> bool:
        """Whether a text stands in an element of that depth."""
        if at >= len(self._tokens):
            return False
        above = self._tokens[at].element
        for _ in range(self.depth[at] - depth):
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
