"""Elements of a page as a reader sees them: their text, their lines, their cells, a table's head and rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lienworker.platforms import clean
from lienworker.platforms.reading import Grid
from lienworker.platforms.reading.tokens import BLOCKS, CELLS

# An lxml element; lxml has no type hints.
Element = Any


def grid_of(table: Element, about: str = "") -> Grid | None:
    """A table's head (its first row of two filled cells) and the rows below it."""
    rows = [[" ".join(lines_of(cell)) for cell in cells_of(row)] for row in table.iter("tr")]
    start = next((n for n, row in enumerate(rows) if sum(map(bool, row)) > 1), None)
    if start is None:
        return None
    width = len(rows[start])
    body = [(row + [""] * width)[:width] for row in rows[start + 1 :] if any(row)]
    return Grid(rows[start], body, about=about) if body else None


def cells_of(row: Element) -> list[Element]:
    """The cells of a row; comments and stray elements are none."""
    return [cell for cell in row if cell.tag in CELLS]


def next_saying(label: Element) -> Element | None:
    """The element beside a label, passing over what holds no text (a picture, a help sign), but no empty cell."""
    for element in label.itersiblings("*"):
        if text_of(element):
            return element
        if label.tag in CELLS:
            break
    return None


def text_of(element: Element) -> str:
    return " ".join(" ".join(element.itertext("*")).split()) if len(element) else " ".join((element.text or "").split())


def lines_of(element: Element) -> tuple[str, ...]:
    """The lines that a reader sees in an element: broken at `<br>` and at blocks."""
    if not len(element):
        plain = clean.text(element.text)
        return (plain,) if plain else ()
    broken = "".join(_broken(element, 0))
    return tuple(line for part in broken.split("\n") if (line := clean.text(part)))


def _broken(element: Element, depth: int) -> Iterator[str]:
    if element.text:
        yield _flat(element.text)
    for child in element:
        edge = "\n" if child.tag in BLOCKS or child.tag == "br" else ""
        yield edge
        if isinstance(child.tag, str) and child.tag not in ("script", "style", "select") and depth < 50:
            yield from _broken(child, depth + 1)
        yield edge
        if child.tail:
            yield _flat(child.tail)


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
