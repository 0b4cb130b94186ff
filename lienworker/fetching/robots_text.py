"""What a robots.txt says to us, and no more: cut out before anything is made of it.

A library that reads the whole file keeps each rule once for each of the names above it: 126 KB of names and rules
became 1.8 GB. We have one name, so one list of rules is kept, of bounded length. Pure.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict

#: Of the rules that are for us; a county's whole file has a few hundred bytes. Beyond, the beginning counts.
MAX_RULES_TEXT = 32 * 1024
#: Longer lines are no rules that any address of ours could meet.
MAX_LINE = 2_000
MAX_LINES = 20_000
#: The longest time between two requests that a site may ask for, s.
MAX_CRAWL_DELAY = 3600.0

_LINE = re.compile(r"[^\r\n]+")
_AGENT = re.compile(r"user[- ]?agent\b\s*:?(.*)", re.IGNORECASE)
# With the misspellings that crawlers commonly take.
_RULE = re.compile(
    r"(?P<deny>diss?all?[oa]w|diasllow)\b\s*:?(?P<denied>.*)|allow\b\s*:?(?P<allowed>.*)"
    r"|crawl[- ]delay\b\s*:?(?P<delay>.*)",
    re.IGNORECASE,
)


def rules_for(text: str, token: str) -> str:
    """Return a robots.txt of one group with what the given one says to a crawler of this name."""
    rules: dict[str, list[str]] = {}
    left: dict[str, int] = defaultdict(lambda: MAX_RULES_TEXT)
    group: set[str] = set()
    is_open = False  # whether the next name joins the group
    for number, match in enumerate(_LINE.finditer(text)):
        if number >= MAX_LINES:
            break
        line = match[0].partition("#")[0].strip() if match.end() - match.start() <= MAX_LINE else ""
        if agent := _AGENT.match(line):
            group = group if is_open else set()
            is_open = True
            if _means(name := _name(agent[1]), token):
                group.add(name)
                rules.setdefault(name, [])  # a group without rules is one that allows everything
        elif rule := _rule(line):
            is_open = False
            for name in group:
                left[name] -= len(rule)
                if left[name] >= 0:
                    rules[name].append(rule)
    best = max(rules, key=lambda name: 0 if name == "*" else len(name), default=None)
    return "\n".join(["User-agent: *", *rules[best]]) if best is not None else ""


def _name(value: str) -> str:
    """Stars in a name mean nothing; alone, one means everybody."""
    name = value.strip().lower()
    return name if name == "*" else name.replace("*", "")


def _means(name: str, token: str) -> bool:
    """A crawler goes by its name, or by the beginning of it."""
    whole = token.strip().lower()
    return name == "*" or (bool(name) and whole.startswith(name))


def _rule(line: str) -> str | None:
    found = _RULE.match(line)
    if found is None:
        return None
    if found["delay"] is not None:
        return f"Crawl-delay: {found['delay'].strip()}"
    denied = found["denied"] if found["deny"] else None
    return f"Disallow: {denied.strip()}" if denied is not None else f"Allow: {found['allowed'].strip()}"


def sane_delay(seconds: float | None) -> float | None:
    """Return a crawl delay that time can be counted with; None where it is none."""
    if seconds is None or not math.isfinite(seconds) or seconds <= 0:
        return None
    return min(seconds, MAX_CRAWL_DELAY)
