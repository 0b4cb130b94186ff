"""Owners, addresses and ids as pages write them, and whether a text can be one at all.

A doubtful owner or id is left out: a wrong one does more harm than none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lienworker.platforms.core import clean
from lienworker.platforms.reading.labels import is_known

_PARCEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .\-/*:,_+]*")
#: Characters, with what a site writes behind it.
_LONGEST_ID = 200
_INTERNAL_NUMBER = re.compile(r"\s*\((\d+)\)$")
# With the year in full: `7/12/33` is a map, a block and a lot.
_DATE = re.compile(r"\d{1,2}/\d{1,2}/(?:19|20)\d\d")
_WORD = re.compile(r"[A-Za-z]{6,}")
# Words of links and remarks; some of them are words of names too (`OCEAN VIEW`, `ROAD MAP`), but not where they begin.
_NOT_A_NAME = re.compile(
    r"\b(?:click|login|log in|http|www|please|select|information|unavailable|not available|confidential|mailing"
    r"|maintained|street view|map view)\b|\["
    r"|^(?:search|view|see|map|print|details?|history|change|update|edit|enter|show|hide)\b"
    r"|\b(?:search|map|print|details?|history|change|update|edit)$",
    re.I,
)
# One of these is in whatever is no name; looking for them one by one costs twice as much.
_SUSPECT = frozenset(re.findall(r"[a-z]{3,}", _NOT_A_NAME.pattern)) | {"detail"}
_WORDS = re.compile(r"\w+")
_SENTENCE = re.compile(r"\b(?:the|is|are|was|whether|this|that|will|may|if)\b.*\b[a-z]{2,}\b.*[a-z.]$")
_FIRM = re.compile(
    r"\b(?:llc|inc|corp|co|company|trust|lp|llp|ltd|church|bank|assn|partners|land|properties|tr|holdings|group|hoa"
    r"|investments?|estates?|enterprises|foundation|realty|homes|association|ministries|ventures|associates|fund)\b",
    re.I,
)
# `HERON FAMILY TRUST DTD 05-01-15` has digits and is no street.
_DATED = re.compile(r"\b(?:trust|trustees?|ttees?|dtd|dated|u/?a/?d?|llc|inc|estate of)\b", re.I)
_CARE_OF = re.compile(r"\s*(?:c/o|attn|%|p\.? ?o\.? ?box|po drawer|general delivery)\b", re.I)


def parcel_id(value: str | None) -> str | None:
    """The id as shown, where it can be one: it has a digit, and no words."""
    plain = clean.identifier(value)
    if not plain:
        return None
    if len(plain) > _LONGEST_ID:
        return None
    if plain[-1] == ")":
        plain = _INTERNAL_NUMBER.sub("", plain)
    if len(plain) > 40 or not any(map(str.isdigit, plain)) or not _PARCEL_ID.fullmatch(plain):
        return None
    return None if _DATE.fullmatch(plain) or _WORD.search(plain) else plain


def shown_id(line: str, first: str) -> str | None:
    """The id of a value whose line may go on with a link (`232812-0505 GIS MAP`)."""
    return parcel_id(line if any(map(str.isdigit, line.removeprefix(first))) else first)


def internal_number(value: str | None) -> str | None:
    """The site's own number, where it stands in brackets behind the id."""
    found = _INTERNAL_NUMBER.search(value[-_LONGEST_ID:]) if value and value[-1] == ")" else None
    return found.group(1) if found else None


def is_owner(line: str) -> bool:
    letters = sum(map(str.isalpha, line))
    if letters < 2 or len(line) > 120 or is_known(line) or line[-1] == ":" or _is_remark(line):
        return False
    if _CARE_OF.match(line):
        return False  # who gets the mail, or where
    if clean.money(line) is not None or clean.iso_date(line) or _SENTENCE.search(line):
        return False
    return not line[0].isdigit() or bool(_FIRM.search(line))


def _is_remark(line: str) -> bool:
    suspect = "[" in line or not _SUSPECT.isdisjoint(_WORDS.findall(line.lower()))
    return suspect and _NOT_A_NAME.search(line) is not None


def is_address_line(line: str) -> bool:
    if _CARE_OF.match(line):
        return True
    return any(map(str.isdigit, line)) and (line[0].isdigit() or not _DATED.search(line))


def owner_and_address(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names at the top of a block, and the lines of the address below them."""
    if not lines or not is_owner(lines[0]):
        return [], []
    below = next((n for n, line in enumerate(lines[1:], start=1) if is_address_line(line)), len(lines))
    return [lines[0], *(line for line in lines[1:below] if is_owner(line))], list(lines[below:])


def mailing_address(lines: Sequence[str]) -> str | None:
    """The address of a block that may begin with a name."""
    start = next((n for n, line in enumerate(lines) if is_address_line(line)), 0)
    return clean.known(" ".join(lines[start:]))
