"""Placeholders in the texts of a flow. What fills them is data from outside: bounded, and escaped in addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urljoin

#: The longest value that a placeholder is filled with, in characters.
LONGEST_VALUE = 2_000
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
Words = Mapping[str, str]


class UnfilledError(ValueError):
    """A placeholder that nobody has filled, or whose value cannot be used there."""


def names_in(template: Any) -> Iterator[str]:
    """The placeholders of a text, or of all texts of a JSON value."""
    if isinstance(template, str):
        yield from _PLACEHOLDER.findall(template)
    elif isinstance(template, Mapping):
        for name, value in template.items():
            yield from names_in(name)
            yield from names_in(value)
    elif isinstance(template, list | tuple):
        for item in template:
            yield from names_in(item)


def leading_name(template: str) -> str:
    """The placeholder that an address begins with; empty where it begins with something else."""
    match = _PLACEHOLDER.match(template)
    return match[1] if match else ""


def fill_text(template: str, words: Words) -> str:
    return _PLACEHOLDER.sub(lambda match: _word(match[1], words), template)


def fill_json(template: Any, words: Words) -> Any:
    """The value with all its texts filled in."""
    if isinstance(template, str):
        return fill_text(template, words)
    if isinstance(template, Mapping):
        return {fill_text(name, words): fill_json(value, words) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill_json(item, words) for item in template]
    return template


def fill_header(template: str, words: Words) -> str:
    """A value that is one line of a header, whatever a site has written into it."""
    value = fill_text(template, words)
    if not value.isascii() or not value.isprintable():
        raise UnfilledError(f"the value for {template!r} cannot be sent in a header")
    return value


def fill_address(template: str, words: Words, base: str) -> str:
    """The address, relative to the last page's: what it begins with is an address itself, all else is escaped."""
    first = leading_name(template)
    begun = _address(_word(first, words), first) if first else ""
    if first and template[len(first) + 2 :].startswith("/"):
        begun = begun.rstrip("/")
    rest = template[len(first) + 2 :] if first else template
    return urljoin(base, begun + _PLACEHOLDER.sub(lambda match: quote(_word(match[1], words), ""), rest))


def _address(value: str, name: str) -> str:
    value = value.strip()
    if not value or _CONTROL.search(value):
        raise UnfilledError(f"the value of {{{name}}} is not an address")
    return value


def _word(name: str, words: Words) -> str:
    value = words.get(name)
    if value is None:
        raise UnfilledError(f"nothing has filled {{{name}}}")
    if len(value) > LONGEST_VALUE:
        raise UnfilledError(f"the value of {{{name}}} is longer than {LONGEST_VALUE:,} characters")
    return value
