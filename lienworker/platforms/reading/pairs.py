"""Labels and their values, found by where they stand, not by what a site calls its tags.

A label's value is the text that a reader would take for it: what follows in the same line, or what is alone in
the next cell, block or definition. Where a label is followed by another label or an empty cell, it has no value.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from lienworker.platforms.core import clean
from lienworker.platforms.core.bounds import remember_short
from lienworker.platforms.reading.labels import FIELD_OF, ID_RANK, MAX_LABEL, is_known, meaning, normalise
from lienworker.platforms.reading.places import Places
from lienworker.platforms.reading.roles import mark_roles
from lienworker.platforms.reading.tokens import BLOCKS, CELLS, Element, Token

_ROW_GROUPS = frozenset({"table", "tbody", "thead", "tfoot"})
_WIDE = frozenset({"body", "form", "main", "html"})
_BLOCK_FIELDS = frozenset({"owner_name", "owner_address"})
_MAX_LINES = 12
_NAMED_BY_ID = frozenset({"owner_name", "parcel_id", "property_address"})
# `lblOwnerName`, `txtParcelId`; what a list of sales or a header calls so is not the parcel's.
_ID_PREFIX = re.compile(r"^(?:lbl|txt|spn|span|lit|lnk|hl|td|div)(?=[A-Z])|\d+$")
_OF_ANOTHER = re.compile(r"sale|prev|prior|hist|grant|head|title|search|menu|nav|mail|link|btn|result|compar", re.I)
_SIGNS = frozenset({"+", "-", "=", "$", ":"})


class Pair(NamedTuple):
    """A label as shown and the lines of its value. A tuple, for a frozen dataclass takes thrice as long to make."""

    label: str
    lines: tuple[str, ...]
    section: str = ""
    """The title that it stands under, where one is to be seen."""
    first: str = ""
    """The first text of the value, where its first line goes on with others."""

    @property
    def value(self) -> str:
        return self.lines[0] if len(self.lines) == 1 else " ".join(self.lines)


def pairs_of(tokens: list[Token]) -> list[Pair]:
    """All pairs of the tokens, in reading order."""
    mark_roles(tokens)
    _mark_label_columns(tokens)
    return list(_pairs(tokens))


def named_by_id(tokens: list[Token], pairs: list[Pair]) -> list[Pair]:
    """What an element's own id names (`…_lblOwnerName`), of the fields that no label of the page has."""
    known = {_id_field(meaning(pair.label)) for pair in pairs}
    found: dict[str, Pair] = {}
    for token in tokens if not known >= _NAMED_BY_ID else ():
        place = token.element.get("id")
        if place and not token.barrier and not token.label:
            word, name = _named_in(place)
            if name in _NAMED_BY_ID and name not in known and not is_known(token.text):
                if name in found and name == "owner_name":
                    found[f"{name} {len(found)}"] = Pair("co owner", (token.text,))
                found.setdefault(name, Pair(word, (token.text,)))
    return list(found.values())


@remember_short(4096)
def _named_in(place: str) -> tuple[str, str]:
    """The words at the end of an element's id, and the field that they name. A county's pages have the same ids."""
    if _OF_ANOTHER.search(place):
        return "", ""
    word = normalise(_ID_PREFIX.sub("", place.rpartition("_")[2]))
    return word, _id_field(word)


def _id_field(word: str) -> str:
    return "parcel_id" if word in ID_RANK else FIELD_OF.get(word, "")


def _pairs(tokens: list[Token]) -> Iterator[Pair]:
    section = ""
    places = Places(tokens)
    for index, token in enumerate(tokens):
        if token.barrier:
            continue
        if token.title:
            section = token.text
        if token.label:
            lines = _value_after(tokens, places, index)
            if lines:
                yield Pair(_bare(token.text), lines, section, tokens[index + 1].text)
        elif ":" in token.text:
            yield from _split(token.text, section)


def _value_after(tokens: list[Token], places: Places, index: int) -> tuple[str, ...]:
    """The lines of the value that belongs to the label at `index`; empty where there is none."""
    if index + 1 >= len(tokens):
        return ()
    label, first = tokens[index], tokens[index + 1]
    if first.label or first.barrier or first.text.startswith(label.text):
        return ()  # "Site Address: Site Address maintained by …" is a remark
    home, label_child, value_child = places.meeting(index)
    depth = first.shared
    if label_child is not None and label_child.tag in BLOCKS:
        # A block that holds more than the label is not the label's block.
        if label.shared > depth:
            return ()
        if not _adjacent(label_child, value_child):
            return ()
    if _in_menu(label.element, first.element, label_child):
        return ()
    field = FIELD_OF.get(meaning(label.text), "")
    of_owner = field in _BLOCK_FIELDS
    if value_child is not None and value_child.tag in BLOCKS:
        lines = _lines(tokens, places, index + 1, depth + 1)
    else:
        # A name may be inline and its address below it in blocks of its own.
        inline = not (of_owner and home.tag not in _WIDE)
        lines = _lines(tokens, places, index + 1, depth, inline=inline)
    if not lines or label_child is None or label_child.tag not in CELLS:
        return lines
    below = _lines_below(tokens, places, index, len(lines), label_child)
    if not below and (of_owner or field == "legal_description"):
        below = _lines_beside_blanks(tokens, places, index, label_child)
    return lines + below


def _lines(tokens: list[Token], places: Places, start: int, depth: int, *, inline: bool = False) -> tuple[str, ...]:
    """The lines from a text on, within the element of that depth around it; `inline`: with no block between."""
    lines: list[list[str]] = []
    last = -1
    for at in range(start, len(tokens)):  # a slice would copy the whole page for each label
        token = tokens[at]
        if token.label or token.barrier or len(lines) > _MAX_LINES:
            break
        if (at > start and token.shared < depth) or (inline and token.block > depth):
            break
        if token.line == last:
            lines[-1].append(token.text)
        else:
            lines.append([token.text])
        last = token.line
    return tuple([" ".join(line) for line in lines])


def _lines_below(tokens: list[Token], places: Places, index: int, taken: int, label_cell: Element) -> tuple[str, ...]:
    """What stands in the rows below the value, where the label's cell reaches down beside them."""
    lines: tuple[str, ...] = ()
    depth = places.shared[index + 1]
    row = label_cell.getparent().getnext()
    for _ in range(min(clean.integer(label_cell.get("rowspan")) or 1, 20) - 1):
        if row is None:
            break
        start = index + 1 + taken + len(lines)
        if places.is_inside(start, row, depth):
            lines += _lines(tokens, places, start, depth)
        row = row.getnext()
    return lines


def _lines_beside_blanks(tokens: list[Token], places: Places, index: int, label_cell: Element) -> tuple[str, ...]:
    """What stands in the next rows of a table of two columns, beside label cells that are left blank."""
    row = label_cell.getparent()
    if not _has(2, row):
        return ()
    below: tuple[str, ...] = ()
    depth = places.shared[index + 1]
    at = places.end_of(index + 1, depth)
    row = row.getnext()
    while at is not None and row is not None and _has(2, row) and len(below) < _MAX_LINES:
        found = _lines(tokens, places, at, depth + 1) if places.is_inside(at, row[1], depth + 1) else ()
        if not found:
            break
        below += found
        at = places.end_of(at, depth)
        row = row.getnext()
    return below


def _has(n: int, element: Element) -> bool:
    """Whether an element has so many children; `len` counts all of them, also where they are a million."""
    return sum(1 for _ in islice(element, n + 1)) == n


def _in_menu(label: Element, value: Element, label_child: Element | None) -> bool:
    """Items of a menu stand beside each other like labels and values; links beside links name no values."""
    if label_child is not None and label_child.tag == "li":
        return True
    return bool(label.tag == "a" and value.tag == "a")


def _adjacent(label: Element, value: Element | None) -> bool:
    """Whether the value's element is the next that says anything after the label's."""
    if value is None:
        return label.tag not in CELLS
    if label.tag == "tr":
        # One above the other counts only where each row is a single cell; else an empty cell was passed over.
        return _has(1, label) and _has(1, value)
    if label.tag in _ROW_GROUPS:
        return False
    between = label.getnext()
    while between is not None and between is not value:
        if between.tag in CELLS and not _holds_button(between) and not _holds_sign(between):
            return False
        between = between.getnext()
    return True


def _holds_button(cell: Element) -> bool:
    return next(cell.iter("input", "button", "img"), None) is not None


def _holds_sign(cell: Element) -> bool:
    """`Market Value | = | $100`: a sign of the sum, before the amount."""
    return (cell.text or "").strip() in _SIGNS


def _split(text: str, section: str) -> Iterator[Pair]:
    """`Label: value` in one text."""
    label, _, value = text.partition(":")
    label, value = label.strip(), value.strip()
    if not value or value.startswith("//") or len(label) > MAX_LABEL or not any(map(str.isalpha, label)):
        return
    if is_known(label) or (len(label.split()) <= 5 and not any(map(str.isdigit, label))):
        yield Pair(label, (value,), section)


def _bare(label: str) -> str:
    return label.rstrip(" :*#").lstrip("+=- *")


def _mark_label_columns(tokens: list[Token]) -> None:
    """In a table where a column is mostly labels, its other short texts are labels too, though unknown ones."""
    cells: dict[Element, list[Token]] = defaultdict(list)
    for token in tokens:
        if token.cell is not None:
            cells[token.cell].append(token)
    columns: dict[tuple[Element, int], list[Token]] = defaultdict(list)
    places: dict[Element, dict[Element, int]] = {}
    for cell, inside in cells.items():
        row = cell.getparent()
        if len(inside) == 1 and not inside[0].barrier:
            # Counted once a row: `row.index(cell)` counts from the left each time.
            if row not in places:
                places[row] = {child: place for place, child in enumerate(row)}
            columns[row.getparent(), places[row][cell]].append(inside[0])
    two_column = _two_column_tables(cells)
    for (table, place), column in columns.items():
        mostly = sum(token.label for token in column) * 2 >= len(column)
        if mostly or (place == 0 and table in two_column and all(_could_label(token.text) for token in column)):
            for token in column:
                token.label = token.label or _could_label(token.text)


def _two_column_tables(cells: Iterable[Element]) -> set[Element]:
    """Tables of which nearly every row is two filled cells: names and values, known or not."""
    widths: dict[Element, list[int]] = defaultdict(list)
    for row, width in Counter([cell.getparent() for cell in cells]).items():
        widths[row.getparent()].append(width)
    pairs = {table: found.count(2) for table, found in widths.items()}
    return {table for table, twos in pairs.items() if twos >= 2 and twos * 5 >= len(widths[table]) * 4}


def _could_label(text: str) -> bool:
    return len(text) <= MAX_LABEL and not any(map(str.isdigit, text))
