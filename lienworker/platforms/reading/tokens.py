"""A page as the sequence of its texts, in reading order, each with its place in the tree.

One walk over the tree, by lxml itself and so without recursion: county pages nest tables deeply, hostile ones deeper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lxml import etree  # type: ignore[import-untyped]
from parsel import Selector

from lienworker.platforms.core import clean
from lienworker.platforms.reading.labels import split_labels

# An lxml element; lxml has no type hints.
Element = Any

_BLOCK_TAGS = (
    "address article aside blockquote body caption center dd div dl dt fieldset footer form h1 h2 h3 h4 h5 h6 "
    "header hr legend li main nav ol p pre section table tbody td tfoot th thead tr ul"
)
_SKIPPED_TAGS = "button canvas head iframe map noscript object option script select style svg template"
BLOCKS = frozenset(_BLOCK_TAGS.split())
CELLS = frozenset({"td", "th"})
_SKIPPED = frozenset(_SKIPPED_TAGS.split())
_FIELDS = frozenset({"input", "textarea"})
_MEANT = _SKIPPED | _FIELDS | {"br", "span"}
_FOOTNOTE = re.compile(r"\*+\s*\w{0,12}")
_LABEL_LINE = re.compile(r":[ \t\r]*\n")
_BUTTONS = frozenset({"button", "submit", "image", "reset", "hidden"})


@dataclass(slots=True)
class Token:
    """A run of text, or the place of a form field that somebody is meant to fill in (`barrier`)."""

    text: str
    element: Element
    line: int
    cell: Element | None
    """The table cell that it stands in."""
    depth: int
    """How deep its element is in the tree; the root has the depth 0."""
    shared: int
    """How deep the lowest element is that is around both this text and the one before it; -1 for the first text."""
    block: int
    """How deep the nearest block around this text is; -1 where there is none."""
    barrier: bool = False
    label: bool = False
    """This and `title` are worked out where they are needed, by `roles`."""
    title: bool = False


def tokens_of(page: Selector) -> list[Token]:
    """All visible texts of the page."""
    walker = _Walker()
    walker.walk(page.root)
    return walker.tokens


class _Walker:
    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.line = 0
        self.cells: list[Element | None] = [None]
        self.depth = -1
        self.blocks = [-1]
        self.lowest = -1
        """How deep the lowest element is that was left since the last text."""

    def walk(self, root: Element) -> None:
        steps = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in steps:
            if event == "start":
                self.depth += 1
                tag = element.tag
                # Most tags are blocks or plain; only the others that mean something here are worth a call.
                if tag in BLOCKS:
                    self.line += 1
                    self.blocks.append(self.depth)
                    if tag in CELLS:
                        self.cells.append(element)
                elif tag in _MEANT and not self._enter(element, tag):
                    steps.skip_subtree()
                    continue
                if (text := element.text) and not text.isspace():
                    self._add(text, element)
                continue
            if event == "end":
                self._leave(element.tag)
            tail = element.tail
            if tail and not tail.isspace() and element is not root:
                self._add(tail, element.getparent())

    def _enter(self, element: Element, tag: str) -> bool:
        """Says whether the element's text and its children are to be read."""
        if tag == "br":
            self.line += 1
        elif tag in _SKIPPED or _hidden(element, tag):
            return False
        elif tag in _FIELDS:
            self._field(element)
            return False
        return True

    def _leave(self, tag: str) -> None:
        self.depth = above = self.depth - 1
        if above < self.lowest:
            self.lowest = above
        if tag in BLOCKS:
            self.line += 1
            self.blocks.pop()
            if tag in CELLS:
                self.cells.pop()

    def _add(self, raw: str, element: Element) -> None:
        text = " ".join(raw.split()) if raw.isascii() and "&" not in raw else clean.text(raw)
        # A star, a dash or a footnote mark is decoration; it neither labels nor says anything.
        if not text or not (text[0].isalnum() or _says_something(text)):
            return
        if ":" not in text:
            self._append(text, element)
            return
        if len(_LABEL_LINE.findall(raw)) > 1:  # text as it was typed: a label in its line, its value in the next
            for line in filter(None, map(clean.text, raw.splitlines())):
                self.line += 1
                self._append(line, element)
            return
        for part in split_labels(text):
            self._append(part, element)

    def _append(self, text: str, element: Element, *, barrier: bool = False) -> None:
        token = Token(text, element, self.line, self.cells[-1], self.depth, self.lowest, self.blocks[-1], barrier)
        self.tokens.append(token)
        self.lowest = self.depth

    def _field(self, element: Element) -> None:
        if (element.get("type") or "").lower() in _BUTTONS:
            return
        shown = element.get("value") or element.text
        if element.get("readonly") is None and element.get("disabled") is None:
            self._append("", element, barrier=True)
        elif shown:
            self._add(shown, element)


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text)) and not (text[0] == "*" and _FOOTNOTE.fullmatch(text))


def _hidden(element: Element, tag: str) -> bool:
    # Tabs are hidden with display:none on blocks that hold much; a single hidden span or input is a trick.
    if tag not in ("span", "input"):
        return False
    style = element.get("style")
    return bool(style and "display:none" in style.replace(" ", "").lower())
