"""From what a page shows to what a record holds.

Every function takes what it is given (None too) and answers None where there is nothing to understand:
a blank is absent, a zero is zero, and a value that cannot be read is never replaced by a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from lienworker.platforms.core.dates import epoch_date, iso_date
from lienworker.platforms.core.texts import decoded, text

__all__ = [
    "acres",
    "compact",
    "epoch_date",
    "identifier",
    "integer",
    "iso_date",
    "joined",
    "known",
    "money",
    "number",
    "square_feet",
    "text",
    "year",
    "yes_no",
]


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
_BLANKS = frozenset({"", "-", "--", "---", "n/a", "na", "none", "null", "nil", "not available", "unknown", "."})


def known(value: object) -> str | None:
    """Text, with the usual ways of saying "nothing" (N/A, --, none) taken as absent."""
    plain = text(value)
    return None if plain is None or plain.lower() in _BLANKS else plain


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
