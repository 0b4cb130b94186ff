"""Text as a record holds it: single-spaced, entities decoded, invisible characters gone."""

from __future__ import annotations

import re
from html import unescape

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
