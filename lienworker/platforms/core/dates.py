"""Dates as pages write them, as ISO dates."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from lienworker.platforms.core.texts import text

_DIGIT = re.compile(r"\d")
_NUMERIC_DATE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/])")
_ISO_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")
_NAMED_DATES = (
    # At the beginning of a word only: from each letter of a long one the rest of it would be read again.
    re.compile(r"(?<![a-z])(?P<m>[a-z]{3})[a-z]*\.?\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<y>\d{4})", re.I),
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
