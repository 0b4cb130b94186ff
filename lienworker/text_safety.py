"""Text from outside, made fit to be shown: no password of an address, no character that a terminal would obey."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

BLOT = "***"
#: To the last @ of the address: a password may have one, too.
_USERINFO = re.compile(r"(?<=://)[^/\s'\"]+(?=@)")


def without_passwords(text: str) -> str:
    """Return the text with what stands before the @ of an address taken out: names, passwords, tokens of proxies."""
    return _USERINFO.sub(BLOT, text) if "@" in text and "://" in text else text


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

    Spaces of all widths become plain ones. `keep` names characters that are left as they are, such as a newline.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in keep else _spelled(mark) for mark in text)


def _spelled(mark: str) -> str:
    if unicodedata.category(mark) == "Zs":
        return " "
    code = ord(mark)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"
