"""From what a page shows to what a record holds: texts, amounts, areas, dates, and lists without blanks.

Every function takes what it is given (None too) and answers None where there is nothing to understand:
a blank is absent, a zero is zero, and a value that cannot be read is never replaced by a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from html import unescape
from typing import Any

# Only entities with their semicolon: "LOT 3 &LT 4" is a legal description, not a less-than sign.
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")


def text(value: object) -> str | None:
    """Single-spaced, entities decoded, invisible characters gone."""
    if value is None:
        return None
    plain = value if value.__class__ is str else str(value)
    if "&" in plain or not plain.isascii():
        plain = decoded(plain)
    return " ".join(plain.split()) or None


def decoded(plain: str) -> str:
    """With its spaces as they are."""
    if "&" in plain:
        plain = _ENTITY.sub(lambda found: unescape(found.group()), plain)
    return plain if plain.isascii() else _INVISIBLE.sub("", plain)


_MONEY = re.compile(r"(\()?\s*(-)?\s*(?:US)?\$?\s*(-)?\s*(\d[\d,]*(?:\.\d*)?|\.\d+)\s*(-|CR)?\s*(\))?", re.I)
# What nearly all amounts are; six groups and two spellings of a letter take thrice as long.
_PLAIN_MONEY = re.compile(r"\$?(\d[\d,]*(?:\.\d*)?)")
_IN_MONEY = "0123456789$,.()- UuSsCcRr"
_NUMBER = re.compile(r"-?(?:\d[\d,]*(?:\.\d*)?|\.\d+)")
_YEAR = re.compile(r"(?<!\d)(1[6-9]\d\d|20\d\d)(?!\d)")
# Each begins only where its run begins, and never gives back: a long run is read once, not from each of its places.
_BREAKS = re.compile(r"(?<!\s)\s*[\r\n\t]\s*")
_NO_ACRES = re.compile(r"sq|feet|\bft\b|\bsf\b|\bx\b|hectare")
_ACRES = re.compile(r"(?<![\d,])([\d,]*+(?:\.\d++|(?<=\d)))\s*ac")
_ACRES_UNIT = re.compile(r"\bac(re)?s?\b")
_NEVER_BLANK = frozenset({float, int, bool})
_SAYS_NONE = re.compile(r"(?:no|none|n/a|nothing)(?: |$)", re.I)
_BLANKS = frozenset({"", "-", "--", "---", "n/a", "na", "none", "null", "nil", "not available", "unknown", "."})


def known(value: object) -> str | None:
    """Text, with the usual ways of saying "nothing" (N/A, --, none) taken as absent."""
    plain = text(value)
    return None if plain is None or plain.lower() in _BLANKS else plain


def stated(value: object) -> str | None:
    """Text that says there is something: `No Tax Sale` and `None on record` name nothing."""
    plain = known(value)
    return None if plain is None or _SAYS_NONE.match(plain) else plain


def identifier(value: object) -> str | None:
    """An id as shown: leading zeros and inner spaces stay, only line breaks of the page's source fold."""
    if value is None:
        return None
    plain = decoded(str(value)).replace("\xa0", " ").strip()
    if not plain.isprintable():
        plain = _BREAKS.sub(" ", plain)
    return None if plain.lower() in _BLANKS else plain


def money(value: object) -> float | None:
    """`$1,234.50` is 1234.5 and `(12.00)` is -12.0; anything around the amount makes it unreadable."""
    if value.__class__ is not str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    plain = text(value)
    if plain and "*" in plain:
        plain = plain.strip("* ")  # a footnote
    # Most texts that are asked about are no amounts, and have something else at their ends or between them.
    if not plain or (plain.isascii() and plain.strip(_IN_MONEY)):
        return None
    if found := _PLAIN_MONEY.fullmatch(plain):
        return _finite(found[1])
    found = _MONEY.fullmatch(plain)
    if found is None:
        return None
    opened, minus, inner_minus, digits, trailing, closed = found.groups()
    amount = _finite(digits)
    negative = minus or inner_minus or trailing or (opened and closed)
    return -amount if negative and amount else amount


def number(value: object) -> float | None:
    """The first number of a text, units ignored: `.055 AC` is 0.055."""
    if value.__class__ is not str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    found = _NUMBER.search(text(value) or "")
    return _finite(found.group()) if found else None


def _finite(digits: str) -> float | None:
    """The number of digits with commas; None for one of hundreds of digits, which is no number of anything."""
    amount = float(digits.replace(",", ""))
    return amount if math.isfinite(amount) else None


def integer(value: object) -> int | None:
    """A whole number; `1.5` is not one."""
    amount = number(value)
    return int(amount) if amount is not None and amount == int(amount) else None


def year(value: object) -> int | None:
    """A year that a roll, a bill or a building can have."""
    found = _YEAR.search(text(value) or "")
    return int(found.group()) if found else None


def acres(value: object) -> float | None:
    """An area in acres; one in another unit is not an area in acres."""
    plain = (text(value) or "").lower()
    if _NO_ACRES.search(plain):
        found = _ACRES.search(plain)
        return number(found.group(1)) if found else None
    return number(plain)


def square_feet(value: object) -> float | None:
    """An area in square feet; acres are not converted, for the page did not say so."""
    plain = (text(value) or "").lower()
    return None if _ACRES_UNIT.search(plain) else number(plain)


def yes_no(value: object) -> bool | None:
    word = (text(value) or "").lower().rstrip(".")
    if word in ("y", "yes", "true", "x", "1"):
        return True
    return False if word in ("n", "no", "false", "0", "none") else None


def compact(value: Any) -> Any:
    """The value without its blanks, at every depth. Zero and False stay."""
    if isinstance(value, dict):
        # Texts are nearly all of it: they are tested in place, without a call each.
        return {
            key: kept
            for key, item in value.items()
            if (kept := (item or None) if item.__class__ is str else _kept(item)) is not None
        }
    if isinstance(value, list):
        return [kept for item in value if (kept := _kept(item)) is not None]
    return value


def _kept(item: Any) -> Any:
    """The item without its blanks; None where nothing is left of it."""
    if item.__class__ in _NEVER_BLANK:
        return item
    if isinstance(item, (dict, list)):
        return compact(item) or None
    return item if item != "" else None


def joined(parts: Iterable[object], separator: str = ", ") -> str | None:
    """The parts that say something, as one text."""
    return separator.join(part for part in map(text, parts) if part) or None


_DIGIT = re.compile(r"\d")
_NUMERIC_DATE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/])")
_ISO_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")
_NAMED_DATES = (
    # At the beginning of a word only: from each letter of a long one the rest of it would be read again.
    re.compile(r"(?<![a-z])(?P<m>[a-z]{3})[a-z]*\.?[\s-]+(?P<d>\d{1,2})(?:st|nd|rd|th)?,?[\s-]+(?P<y>\d{4})", re.I),
    re.compile(r"(?P<d>\d{1,2})[-/ ](?P<m>[a-z]{3})[a-z]*[-/ ,]+(?P<y>\d{4}|\d{2})(?!\d)", re.I),
)
_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)}
# Two-digit years up to here are of this century: deeds of 1950 exist, redemptions of 2050 do not.
_CENTURY_PIVOT = 50


def iso_date(value: object) -> str | None:
    """`07/25/2017`, `7/25/17`, `2017-07-25T00:00`, `Jul 25, 2017`, `25-JUL-2017` as `2017-07-25`."""
    plain = text(value)
    if not plain or not _DIGIT.search(plain):  # most texts that are asked about are no dates
        return None
    if plain[0].isdecimal():
        if found := _NUMERIC_DATE.match(plain):
            return _iso(found[4], found[1], found[3])
        if found := _ISO_DATE.match(plain):
            return _iso(found[1], found[2], found[3])
    for pattern in _NAMED_DATES:
        if (found := pattern.search(plain)) and (month := _MONTHS.get(found["m"].lower())):
            return _iso(found["y"], str(month), found["d"])
    return _iso(plain[:4], plain[4:6], plain[6:]) if re.fullmatch(r"(1[6-9]|20)\d{6}", plain) else None


def epoch_date(value: object) -> str | None:
    """The date of milliseconds since 1970, as ArcGIS writes them (before 1970 too)."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return datetime.fromtimestamp(value / 1000, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _iso(year_digits: str, month: str, day: str) -> str | None:
    full = int(year_digits)
    if len(year_digits) <= 2:
        full += 2000 if full < _CENTURY_PIVOT else 1900
    try:
        return date(full, int(month), int(day)).isoformat()
    except ValueError:
        return None
