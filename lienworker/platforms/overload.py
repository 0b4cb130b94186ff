"""Pages that are built to hold a worker up, told before they are parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MOST_TAGS = 500_000
#: libxml2 compares each attribute of a tag with all before it: a hundred kilobytes of them take seconds.
_MOST_ATTRIBUTES = 1_000
_LONG = 10_000
_LONG_TAG = re.compile(rf"<[a-zA-Z][^<>]{{{_LONG},}}")
_QUOTED = re.compile(r"""=\s*(?:"[^"]*"|'[^']*')""")


def _is_overloaded(tag: str) -> bool:
    """By its attributes: what stands in quotes is one value, however long (some sites keep a whole menu in one)."""
    return len(_QUOTED.sub(" ", tag).split(maxsplit=_MOST_ATTRIBUTES)) > _MOST_ATTRIBUTES


def long_tags(text: str) -> Iterator[str]:
    """Tags of more than ten thousand characters, found by leaps: looking at each tag costs as much as half a parse."""
    at = text.find("<")
    while 0 <= at < len(text) - _LONG:
        leap = text.rfind("<", at + 1, at + _LONG + 2)
        if leap < 0:  # nothing begins for so long: a tag, or a long text behind one
            if found := _LONG_TAG.match(text, at):
                yield found.group()
            leap = text.find("<", at + 1)
        at = leap


def is_built_to_be_slow(text: str) -> bool:
    """No page for people has half a million tags, or a tag of a thousand attributes."""
    has_many = len(text) > _MOST_TAGS and text.count("<") > _MOST_TAGS
    return has_many or any(map(_is_overloaded, long_tags(text)))
