"""Owners, addresses and ids as pages write them, and whether a text can be one at all.

A doubtful owner or id is left out: a wrong one does more harm than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lienworker.platforms.core import clean
from lienworker.platforms.reading.labels import is_known

_PARCEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .\-/*:,_+]*")
#: Characters, with what a site writes behind it.
_LONGEST_ID = 200
# Behind it a county may write what the parcel is exempt from: `18-05-21 (3585) HX HB`.
_INTERNAL_NUMBER = re.compile(r"\s*\((\d+)\)(?:\s+[A-Z][A-Z0-9]{0,3}){0,12}$")
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
# `SELECT SERVICES GROUP CORP` is a firm, though its name begins like a menu.
_NAMES_A_FIRM = re.compile(r"^(?!.*(?:click|http|www|please|\[)).*\b(?:llc|inc|corp|co|lp|llp|ltd|trust|tr)\.?$", re.I)
# What may be dated: `HERON FAMILY TRUST DATED JUNE 30, 2021`.
_HAS_A_DATE = re.compile(r"\b(?:trust|trustees?|ttees?|tr|agreement|estate|living|revocable|llc|inc|corp)\b", re.I)
# `HERON FAMILY TRUST DTD 05-01-15` has digits and is no street.
_DATED = re.compile(r"\b(?:trust|trustees?|ttees?|dtd|dated|u/?a/?d?|llc|inc|estate of)\b", re.I)
_ADDRESS_START = re.compile(
    r"\b(?:[nsew]?\d|p\.? ?o\.? ?(?:box|drawer)\b|box \d|rr ?\d|rt ?\d|rural (?:route|rt)\b|route \d|hc ?\d|c/o\b"
    r"|attn\b|general delivery\b|one [a-z]|%)",
    re.I,
)
_REMARK = re.compile(
    r"\s*\((?:note|not to be|opens in|view|click|see|map)\b[^()]*\)|\s*\bnote: not to be .*$|\s*\bgo to .* on www\..*$"
    r"|\s*-? ?opens (?:\w+ )?in (?:a )?new (?:tab|window)|\s*\[(?:pdf|map|view|link)[^\[\]]*\]",
    re.I,
)
_IN_REMARKS = ("(", "[", ":", "www.", "new ", "NEW ")
_LINK_TEXT = re.compile(
    r"(?:go to|click|view|see|show|print|open)\b.*\b(?:map|details?|here|tab|window|www\..*|link)$", re.I
)
_ROLE = re.compile(
    r"\s*(?:\((?:owner|primary|fee owner|co-?owner|lessee|life estate)\)|\b(?:fee|primary|sole|co-?) ?owner)$", re.I
)
_CARE_OF = re.compile(r"\s*(?:%|(?:c/o|attn|p\.? ?o\.? ?box|po drawer|general delivery)\b)", re.I)


def parcel_id(value: str | None) -> str | None:
    """The id as shown, where it can be one: it has a digit, and no words."""
    plain = clean.identifier(value)
    if not plain:
        return None
    if len(plain) > _LONGEST_ID:
        return None
    if ")" in plain:
        plain = _INTERNAL_NUMBER.sub("", plain)
    if len(plain) > 40 or not any(map(str.isdigit, plain)) or not _PARCEL_ID.fullmatch(plain):
        return None
    return None if _DATE.fullmatch(plain) or _WORD.search(plain) else plain


def shown_id(line: str, first: str) -> str | None:
    """The id of a value whose line may go on with a link (`232812-0505 GIS MAP`) or a remark (`… (Card 1 of 2)`)."""
    rest = line.removeprefix(first).lstrip()
    goes_on = any(map(str.isdigit, rest)) and not (rest[0] == "(" and first != line)
    return parcel_id(line if goes_on else first)


def internal_number(value: str | None) -> str | None:
    """The site's own number, where it stands in brackets behind the id."""
    found = _INTERNAL_NUMBER.search(value[-_LONGEST_ID:]) if value and ")" in value else None
    return found.group(1) if found else None


def is_owner(line: str) -> bool:
    letters = sum(map(str.isalpha, line))
    if letters < 2 or len(line) > 120 or is_known(line) or line[-1] == ":" or _is_remark(line):
        return False
    if _CARE_OF.match(line):
        return False  # who gets the mail, or where
    if clean.money(line) is not None or _SENTENCE.search(line):
        return False
    if clean.iso_date(line) and (line[0].isdigit() or not _HAS_A_DATE.search(line)):
        return False
    return not line[0].isdigit() or bool(_FIRM.search(line))


def _is_remark(line: str) -> bool:
    suspect = "[" in line or not _SUSPECT.isdisjoint(_WORDS.findall(line.lower()))
    return suspect and _NOT_A_NAME.search(line) is not None and not _NAMES_A_FIRM.search(line)


def is_address_line(line: str) -> bool:
    if _CARE_OF.match(line):
        return True
    return any(map(str.isdigit, line)) and (line[0].isdigit() or not _DATED.search(line))


def owner_and_address(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names at the top of a block, and the lines of the address below them."""
    if not lines or not is_owner(lines[0]):
        return [], []
    below = next((n for n, line in enumerate(lines[1:], start=1) if is_address_line(line)), len(lines))
    return [name_of(line) for line in (lines[0], *filter(is_owner, lines[1:below]))], list(lines[below:])


def name_of(line: str) -> str:
    """A name without what only joins it to the next one, or says what kind of owner it is."""
    last = line[-1:]
    if last in ")rR":
        line = _ROLE.sub("", line) or line
    return line.rstrip(" &,;") if last in "&,; " else line


def mailing_address(lines: Sequence[str]) -> str | None:
    """The address of a block that may begin with a name."""
    start = next((n for n, line in enumerate(lines) if is_address_line(line)), 0)
    return clean.known(" ".join(lines[start:]))


def without_remarks(lines: Sequence[str]) -> str:
    """The lines as one text, without what is said to whoever reads the page: links, notes, warnings."""
    kept = [plain for line in lines if (plain := _unremarked(line)) and not _LINK_TEXT.match(plain)]
    return " ".join(kept)


def _unremarked(line: str) -> str:
    # One of these is in every remark; looking for them is cheaper than for the remarks.
    return _REMARK.sub("", line).strip() if any(sign in line for sign in _IN_REMARKS) else line


def without_name(address: str, owners: Iterable[str] | None = None) -> str:
    """An address without the name in front of it; with `owners` only where one of them is named there."""
    found = _ADDRESS_START.search(address)
    if found is None or not found.start():
        return address
    before = _WORDS.findall(address[: found.start()].lower())
    if owners is not None:
        known = {word for owner in owners for word in _WORDS.findall(owner.lower()) if len(word) > 2}
        if known.isdisjoint(before):
            return address
    return address[found.start() :]
