"""How the text of a setting becomes its value; a ValueError says what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

LEVELS = ("debug", "info", "warning", "error")


def line(value: str) -> str:
    """Return a value for a header: a line break there would be refused with every single request."""
    if not value.isprintable():
        raise ValueError("use one line of printable characters")
    return value


def folder(value: str) -> Path:
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError:
        raise ValueError("there is no such home folder") from None


def flag(value: str) -> bool:
    word = value.strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError("use true or false")


def words(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def choice(*allowed: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        word = value.strip().lower()
        if word not in allowed:
            raise ValueError(f"use one of {', '.join(allowed)}")
        return word

    return parse


def levels(value: str) -> tuple[str, ...]:
    """Return pairs of a logger and its level."""
    pairs = tuple(part.replace(" ", "").lower() for part in words(value))
    if any(not name or level not in LEVELS for name, _, level in (pair.partition("=") for pair in pairs)):
        raise ValueError(f"use logger=level, with a level of {', '.join(LEVELS)}")
    return pairs


def number(kind: type[int] | type[float], low: float, high: float) -> Callable[[str], Any]:
    def parse(value: str) -> Any:
        try:
            found = kind(value)
        except ValueError:
            raise ValueError(f"use a {'whole ' if kind is int else ''}number") from None
        if not low <= found <= high:  # also refuses NaN
            raise ValueError(f"use a number from {low:g} to {high:g}")
        return found

    return parse


def days(value: str) -> float:
    """Parse the days to keep something; `forever` never ends."""
    if value.strip().lower() == "forever":
        return math.inf
    try:
        return float(number(float, 0, 36500)(value))
    except ValueError:
        raise ValueError("use a number of days from 0 to 36500, or forever") from None


def url(*schemes: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        value = value.strip()
        scheme, mark, rest = value.partition("://")
        if not mark or scheme.lower() not in schemes or not rest:
            raise ValueError(f"use an address that begins with {' or '.join(f'{s}://' for s in schemes)}")
        _check_address(value)
        return value.rstrip("/") if scheme.lower().startswith("http") else value

    return parse


def _check_address(value: str) -> None:
    """Refuse an address now that would otherwise fail again and again, wherever it is used.

    The message is ours: what Python says of a wrong address can quote the password in it.
    """
    parts = _split(value)
    if parts.scheme == "unix":
        if parts.hostname or not parts.path.strip("/"):
            raise ValueError("use unix:// and the whole path of the socket, such as unix:///run/redis.sock")
    else:
        host(parts.hostname or "")


def _split(value: str) -> SplitResult:
    hint = "a password with one of /?#[]% needs it percent-encoded"
    try:
        parts = urlsplit(value)
        # The path of a socket is a folder's name, which can be anything.
        is_possible = (value.isprintable() or parts.scheme == "unix") and " " not in parts.netloc and parts.port != 0
    except ValueError:
        is_possible = False
    if not is_possible:
        raise ValueError(f"use a host and a port from 1 to 65535, without spaces; {hint}")
    return parts


def host(value: str) -> str:
    """Return a host name that can be resolved, or an address."""
    try:
        is_possible = bool(value) and value.isprintable() and " " not in value and len(value.encode("idna")) <= 253
    except UnicodeError:  # an empty or an endless label
        is_possible = False
    if not is_possible:
        raise ValueError("use a host name or an address")
    return value


def worker_id(value: str) -> str:
    if not 1 <= len(value) <= 128 or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("use 1 to 128 plain characters without spaces")
    return value
