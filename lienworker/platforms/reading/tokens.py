"""A page as the sequence of its texts, in reading order, each with its place in the tree.

One walk over the tree, without recursion: county pages nest tables deeply, and hostile ones deeper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from parsel import Selector

from lienworker.platforms import clean
from lienworker.platforms.reading.labels import looks_like_label, split_labels

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
_FOOTNOTE = re.compile(r"\*+\s*\w{0,12}")
_LABEL_CLASS = re.compile(r"(?:label|lbl|fieldname|field-name)(?:$|[\s_-])|\b(?:term|key)\b", re.I)
_HEADING_CLASS = re.compile(r"heading(?:$|[\s_-])", re.I)
_BADGE = re.compile(r"\blabel-(?:default|primary|success|info|warning|danger)\b")
_TITLES = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "legend", "caption"})
_TITLE_CLASS = re.compile(r"head(?:er|ing)|title", re.I)
_BUTTONS = frozenset({"button", "submit", "image", "reset", "hidden"})


@dataclass(slots=True)
class Token:
    """A run of text, or the place of a form field that somebody is meant to fill in (`barrier`)."""

    text: str
    element: Element
    line: int
    label: bool = False
    barrier: bool = False
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

    def walk(self, root: Element) -> None:
        stack: list[tuple[Element, bool]] = [(root, False)]
        while stack:
            element, leaving = stack.pop()
            if leaving:
                self._leave(element)
                continue
            stack.append((element, True))
            if self._enter(element):
                stack.extend((child, False) for child in reversed(element))

    def _enter(self, element: Element) -> bool:
        """Takes the element's own text; says whether its children are to be read."""
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED or _hidden(element):
            return False
        if tag in BLOCKS or tag == "br":
            self.line += 1
        if tag in ("input", "textarea"):
            self._field(element)
            return False
        self._add(element.text, element)
        return True

    def _leave(self, element: Element) -> None:
        if element.tag in BLOCKS:
            self.line += 1
        parent = element.getparent()
        if parent is not None:
            self._add(element.tail, parent)

    def _add(self, raw: str | None, element: Element) -> None:
        if not raw or raw.isspace():
            return
        text = clean.text(raw)
        # A star, a dash or a footnote mark is decoration; it neither labels nor says anything.
        if not text or _FOOTNOTE.fullmatch(text) or not any(map(str.isalnum, text)):
            return
        for part in split_labels(text):
            token = Token(part, element, self.line, label=_is_label(part, element), title=_is_title(part, element))
            self.tokens.append(token)

    def _field(self, element: Element) -> None:
        if (element.get("type") or "").lower() in _BUTTONS:
            return
        shown = element.get("value") or element.text
        if element.get("readonly") is not None or element.get("disabled") is not None:
            self._add(shown, element)
        else:
            self.tokens.append(Token("", element, self.line, barrier=True))


def cell_of(element: Element) -> Element | None:
    """The table cell that an element stands in."""
    return element if element.tag in CELLS else next(element.iterancestors("td", "th"), None)


def _is_label(text: str, element: Element) -> bool:
    if looks_like_label(text):
        return True
    tag = element.tag
    if tag in ("label", "dt"):
        return len(text) <= 80
    if tag == "th":
        following = element.getnext()
        return following is not None and following.tag == "td" and len(text) <= 80
    marks = element.get("class")
    if not marks or len(text) > 80 or _BADGE.search(marks):
        return False
    return bool(_LABEL_CLASS.search(marks) or (tag in CELLS and _HEADING_CLASS.search(marks)))


def _is_title(text: str, element: Element) -> bool:
    if len(text) > 80:
        return False
    return element.tag in _TITLES or bool(_TITLE_CLASS.search(element.get("class") or ""))


def _hidden(element: Element) -> bool:
    style = element.get("style")
    # Tabs are hidden with display:none on blocks that hold much; a single hidden span or input is a trick.
    return bool(style and element.tag in ("span", "input") and "display:none" in style.replace(" ", "").lower())
