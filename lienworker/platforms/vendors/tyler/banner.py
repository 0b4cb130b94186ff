"""The banner above each page of iasWorld: the parcel's id, its owner and its place, with labels or without."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.reading import people
from lienworker.platforms.reading.elements import UNREAD
from lienworker.platforms.rules import Path

_TOP = Path("//td[contains(@class, 'DataletHeaderTop')]|//tr[contains(@class, 'DataletHeaderTop')]/td")
_BOTTOM = Path("//td[contains(@class, 'DataletHeaderBottom')]|//tr[contains(@class, 'DataletHeaderBottom')]/td")
# Several labels may stand in one line; what follows the next label belongs to that one.
_LABELLED = re.compile(
    r"(?P<label>[A-Z][A-Za-z #./()-]{1,24}?)\s*[:#]+\s*(?P<value>.*?)"
    r"(?=\s+[A-Z][A-Za-z#./-]*(?: [A-Z#]+)?\s*:|$)",
    re.S,
)
_LONGEST_LINE = 2_000
_ID = re.compile(r"par ?id|pin|parcel(?: ?(?:id|number|no|num))?|map|account", re.I)
_OWNER = re.compile(r"(?:current )?owner(?: ?name)?(?: ?1)?", re.I)
_SITUS = re.compile(r"(?:(?:parcel|property) )?location|situs(?: address)?|(?:(?:site|property) )?address", re.I)
_STREET = re.compile(
    r"^\d|\b(?:st|street|ave?|avenue|rd|road|dr|drive|ln|lane|blvd|ct|court|way|hwy|highway|pl|cir|ter|trl|pkwy|pike"
    r"|route|rte?|sq|loop|run|xing|row)\b\.?(?:\s+[nsew]{1,2})?$",
    re.I,
)


def take_banner(record: Record, root: Any) -> None:
    for label, value in (part for cell in _TOP(root) for part in _parts(cell)):
        if _ID.fullmatch(label):
            # Not folded: the inner spaces belong to the id, and the site wants them back in its addresses.
            record["parcel_id"] = clean.identifier(value)
            record["fields"].setdefault("PARID", clean.text(value))
            break
    _take_people(record, [part for cell in _BOTTOM(root) for part in _parts(cell)])


def _take_people(record: Record, parts: list[tuple[str, str]]) -> None:
    """Owner and situs, in the one order or the other: what looks like a street is never taken for an owner."""
    owner = situs = None
    for label, shown in parts:
        value = clean.text(shown.rstrip(" ,"))
        if not value or (label and not _OWNER.fullmatch(label) and not _SITUS.fullmatch(label)):
            continue
        is_street = bool(_SITUS.fullmatch(label) if label else _STREET.search(value))
        if is_street:
            situs = situs or value
        elif owner is None and people.is_owner(value):
            owner = value
        elif situs is None:
            situs = value
    known = record.get("owner_names", [])
    if owner and (situs or not known or owner in known):
        record |= {"owner_name": owner, "owner_names": [owner, *(name for name in known if name != owner)]}
    if situs and situs not in known and not record.get("property_address"):
        record["property_address"] = situs


def _parts(cell: Any) -> list[tuple[str, str]]:
    """The texts of a cell, a line each, with their labels where they have one; spaces as they are."""
    parts: list[tuple[str, str]] = []
    for line in _lines_as_they_are(cell):
        if len(line) > _LONGEST_LINE:  # no banner, and slow to take apart
            parts.append(("", line))
            continue
        found = [(part["label"].strip(), part["value"].strip()) for part in _LABELLED.finditer(line)]
        parts += found if found and _LABELLED.match(line) else [("", line)]
    return parts


def _lines_as_they_are(cell: Any) -> list[str]:
    texts = [cell.text or ""]
    for element in cell.iterdescendants():
        # A comment says nothing, nor does a script.
        said = element.text or "" if isinstance(element.tag, str) and element.tag not in UNREAD else ""
        texts += ["\n" if element.tag == "br" else said, element.tail or ""]
    flat = "".join(text if text == "\n" else re.sub(r"[\r\n\t]+", " ", text) for text in texts)
    return [line.strip("\xa0 ") for line in flat.split("\n") if line.strip("\xa0 ")]
