"""Text made fit to be shown: no password of an address, no character that a terminal would obey, no "1 rows"."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

BLOT = "***"
#: To the last @ of the address: a password may contain one, too. In a sentence an address ends at a space or at the
#: quote of JSON; a text that begins with one is an address up to its path, since a password may contain these as well.
_USERINFO = re.compile(r"(?<=://)[^/\s\"]+(?=@)")
_LEADING_USERINFO = re.compile(r"\A(\s*[a-z][a-z0-9+.-]*://)[^/?#]+(?=@)", re.IGNORECASE)

#: What JSON may hold unescaped, and a terminal would obey: DEL and C1, directions, line separators, half characters.
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]")


def without_passwords(text: str) -> str:
    """Return the text without what comes before the @ of an address: names, passwords, tokens of proxies."""
    if "@" not in text or "://" not in text:
        return text
    return _USERINFO.sub(BLOT, _LEADING_USERINFO.sub(rf"\1{BLOT}", text))


def redacted(value: Any) -> Any:
    """Return the same facts, whatever their shape, without the passwords of addresses."""
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, dict):
        return {redacted(key): redacted(item) for key, item in value.items()}
    if type(value) is list or type(value) is tuple:
        return type(value)(map(redacted, value))
    return value


def visible(text: str, keep: str = "") -> str:
    """Return the text with its control characters, direction overrides and the like spelled out, as `\\x1b`.

    Spaces of all widths, tabs and newlines become plain spaces, unless `keep` names them.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in keep else _spelled(mark) for mark in text)


def visible_json(text: str) -> str:
    """Return a JSON text that means the same, with what a terminal would obey written as JSON escapes."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spelled(mark: str) -> str:
    if mark in "\n\t" or unicodedata.category(mark) == "Zs":
        return " "
    code = ord(mark)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def plural(n: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `1,200 rows`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
