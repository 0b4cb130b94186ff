"""Which texts of a page are labels, and which are titles: by their words, their tags and their classes.

Asked only of the texts that no grid took: most texts of a county page stand in tables, and need no role there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lienworker.platforms.core.bounds import remember_short
from lienworker.platforms.reading.labels import looks_like_label
from lienworker.platforms.reading.tokens import CELLS, Element, Token

_LABEL_CLASS = re.compile(r"(?:label|lbl|fieldname|field-name)(?:$|[\s_-])|\b(?:term|key)\b", re.I)
_HEADING_CLASS = re.compile(r"heading(?:$|[\s_-])", re.I)
_BADGE = re.compile(r"\blabel-(?:default|primary|success|info|warning|danger)\b")
_TITLES = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "legend", "caption"})
_TITLE_CLASS = re.compile(r"head(?:er|ing)|title", re.I)
# `2023 Certified Values`, `Tax Year 2024`: what stands below it is of that year.
_YEAR_TITLE = re.compile(
    r"(?:tax|roll|assessment) year (?:19|20)\d\d|(?:19|20)\d\d(?:[ -]+(?:certified|working|preliminary|proposed|final"
    r"|tax|trim|roll|assessments?|values?|taxes|bill|valuation|in progress|appraised|assessed|market)){1,4}",
    re.I,
)
_CENTURIES = frozenset({"19", "20"})
#: Characters; a longer text is neither named by its tag nor by its class.
_LONGEST_MARKED = 80
_INLINE = frozenset({"span", "font", "b", "strong", "i", "em", "u"})
_IN_CELL = "(cell) "


def mark_roles(tokens: Iterable[Token]) -> None:
    """Says of each token whether it is a label, and whether it is a title."""
    known: dict[Element, str | None] = {}
    for token in tokens:
        if not token.barrier:
            token.label, token.title = _role(token.text, token.element, known)


def _role(text: str, element: Element, known: dict[Element, str | None]) -> tuple[bool, bool]:
    """Whether a text is a label, and whether it is a title."""
    is_short = len(text) <= _LONGEST_MARKED
    marks = _marks_of(element, known) if is_short else None
    label_class, cell_class, title_class = _said_by(marks) if marks else (False, False, False)
    tag = element.tag
    is_title = is_short and (title_class or tag in _TITLES or _names_a_year(text))
    if looks_like_label(text):
        return True, is_title
    if not is_short:
        return False, False
    if tag == "th":
        following = element.getnext()
        return (following is not None and following.tag == "td"), is_title
    return (tag in ("label", "dt") or label_class or cell_class), is_title


def _names_a_year(text: str) -> bool:
    return (text[:2] in _CENTURIES or text[-4:-2] in _CENTURIES) and _YEAR_TITLE.fullmatch(text) is not None


def _marks_of(element: Element, known: dict[Element, str | None]) -> str | None:
    """The classes of the element, or of the cell that holds nothing but this text in a `font` or a `span`.

    What was found for an element is kept in `known`: texts at each level of a deep nest would climb it again and again.
    """
    climbed: list[Element] = []
    marks: str | None = element.get("class")
    while marks is None and element.tag in _INLINE and element not in known:
        parent = element.getparent()
        # Not by `len(parent)`, which counts all the children there are.
        if element.getnext() is not None or element.getprevious() is not None or _says_something(parent):
            break
        climbed.append(element)
        element, marks = parent, parent.get("class")
    if element in known:
        marks = known[element]
    elif marks and element.tag in CELLS:
        # A cell is called a heading where it names what stands beside it; elsewhere that word means a title.
        marks = f"{_IN_CELL}{marks}"
    if climbed:
        known.update(dict.fromkeys(climbed, marks))
    return marks


def _says_something(parent: Element | None) -> bool:
    return parent is None or bool(parent.text and not parent.text.isspace())


@remember_short(1024)
def _said_by(marks: str) -> tuple[bool, bool, bool]:
    """What the classes of an element say of its text: a label, a label if it is a cell's, a title."""
    is_badge = bool(_BADGE.search(marks))
    label = bool(_LABEL_CLASS.search(marks))
    cell = marks.startswith(_IN_CELL) and bool(_HEADING_CLASS.search(marks))
    return label and not is_badge, cell and not is_badge, bool(_TITLE_CLASS.search(marks))
