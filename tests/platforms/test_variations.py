"""The same page as another county would write it: other tags around, other spaces, other order. What it says stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from lienworker.errors import PageError
from lienworker.platforms import Page, Record, Target, default_registry

OWN = Path(__file__).parents[1] / "fixtures" / "pages"
REAL = Path(__file__).resolve().parents[2] / ".." / "shared" / "pages"
PAGES = [*sorted(OWN.glob("*.html")), *sorted(REAL.glob("*/*.html"))]
HEAD = ("parcel_id", "owner_name", "property_address")
Variation = Callable[[str], str]


def rewritten(change: Callable[[etree._Element], None]) -> Variation:
    """A change of the tree."""

    def vary(text: str) -> str:
        root = etree.fromstring(text.encode(), etree.HTMLParser(encoding="utf-8", recover=True))
        change(root)
        return etree.tostring(root, method="html", encoding="unicode")

    return vary


def turn_attributes(root: etree._Element) -> None:
    for element in root.iter("*"):
        for name, value in reversed(list(element.attrib.items())):
            del element.attrib[name]
            element.set(name, value)


def wrap(*tags: str, inside: str) -> Callable[[etree._Element], None]:
    def change(root: etree._Element) -> None:
        for element in list(root.iter(*tags)):
            if not len(element) and (element.text or "").strip():
                inner = etree.SubElement(element, inside)
                inner.text, element.text = element.text, None

    return change


def pad(root: etree._Element) -> None:
    for element in root.iter("td", "th", "dd", "dt", "label"):
        if (element.text or "").strip():
            element.text = f"\xa0{element.text}\xa0 "


def surround(root: etree._Element) -> None:
    body = root.find("body")
    if body is not None:
        parts = list(body)
        cell = etree.SubElement(etree.SubElement(etree.SubElement(body, "table"), "tr"), "td")
        cell.extend(parts)


def add_column(root: etree._Element) -> None:
    for table in root.iter("table"):
        rows = table.findall("tr") or table.findall("tbody/tr")
        if rows and {len(row) for row in rows} == {len(rows[0])} and len(rows[0]) > 2:
            for n, row in enumerate(rows):
                etree.SubElement(row, row[-1].tag).text = "see book" if n else "Remarks"


def shout(root: etree._Element) -> None:
    for element in root.iter("th", "dt", "label", "strong"):
        element.text = (element.text or "").upper()


VARIATIONS: dict[str, Variation] = {
    "attributes in another order": rewritten(turn_attributes),
    "texts in fonts": rewritten(wrap("td", inside="font")),
    "labels in bold": rewritten(wrap("th", "dt", inside="strong")),
    "hard spaces": rewritten(pad),
    "a table around it all": rewritten(surround),
    "one more column": rewritten(add_column),
    "labels in capitals": rewritten(shout),
    "tags in capitals": lambda text: re.sub(r"<(/?)(td|tr|th|table|span)\b", lambda m: f"<{m[1]}{m[2].upper()}", text),
    "cells never closed": lambda text: re.sub(r"</(?:td|tr|th)>", "", text),
    "a remark in each cell": lambda text: re.sub(r"(<t[dh](?:\s[^>]*)?>)", r"\1<!-- cell -->", text),
    "tables without bodies": lambda text: re.sub(r"</?tbody[^>]*>", "", text, flags=re.I),
    "one more class": lambda text: re.sub(r'class="([^"]+)"', r'class="\1 wide"', text),
    "attributes in single quotes": lambda text: re.sub(r"""="([^"'<>]*)\"""", r"='\1'", text),
    "another system's lines": lambda text: text.replace("\n", "\r\n"),
}


def read(text: str, platform: str) -> Record:
    try:
        page = Page("", text.encode(), "text/html", "utf-8")
        return default_registry().parse(page, Target(platform=platform)).record
    except PageError:
        return {}


def heads(record: Record) -> list[dict[str, str]]:
    items = record.get("parcels") or [record]
    return [{name: str(item[name]).casefold() for name in HEAD if name in item} for item in items]


@pytest.mark.parametrize("change", VARIATIONS)
@pytest.mark.parametrize("file", PAGES, ids=lambda path: path.name[:48])
def test_a_variation_says_the_same(file: Path, change: str) -> None:
    """The platform finds the same parcel, owner and place; `generic` finds them, or at least nobody else's."""
    text = Page("", file.read_bytes()).text
    registry = default_registry()
    platform = registry.for_page(Page("", file.read_bytes())).name
    varied = VARIATIONS[change](text)

    assert heads(read(varied, platform)) == heads(read(text, platform))
    assert registry.for_page(Page("", varied.encode())).name == platform

    plain, other = heads(read(text, "generic")), heads(read(varied, "generic"))
    for before, after in zip(plain, other, strict=False):
        for name in ("parcel_id", "owner_name"):
            assert after.get(name) in (None, before.get(name)), name
