"""Walks a flow: from the last reply to the next request, to the pages of the parcel, or to a reason why there are none.

Nothing here asks anybody: whoever drives a walk sends each request, hands the reply back, and keeps the cookies. So a
walk is tested without a network, and politeness, limits and the address guard are the fetcher's, as for any request.

    walk = Walk(flow, target, session)
    move = walk.start()
    while isinstance(move, Ask):
        move = walk.reply(...)          # the page, error replies (400 and above) too
    # Done: the pages. Ended: why there are none. Refused: an error reply that the flow has no word for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page, Target
from lienworker.platforms.core.words import TARGET_WORDS, words_of
from lienworker.platforms.flows.forms import MOST_BODY, base_of, submission_of
from lienworker.platforms.flows.matching import holds, values_of
from lienworker.platforms.flows.model import Flow, Step
from lienworker.platforms.flows.templates import (
    UnfilledError,
    fill_address,
    fill_header,
    fill_json,
    fill_text,
    names_in,
)

_GATE = re.compile(r"log[io]n|sign[-_]?in|disclaimer|agreement|terms", re.I)
_NOT_OFFERED = frozenset({404, 410})
Value = str | list[str]


@dataclass(frozen=True, slots=True)
class OpenSession:
    """What opening a session has found out: captured values, and the address of the page that it ended on."""

    values: Mapping[str, Value] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """The next request."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    safe: bool
    """Whether it may be sent again by itself: a GET, or a POST that the flow says so of."""
    label: str
    """Which step it is, for people: `open 1`, `step 3`."""


@dataclass(frozen=True, slots=True)
class Done:
    """All pages that the flow keeps, in their order, by the names of their parts."""

    parts: Mapping[str, Page]


@dataclass(frozen=True, slots=True)
class Ended:
    """The walk is over without pages. `reason` is a stable keyword, `page` the reply that it ended at."""

    reason: str
    detail: str
    retryable: bool
    page: Page | None
    label: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An error reply that the flow has no word for: what the fetcher says of it stands."""

    label: str


Move = Ask | Done | Ended | Refused
SESSION_LOST = "session_lost"
PARCEL_NOT_FOUND = "parcel_not_found"
UNEXPECTED_PAGE = "unexpected_page"


class _EndError(Exception):
    def __init__(self, reason: str, detail: str, *, retryable: bool = True) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.retryable = retryable


class _RefusedError(Exception):
    pass


def can_walk(flow: Flow, target: Target) -> bool:
    """Whether the target brings every word that the flow needs of it."""
    known = _words(flow, target)
    needed = {name for step in (*flow.open, *flow.steps) for name in _names_of(step)}
    needed |= set(names_in(dict(flow.headers)))
    return all(name in known for name in needed if name in TARGET_WORDS or name in flow.settings)


def first_address(flow: Flow, target: Target) -> str | None:
    """An address for the target's task: of the flow's first request, with the parcel in it. It is never asked for."""
    if not can_walk(flow, target):
        return None
    step = (*flow.open, *flow.steps)[0]
    words = _words(flow, target)
    address = fill_address(step.get or step.post, words, "")
    if "parcel_id" not in words or words["parcel_id"] in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}{urlencode({'parcel_id': words['parcel_id']})}"


class Walk:
    """One walk of a flow for one target: in a session that is open already, or opening one first."""

    def __init__(self, flow: Flow, target: Target, session: OpenSession | None = None) -> None:
        self.opened = session
        """The session, once it is open."""
        self.requests = 0
        self._flow = flow
        self._session = session
        self._words = _words(flow, target)
        self._values: dict[str, Value] = dict(session.values) if session else {}
        self._parts: dict[str, Page] = {}
        self._page: Page | None = None
        self._label = ""
        self._moves = self._walk()

    def start(self) -> Move:
        return self._advance(None)

    def reply(self, page: Page) -> Move:
        """Take the reply to the last request."""
        return self._advance(page)

    def _advance(self, page: Page | None) -> Move:
        try:
            ask = self._moves.send(page)
        except StopIteration:
            return Done(dict(self._parts))
        except _RefusedError:
            return Refused(self._label)
        except _EndError as end:
            return Ended(end.reason, f"{self._label}: {end.detail}", end.retryable, page, self._label)
        except UnfilledError as problem:
            return Ended(UNEXPECTED_PAGE, f"{self._label}: {problem}", True, page, self._label)
        except PageError as problem:
            retryable = problem.retryable or problem.reason == UNEXPECTED_PAGE
            return Ended(problem.reason, f"{self._label}: {problem.detail}", retryable, page, self._label)
        self.requests += 1
        return ask

    def _walk(self) -> Generator[Ask, Page | None, None]:
        if self._session is None:
            for n, step in enumerate(self._flow.open, 1):
                yield from self._take(step, f"open {n}", is_open=True)
            self.opened = OpenSession(dict(self._values), self._page.url if self._page else "")
        elif _needs_page(self._flow.steps[0]):
            yield from self._enter(self._session.url)
        for n, step in enumerate(self._flow.steps, 1):
            yield from self._take(step, f"step {n}", is_open=False)
        if not self._parts:
            raise _EndError(UNEXPECTED_PAGE, "the flow has come to its end without a page of the parcel")

    def _enter(self, url: str) -> Generator[Ask, Page | None, None]:
        """Begin where opening has ended: hidden fields are good for one reply only, so the page is asked for again."""
        self._label = "start"
        page = yield self._asking(Step(get="{url}"), {"url": url})
        assert page is not None
        if page.status >= 400:
            self._end_if_lost(Step(), page)
            raise _RefusedError
        self._end_if_gate(url, page, fits=False)
        self._page = page

    def _take(self, step: Step, label: str, *, is_open: bool) -> Generator[Ask, Page | None, None]:
        self._label = label
        if step.when and not (self._page and holds(step.when, self._page, self._texts())):
            return
        if not step.asks:
            assert self._page is not None
            self._judge(step, self._page, self._page.url, is_open=is_open)
            self._use(step, self._page, step.keep)
        elif step.repeat:
            yield from self._rounds(step)
        else:
            yield from self._once(step, {}, step.keep, is_open=is_open)

    def _once(
        self, step: Step, more: Mapping[str, str], keep: str, *, is_open: bool = False
    ) -> Generator[Ask, Page | None, bool]:
        """Ask once; return whether the site offers the page."""
        ask = self._asking(step, more)
        page = yield ask
        assert page is not None
        if not self._judge(step, page, ask.url, is_open=is_open):
            return False
        self._page = page
        self._use(step, page, keep)
        return True

    def _rounds(self, step: Step) -> Generator[Ask, Page | None, None]:
        repeat, page = step.repeat, self._page
        assert repeat is not None
        if repeat.over:
            for n, item in enumerate(_items(self._values.get(repeat.over))[: repeat.most], 1):
                self._page = page  # each item begins at the page that lists them
                yield from self._once(step, {repeat.placeholder: item}, _numbered(step.keep, n))
            return
        link = ""
        for n in range(1, repeat.most + 1):
            asked = Step(**{**vars(step), "get": "{next}", "post": "", "form": None, "json": None, "submit": None})
            more = {repeat.placeholder: str(n), "next": link}
            if not (yield from self._once(asked if link else step, more, _numbered(step.keep, n))):
                return
            assert self._page is not None
            if repeat.until and holds(repeat.until, self._page, self._texts()):
                return
            if repeat.next:
                found = values_of(repeat.next, self._page)
                if not found:
                    return
                link = found[0]

    def _asking(self, step: Step, more: Mapping[str, str]) -> Ask:
        words = {**self._texts(), **more}
        base = base_of(self._page) if self._page else ""
        headers = {name: fill_header(value, words) for name, value in {**self._flow.headers, **step.headers}.items()}
        if self._page:
            headers.setdefault("Referer", self._page.url)
        if step.submit:
            assert self._page is not None
            made = submission_of(self._page, step.submit, words)
            return Ask(
                made.method, made.url, {**headers, **made.headers}, made.body, step.safe or made.body is None,
                self._label,
            )  # fmt: skip
        if step.get:
            return Ask("GET", fill_address(step.get, words, base), headers, None, True, self._label)
        body, kind = _body(step, words)
        headers.setdefault("Content-Type", kind)
        return Ask("POST", fill_address(step.post, words, base), headers, body, step.safe, self._label)

    def _judge(self, step: Step, page: Page, asked: str, *, is_open: bool) -> bool:
        """Return whether this is the page that the step asked for; False where the site need not offer it."""
        self._end_if_lost(step, page)
        words = self._texts()
        if step.missing and holds(step.missing, page, words):
            if step.optional:
                return False
            raise _EndError(PARCEL_NOT_FOUND, "the site has no such parcel", retryable=False)
        if page.status >= 400:
            if step.optional and page.status in _NOT_OFFERED:
                return False
            raise _RefusedError
        fits = step.expect is None or holds(step.expect, page, words)
        if not is_open:
            self._end_if_gate(asked, page, fits=fits and step.expect is not None)
        if not fits:
            raise _EndError(UNEXPECTED_PAGE, "the page has nothing of what the flow expects there")
        return True

    def _end_if_lost(self, step: Step, page: Page) -> None:
        words = self._texts()
        if any(condition and holds(condition, page, words) for condition in (step.lost, self._flow.lost)):
            raise _EndError(SESSION_LOST, "the site says that the session is over")

    def _end_if_gate(self, asked: str, page: Page, *, fits: bool) -> None:
        """A page that leads in (a log-in, a disclaimer) where another was asked for: the session is over."""
        if fits:
            return
        is_elsewhere = urlsplit(page.url).path != urlsplit(asked).path
        if is_elsewhere and _GATE.search(urlsplit(page.url).path) and not _GATE.search(urlsplit(asked).path):
            raise _EndError(SESSION_LOST, "the site leads to its log-in or its disclaimer")
        words = self._texts()
        if any(step.when and holds(step.when, page, words) for step in self._flow.open):
            raise _EndError(SESSION_LOST, "the site shows a page that opens a session")

    def _use(self, step: Step, page: Page, keep: str) -> None:
        for name, capture in step.capture.items():
            found = values_of(capture, page)
            if found or capture.many:
                self._values[name] = found if capture.many else found[0]
            elif not capture.optional:
                raise _EndError(UNEXPECTED_PAGE, f"the page has no {name!r} to capture")
        if keep:
            self._parts[keep] = page

    def _texts(self) -> dict[str, str]:
        return {**self._words, **{name: value for name, value in self._values.items() if isinstance(value, str)}}


def _needs_page(step: Step) -> bool:
    return bool(step.submit or step.when or not step.asks)


def _numbered(keep: str, n: int) -> str:
    return f"{keep}-{n}" if keep else ""


def _items(value: Value | None) -> list[str]:
    return value if isinstance(value, list) else []


def _body(step: Step, words: Mapping[str, str]) -> tuple[bytes, str]:
    if step.json is not None:
        body, kind = json.dumps(fill_json(step.json, words)).encode(), "application/json"
    else:
        fields = [(name, fill_text(value, words)) for name, value in (step.form or {}).items()]
        body, kind = urlencode(fields).encode(), "application/x-www-form-urlencoded"
    if len(body) > MOST_BODY:
        raise UnfilledError("the request is too large")
    return body, kind


def _words(flow: Flow, target: Target) -> dict[str, str]:
    """The words that are known before the first step. A setting that has a value is not the target's to change."""
    of_target = words_of(target)
    words = {name: str(of_target[name]) for name in TARGET_WORDS if of_target.get(name)}
    for name, value in flow.settings.items():
        if word := value or of_target.get(name):
            words[name] = str(word)
    return words


def _names_of(step: Step) -> Any:
    conditions = (step.when, step.expect, step.missing, step.lost)
    texts = [text for condition in conditions if condition for text in condition.text]
    submit = [step.submit.click, dict(step.submit.set)] if step.submit else []
    return names_in([step.get, step.post, step.form, step.json, dict(step.headers), texts, submit])
