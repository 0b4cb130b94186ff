"""Refuses a flow that cannot work when it is made, not when its first parcel fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import jmespath
from jmespath.exceptions import JMESPathError
from lxml import etree  # type: ignore[import-untyped]
from parsel.csstranslator import HTMLTranslator

from lienworker.platforms.core.words import TARGET_WORDS
from lienworker.platforms.flows.templates import leading_name, names_in

if TYPE_CHECKING:
    from lienworker.platforms.flows.model import Capture, Condition, Flow, Repeat, Step

#: Requests of one walk, opening included.
MOST_REQUESTS = 200
#: Rounds of one `repeat`.
MOST_ROUNDS = 100
#: Sessions of one platform at one host.
MOST_SESSIONS = 16
#: The longest that a session is kept, s.
LONGEST_SESSION = 7 * 24 * 3600.0
#: Captured names of one flow.
MOST_CAPTURES = 50

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)
_PART = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
#: Headers that the fetcher makes; the user agent is the operator's word.
_OURS = frozenset(
    {"cookie", "host", "content-length", "transfer-encoding", "connection", "user-agent", "accept-encoding", "expect"}
)
_ABSOLUTE = ("http://", "https://")


class FlowError(ValueError):
    """A flow that cannot work: what is wrong, and the names and numbers that lead to it, from the outside in."""

    def __init__(self, words: str, *where: str | int) -> None:
        super().__init__(words)
        self.where = where


def check_flow(flow: Flow) -> None:
    """Raise FlowError unless the flow can be walked."""
    if not flow.steps:
        raise FlowError("the flow has no step")
    _check_session(flow)
    check_condition(flow.lost, "lost")
    known = {*TARGET_WORDS, *flow.settings}
    _check_headers(flow.headers, {*flow.settings, *TARGET_WORDS}, ())
    checker = _StepChecker(known)
    for group, steps in (("open", flow.open), ("step", flow.steps)):
        for n, step in enumerate(steps):
            checker.check(step, (group, n), is_open=group == "open")
    if not any(step.keep for step in flow.steps):
        raise FlowError('no step keeps a page: say keep = "page" where the parcel\'s page arrives', "step")
    most = sum(step.repeat.most if step.repeat else 1 for step in (*flow.open, *flow.steps) if step.asks)
    if most > MOST_REQUESTS:
        raise FlowError(f"it may need {most} requests, more than {MOST_REQUESTS} for one parcel", "step")


def _check_session(flow: Flow) -> None:
    if flow.session is not None and not 1 <= flow.session <= LONGEST_SESSION:
        raise FlowError("a session lasts from 1s to 7d", "session")
    if not 1 <= flow.sessions <= MOST_SESSIONS:
        raise FlowError(f"sessions must be a number from 1 to {MOST_SESSIONS}", "sessions")
    if flow.sessions > 1 and flow.session is None:
        raise FlowError("sessions needs session: how long each is kept", "sessions")


class _StepChecker:
    """Checks the steps in their order, and learns from each what the next ones may use."""

    def __init__(self, known: set[str]) -> None:
        self._known = known
        self._captured: dict[str, bool] = {}  # whether it is a list
        self._has_page = False
        self._parts: dict[str, bool] = {}  # whether each that keeps it is conditional

    def check(self, step: Step, where: tuple[str | int, ...], *, is_open: bool) -> None:
        self._check_kind(step, where)
        if is_open and (step.keep or step.repeat or step.missing):
            wrong = "keep" if step.keep else "repeat" if step.repeat else "missing"
            raise FlowError(f"a step that opens a session has no {wrong}", *where, wrong)
        for name in ("when", "expect", "missing", "lost"):
            check_condition(getattr(step, name), *where, name)
            self._check_names(list(_condition_texts(getattr(step, name))), (*where, name))
        names = self._check_repeat(step.repeat, (*where, "repeat")) if step.repeat else set()
        self._check_request(step, where, names)
        self._check_capture(step.capture, (*where, "capture"))
        self._check_keep(step, (*where, "keep"))
        self._has_page = self._has_page or step.asks

    def _check_kind(self, step: Step, where: tuple[str | int, ...]) -> None:
        kinds = [name for name in ("get", "post", "submit") if getattr(step, name)]
        if len(kinds) > 1:
            raise FlowError(f"a step is one request: {kinds[0]} or {kinds[1]}", *where, kinds[1])
        for name in ("form", "json"):
            if getattr(step, name) is not None and not step.post:
                raise FlowError(f"{name} belongs to a post", *where, name)
        if step.form is not None and step.json is not None:
            raise FlowError("a post has a form or json, not both", *where, "json")
        if not step.asks and (step.repeat or step.optional):
            wrong = "repeat" if step.repeat else "optional"
            raise FlowError(f"{wrong} needs a request: get, post or submit", *where, wrong)
        if not step.asks and not (step.keep or step.capture or step.expect or step.missing or step.lost):
            raise FlowError("the step does nothing: it needs get, post or submit", *where)
        for name in ("submit", "when"):
            if getattr(step, name) and not self._has_page:
                raise FlowError(f"{name} needs a page, and no step before it asks for one", *where, name)
        if not step.asks and not self._has_page:
            raise FlowError("the first step must ask for a page: get or post", *where)

    def _check_request(self, step: Step, where: tuple[str | int, ...], names: set[str]) -> None:
        key = "get" if step.get else "post"
        if address := step.get or step.post:
            self._check_address(address, (*where, key), names)
        self._check_names([step.form, step.json], (*where, "form" if step.form is not None else "json"), names)
        _check_headers(step.headers, self._known | set(self._captured) | names, where)
        if submit := step.submit:
            check_selector("css", submit.form, *where, "submit")
            self._check_names([submit.click, dict(submit.set)], (*where, "submit"), names)
            if submit.click and not is_plain_name(submit.click) and not list(names_in(submit.click)):
                check_selector("css", submit.click, *where, "submit", "click")

    def _check_address(self, address: str, where: tuple[str | int, ...], names: set[str]) -> None:
        self._check_names([address], where, names)
        first = leading_name(address)
        if first and first in TARGET_WORDS and first != "url":
            raise FlowError(f"an address cannot begin with {{{first}}}, which is no address", *where)
        if not first and not self._has_page and not address.startswith(_ABSOLUTE):
            raise FlowError(f"{address!r} needs https://… or a setting such as {{base_url}} in front", *where)

    def _check_names(self, templates: object, where: tuple[str | int, ...], more: set[str] | None = None) -> None:
        known = self._known | set(self._captured) | (more or set())
        for name in names_in(templates):
            if name not in known:
                there = ", ".join(sorted(known))
                words = f"nobody fills {{{name}}}; there are {there}, and what [settings] declares"
                raise FlowError(words, *where)
            if self._captured.get(name):
                raise FlowError(f"{{{name}}} is a list: use it with repeat = {{ over = {name!r} }}", *where)

    def _check_repeat(self, repeat: Repeat, where: tuple[str | int, ...]) -> set[str]:
        """Return the placeholder that the repeat fills."""
        kinds = [name for name in ("over", "next", "until") if getattr(repeat, name)]
        if len(kinds) != 1:
            raise FlowError("repeat needs one of over, next and until", *where)
        if not 1 <= repeat.most <= MOST_ROUNDS:
            raise FlowError(f"repeat needs a bound: most = 1 to {MOST_ROUNDS}", *where)
        if repeat.over and not self._captured.get(repeat.over):
            raise FlowError(f"no step before captures a list {repeat.over!r} (many = true)", *where)
        if repeat.next:
            check_capture(repeat.next, *where, "next")
        check_condition(repeat.until, *where, "until")
        if repeat.name and not _NAME.fullmatch(repeat.name):
            raise FlowError(f"{repeat.name!r} is no name for a placeholder", *where)
        return {repeat.placeholder}

    def _check_capture(self, captures: Mapping[str, Capture], where: tuple[str | int, ...]) -> None:
        for name, capture in captures.items():
            if not _NAME.fullmatch(name) or name in self._known:
                raise FlowError(f"{name!r} is no name for a captured value, or is taken already", *where, name)
            check_capture(capture, *where, name)
            self._captured[name] = capture.many
        if len(self._captured) > MOST_CAPTURES:
            raise FlowError(f"a flow captures at most {MOST_CAPTURES} values", *where)

    def _check_keep(self, step: Step, where: tuple[str | int, ...]) -> None:
        if not step.keep:
            return
        if not _PART.fullmatch(step.keep):
            raise FlowError(f"{step.keep!r} is no name of a part: use a-z, 0-9 and '_'", *where)
        is_alternative = bool(step.when) and not step.repeat
        if step.keep in self._parts and not (is_alternative and self._parts[step.keep]):
            raise FlowError(f"two steps keep a page as {step.keep!r}, and both may be walked", *where)
        self._parts[step.keep] = is_alternative


def is_plain_name(click: str) -> bool:
    """Whether this names a button, by its name or its id; anything else is CSS."""
    return re.fullmatch(r"[\w$:-]+", click) is not None


def check_condition(condition: Condition | None, *where: str | int) -> None:
    if condition is None:
        return
    if condition.is_empty:
        raise FlowError("the condition is empty: say css, xpath, text, re, json, url or status", *where)
    for kind in ("css", "xpath", "re", "json"):
        for selector in getattr(condition, kind):
            check_selector(kind, selector, *where, kind)
    for pattern in condition.url:
        check_selector("re", pattern, *where, "url")
    if any(not 100 <= status <= 599 for status in condition.status):
        raise FlowError("a status is a number from 100 to 599", *where, "status")
    check_condition(condition.without, *where, "without")


def _condition_texts(condition: Condition | None) -> Iterator[str]:
    while condition is not None:
        yield from condition.text
        condition = condition.without


def check_capture(capture: Capture, *where: str | int) -> None:
    sources = [name for name in ("css", "xpath", "json", "header") if getattr(capture, name)]
    if len(sources) > 1:
        raise FlowError(f"a value is captured by {sources[0]} or by {sources[1]}, not by both", *where)
    if not sources and not capture.re:
        raise FlowError("a capture needs css, xpath, json, header or re", *where)
    for kind in (*sources, *(["re"] if capture.re else [])):
        check_selector(kind, getattr(capture, kind), *where, kind)


def check_selector(kind: str, selector: str, *where: str | int) -> None:
    """Raise FlowError for a selector, path or pattern that cannot be used."""
    try:
        if kind == "css":
            etree.XPath(HTMLTranslator().css_to_xpath(selector))
        elif kind == "xpath":
            etree.XPath(selector)
        elif kind == "json":
            jmespath.compile(selector)
        elif kind == "header" and not _HEADER.fullmatch(selector):
            raise ValueError("it is no name of a header")
        elif kind == "re":
            re.compile(selector)
    except (ValueError, SyntaxError, RuntimeError, etree.XPathError, re.error, JMESPathError) as error:
        raise FlowError(f"{selector!r} cannot be used as {kind}: {error}", *where) from None


def _check_headers(headers: Mapping[str, str], known: set[str], where: tuple[str | int, ...]) -> None:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OURS:
            raise FlowError(f"the header {name!r} cannot be set by a flow", *where, "headers", name)
        if not value.isprintable() or not value.isascii():
            raise FlowError(f"the value of the header {name!r} is not plain text", *where, "headers", name)
        if strange := set(names_in(value)) - known:
            raise FlowError(f"nobody fills {{{strange.pop()}}}", *where, "headers", name)
