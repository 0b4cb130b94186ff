"""Elements of a page as a reader sees them: their text, their lines, their cells, a table's head and rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

from lienworker.platforms.core import clean
from lienworker.platforms.core.bounds import check_cells
from lienworker.platforms.reading import Grid
from lienworker.platforms.reading.tokens import BLOCKS, CELLS

# An lxml element; lxml has no type hints.
Element = Any
_EDGES = BLOCKS | {"br"}
_WITHIN_A_LINE = frozenset({"a", "b", "font", "span", "strong"})
#: What a browser shows no text of, or one text of many.
UNREAD = frozenset({"script", "style", "select", "template", "noscript"})


def grid_of(table: Element, about: str = "") -> Grid | None:
    """A table's head (its first row of two filled cells) and the rows below it."""
    rows = [[" ".join(lines_of(cell)) for cell in cells_of(row)] for row in table.iter("tr")]
    start = next((n for n, row in enumerate(rows) if sum(map(bool, row)) > 1), None)
    if start is None:
        return None
    width = len(rows[start])
    check_cells(width, len(rows))
    body = [(row + [""] * width)[:width] for row in rows[start + 1 :] if any(row)]
    return Grid(rows[start], body, about=about) if body else None


def cells_of(row: Element) -> list[Element]:
    """The cells of a row; comments and stray elements are none."""
    return [cell for cell in row[:] if cell.tag in CELLS]


def next_saying(label: Element) -> Element | None:
    """The element beside a label, passing over what holds no text (a picture, a help sign), but no empty cell."""
    element = label.getnext()
    while element is not None:
        if isinstance(element.tag, str):
            if _says_anything(element):
                return element
            if label.tag in CELLS:
                break
        element = element.getnext()
    return None


def _says_anything(element: Element) -> bool:
    text = element.text
    return bool(text and not text.isspace()) or (len(element) > 0 and bool(text_of(element)))


def text_of(element: Element) -> str:
    text = element.text  # lxml makes it anew each time
    if not len(element):
        return " ".join(text.split()) if text else ""
    parts = [text or ""]
    for child in element:  # a cell around a link or a few `b`: most of what is left
        if len(child):
            return " ".join(" ".join(texts_of(element)).split())
        if (tag := child.tag).__class__ is str and tag not in UNREAD:
            parts.append(child.text or "")
        parts.append(child.tail or "")
    return " ".join(" ".join(parts).split())


def texts_of(element: Element) -> Iterator[str]:
    """All texts in an element as they are, in reading order; a script, a style and a comment say nothing."""
    if next(element.iter(etree.Comment, *UNREAD), None) is None:
        yield from element.itertext()
        return
    steps = etree.iterwalk(element, events=("start", "end", "comment"))
    for event, part in steps:
        if event == "start" and part.tag in UNREAD:
            steps.skip_subtree()
        elif event == "start" and part.text:
            yield part.text
        if event != "start" and part is not element and part.tail:
            yield part.tail


def lines_of(element: Element) -> tuple[str, ...]:
    """The lines that a reader sees in an element: broken at `<br>` and at blocks."""
    if not len(element):
        plain = clean.text(element.text)
        return (plain,) if plain else ()
    if len(element) == 1 and (child := element[0]).tag in _WITHIN_A_LINE and not len(child):
        plain = clean.text(f"{element.text or ''}{child.text or ''}{child.tail or ''}")
        return (plain,) if plain else ()
    parts: list[str] = []
    _break(element, parts, 0)
    return tuple([line for part in "".join(parts).split("\n") if (line := clean.text(part))])


def _break(element: Element, parts: list[str], depth: int) -> None:
    """Adds the element's texts to the parts, with a line break wherever a reader sees one."""
    if text := element.text:
        parts.append(_flat(text))
    for child in element:
        tag = child.tag
        edge = "\n" if tag in _EDGES else ""
        parts.append(edge)
        if tag != "br" and isinstance(tag, str) and tag not in UNREAD and depth < 50:
            _break(child, parts, depth + 1)
        parts.append(edge)
        if text := child.tail:
            parts.append(_flat(text))


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
