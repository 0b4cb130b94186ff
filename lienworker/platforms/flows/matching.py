"""Whether a page has what a condition says, and the values that a step captures from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import jmespath

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page
from lienworker.platforms.flows.model import Capture, Condition
from lienworker.platforms.flows.templates import LONGEST_VALUE, Words, fill_text

#: Values of one captured list.
MOST_VALUES = 200
#: Characters of a page that patterns are searched for in.
_SEARCHED = 1_000_000
_SHOWN = "//text()[not(ancestor::script) and not(ancestor::style) and not(ancestor::noscript)]"


def holds(condition: Condition, page: Page, words: Words) -> bool:
    """Whether the page has it. An error reply only has what is said of its status."""
    if page.status >= 400 and not condition.status:
        return False
    return _holds(condition, page, words)


def _holds(condition: Condition, page: Page, words: Words) -> bool:
    kinds = (
        (condition.status, lambda status: page.status == status),
        (condition.url, lambda pattern: re.search(pattern, page.url, re.I) is not None),
        (condition.text, lambda text: _fold(fill_text(text, words)) in _shown(page)),
        (condition.re, lambda pattern: re.search(pattern, page.text[:_SEARCHED]) is not None),
        (condition.json, lambda path: _json(page, path) not in (None, "", [], {}, False)),
        (condition.css, lambda css: not page.is_json and bool(page.selector.css(css))),
        (condition.xpath, lambda xpath: not page.is_json and _xpath_holds(page, xpath)),
    )
    if not all(any(map(test, wanted)) for wanted, test in kinds if wanted):
        return False
    return condition.without is None or not _holds(condition.without, page, words)


def values_of(capture: Capture, page: Page) -> list[str]:
    """What a capture finds, each only once and none of it blank or endless. Raises PageError for too much."""
    found: list[str] = []
    for text in _sources(capture, page):
        value = _cut(capture.re, text)
        if value and value not in found:
            found.append(value)
        if found and not capture.many:
            break
    if any(len(value) > LONGEST_VALUE for value in found):
        raise PageError("unexpected_page", f"a captured value is longer than {LONGEST_VALUE:,} characters")
    if len(found) > MOST_VALUES:
        raise PageError("unexpected_page", f"more than {MOST_VALUES} values are captured")
    return found


def _sources(capture: Capture, page: Page) -> Iterable[str]:
    if capture.header:
        return [value] if (value := page.headers.get(capture.header)) else []
    if capture.json:
        return _texts(_json(page, capture.json))
    if capture.css or capture.xpath:
        if page.is_json:
            return []
        selector = page.selector
        return (selector.css(capture.css) if capture.css else selector.xpath(capture.xpath)).getall()
    return [match[0] for match in re.finditer(capture.re, page.text[:_SEARCHED])]


def _cut(pattern: str, text: str) -> str:
    if not pattern:
        return text.strip()
    match = re.search(pattern, text)
    if match is None:
        return ""
    return ((match[1] if match.re.groups else match[0]) or "").strip()


def _texts(value: Any) -> list[str]:
    """The scalars of a JSON value, as texts."""
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, bool) or value is None or isinstance(value, dict):
        return []
    return [str(value)]


def _json(page: Page, path: str) -> Any:
    try:
        return jmespath.search(path, page.json()) if page.is_json else None
    except (jmespath.exceptions.JMESPathError, RecursionError):
        return None


def _xpath_holds(page: Page, xpath: str) -> bool:
    found = page.selector.root.xpath(xpath)
    return bool(found)


def _shown(page: Page) -> str:
    """The text that a person sees, in lower case and with single spaces."""
    return page.memo("shown", lambda: _fold(_shown_text(page)))


def _shown_text(page: Page) -> str:
    if page.is_json or "<" not in page.text:
        return page.text
    return " ".join(page.selector.xpath(_SHOWN).getall())


def _fold(text: str) -> str:
    return " ".join(text.split()).lower()
