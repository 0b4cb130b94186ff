"""A page as the sequence of its texts, in reading order, each with its place in the tree.

One walk over the tree, by lxml itself and so without recursion: county pages nest tables deeply, hostile ones deeper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lxml import etree  # type: ignore[import-untyped]
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
_FIELDS = frozenset({"input", "textarea"})
_FOOTNOTE = re.compile(r"\*+\s*\w{0,12}")
_LABEL_CLASS = re.compile(r"(?:label|lbl|fieldname|field-name)(?:$|[\s_-])|\b(?:term|key)\b", re.I)
_HEADING_CLASS = re.compile(r"heading(?:$|[\s_-])", re.I)
_BADGE = re.compile(r"\blabel-(?:default|primary|success|info|warning|danger)\b")
_TITLES = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "legend", "caption"})
_TITLE_CLASS = re.compile(r"head(?:er|ing)|title", re.I)
#: Characters; a longer text is neither named by its tag nor by its class.
_LONGEST_MARKED = 80
_INLINE = frozenset({"span", "font", "b", "strong", "i", "em", "u"})
_IN_CELL = "(cell) "
_BUTTONS = frozenset({"button", "submit", "image", "reset", "hidden"})


@dataclass(slots=True)
class Token:
    """A run of text, or the place of a form field that somebody is meant to fill in (`barrier`)."""

    text: str
    element: Element
    line: int
    cell: Element | None = None
    """The table cell that it stands in."""
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
        self.cells: list[Element | None] = [None]

    def walk(self, root: Element) -> None:
        steps = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in steps:
            if event == "start":
                if not self._enter(element):
                    steps.skip_subtree()
                continue
            if event == "end":
                self._leave(element.tag)
            tail = element.tail
            if tail and not tail.isspace() and element is not root:
                self._add(tail, element.getparent())

    def _enter(self, element: Element) -> bool:
        """Takes the element's own text; says whether its children are to be read."""
        tag = element.tag
        if tag in BLOCKS:
            self.line += 1
            if tag in CELLS:
                self.cells.append(element)
        elif tag in _SKIPPED or _hidden(element, tag):
            return False
        elif tag in _FIELDS:
            self._field(element)
            return False
        elif tag == "br":
            self.line += 1
        text = element.text
        if text and not text.isspace():
            self._add(text, element)
        return True

    def _leave(self, tag: str) -> None:
        if tag in BLOCKS:
            self.line += 1
            if tag in CELLS:
                self.cells.pop()

    def _add(self, raw: str, element: Element) -> None:
        text = clean.text(raw)
        # A star, a dash or a footnote mark is decoration; it neither labels nor says anything.
        if not text or not (text[0].isalnum() or _says_something(text)):
            return
        for part in split_labels(text) if ":" in text else (text,):
            label, title = _role(part, element)
            self.tokens.append(Token(part, element, self.line, self.cells[-1], label, False, title))

    def _field(self, element: Element) -> None:
        if (element.get("type") or "").lower() in _BUTTONS:
            return
        shown = element.get("value") or element.text
        if element.get("readonly") is None and element.get("disabled") is None:
            self.tokens.append(Token("", element, self.line, self.cells[-1], barrier=True))
        elif shown:
            self._add(shown, element)


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text)) and not (text[0] == "*" and _FOOTNOTE.fullmatch(text))


def _role(text: str, element: Element) -> tuple[bool, bool]:
    """Whether a text is a label, and whether it is a title."""
    is_short = len(text) <= _LONGEST_MARKED
    marks = _marks_of(element) if is_short else None
    label_class, cell_class, title_class = _said_by(marks) if marks else (False, False, False)
    tag = element.tag
    is_title = is_short and (title_class or tag in _TITLES)
    if looks_like_label(text):
        return True, is_title
    if not is_short:
        return False, False
    if tag == "th":
        following = element.getnext()
        return (following is not None and following.tag == "td"), is_title
    return (tag in ("label", "dt") or label_class or cell_class), is_title


def _marks_of(element: Element) -> str | None:
    """The classes of the element, or of the cell that holds nothing but this text in a `font` or a `span`."""
    marks: str | None = element.get("class")
    while marks is None and element.tag in _INLINE:
        parent = element.getparent()
        if len(parent) != 1 or (parent.text and not parent.text.isspace()):
            break
        element, marks = parent, parent.get("class")
    # A cell is called a heading where it names what stands beside it; elsewhere that word means a title.
    return f"{_IN_CELL}{marks}" if marks and element.tag in CELLS else marks


@lru_cache(maxsize=1024)
def _said_by(marks: str) -> tuple[bool, bool, bool]:
    """What the classes of an element say of its text: a label, a label if it is a cell's, a title."""
    is_badge = bool(_BADGE.search(marks))
    label = bool(_LABEL_CLASS.search(marks))
    cell = marks.startswith(_IN_CELL) and bool(_HEADING_CLASS.search(marks))
    return label and not is_badge, cell and not is_badge, bool(_TITLE_CLASS.search(marks))


def _hidden(element: Element, tag: str) -> bool:
    # Tabs are hidden with display:none on blocks that hold much; a single hidden span or input is a trick.
    if tag not in ("span", "input"):
        return False
    style = element.get("style")
    return bool(style and "display:none" in style.replace(" ", "").lower())
