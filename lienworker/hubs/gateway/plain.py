"""JSON text that can be sent as it is, told at a glance: decoding, looking at each value and encoding costs far more.

A false alarm only costs time, since what raises one is then looked at value by value. So the marks are looked for
anywhere in the text, also inside of strings.
"""

from __future__ import annotations

import re

from lienworker.hubs.gateway.jsontext import MAX_DEPTH

# NUL and halves of characters as JSON writes them, and what is no JSON at all though Python writes it.
_MARKS = ("\\u0000", "\\ud", "\\uD", "NaN", "Infinity")
# 2^53 has sixteen digits. Looking for so many noughts takes a twentieth of what the pattern takes, so it comes first.
_NOUGHTS = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 16
# A number follows a colon, a comma or a bracket; an id of many digits follows a quotation mark.
_LONG_NUMBER = re.compile(r"[:,\[]\s*-?[0-9]{16}")
# Never gives back: a pattern that might would note each letter of a long text, a hundred bytes for one.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_BRACKETS = re.compile(r"[\[{]|[\]}]")


def is_plain_object(text: str) -> bool:
    """Whether the text of an object has nothing in it that the Gateway or its database would choke on."""
    if not text.startswith("{") or not text.isascii() or any(mark in text for mark in _MARKS):
        return False
    return not _has_long_number(text) and not _is_deep(text)


def _has_long_number(text: str) -> bool:
    return _LONG in text.encode().translate(_NOUGHTS) and _LONG_NUMBER.search(text) is not None


def _is_deep(text: str) -> bool:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False
