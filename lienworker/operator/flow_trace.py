"""Each step of a walk, told to a person as it goes. What makes a session is secret, and is never shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote

from lienworker.errors import PageError
from lienworker.fetching import Fetched, FetchFailed, FetchOutcome, Jar, redact_url
from lienworker.platforms import Page
from lienworker.platforms.flows import Ask, Flow, Step
from lienworker.platforms.flows.matching import values_of
from lienworker.platforms.flows.templates import names_in

HIDDEN = "[secret]"
#: Shorter values (an id of a list, a flag) are in too many places to be told apart from a secret.
_SHORTEST_SECRET = 6
_LONGEST_SHOWN = 120
_SHOWN_FIELDS = 12


class FlowTrace:
    """Tells each request and its reply; with `in_full` also what was sent, captured and kept."""

    def __init__(self, flow: Flow, tell: Callable[[str], None], *, in_full: bool = False) -> None:
        self.last: Page | None = None
        """The last reply."""
        self.label = ""
        """The step that it was the reply to."""
        self._flow = flow
        self._tell = tell
        self._in_full = in_full
        self._secrets: set[str] = {value for value in map(flow.settings.get, _in_headers(flow)) if value}

    def __call__(self, ask: Ask, outcome: FetchOutcome, jar: Jar) -> None:
        self.label = ask.label
        self.last = reply_of(ask, outcome)
        self._learn(ask.label, jar)
        self._tell(f"{ask.label:<8} {ask.method} {self.without_secrets(redact_url(ask.url))}: {self._reply(outcome)}")
        if self._in_full:
            for line in self._details(ask):
                self._tell(f"{'':<8} {self.without_secrets(line)}")

    def save(self, folder: Path, name: str) -> Path | None:
        """Save the last reply, without the session's secrets; return where it is."""
        if self.last is None or not self.last.body:
            return None
        suffix = "json" if self.last.is_json else "html"
        place = folder / f"{name}-{self.label.replace(' ', '-')}.{suffix}"
        place.write_text(self.without_secrets(self.last.text), encoding="utf-8")
        return place

    def without_secrets(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            for spelled in {secret, quote(secret, "")}:
                text = text.replace(spelled, HIDDEN)
        return text

    def _reply(self, outcome: FetchOutcome) -> str:
        if isinstance(outcome, Fetched):
            moved = f", at {redact_url(outcome.url)}" if outcome.redirects else ""
            return self.without_secrets(f"{outcome.status}, {len(outcome.body):,} bytes{moved}")
        return self.without_secrets(outcome.detail) if isinstance(outcome, FetchFailed) else "not modified"

    def _learn(self, label: str, jar: Jar) -> None:
        """Remember the secrets of the session: its cookies, what opens it, and what goes into a header."""
        found = [cookie["value"] for cookie in jar.dump()]
        for name, value in self._captured(label):
            if label.startswith("open") or name in _in_headers(self._flow):
                found.append(value)
        self._secrets.update(value for value in found if len(value) >= _SHORTEST_SECRET)

    def _details(self, ask: Ask) -> Iterator[str]:
        if ask.body:
            yield f"sent {_shown_body(ask)}"
        for name, value in self._captured(ask.label):
            yield f"captured {name}: {value[:_LONGEST_SHOWN]}"
        step = self._step(ask.label)
        if step is not None and step.keep and self.last is not None and self.last.status < 400:
            yield f"to be kept as {step.keep}"

    def _captured(self, label: str) -> Iterator[tuple[str, str]]:
        step = self._step(label)
        if step is None or self.last is None:
            return
        for name, capture in step.capture.items():
            try:
                values = values_of(capture, self.last)
            except PageError:
                continue
            yield from ((name, value) for value in values)

    def _step(self, label: str) -> Step | None:
        kind, _, number = label.partition(" ")
        steps = {"open": self._flow.open, "step": self._flow.steps}.get(kind, ())
        return steps[int(number) - 1] if number.isdigit() and 0 < int(number) <= len(steps) else None


def _in_headers(flow: Flow) -> set[str]:
    """Return the placeholders that headers are filled with."""
    return set(names_in([dict(flow.headers), *(dict(step.headers) for step in (*flow.open, *flow.steps))]))


def reply_of(ask: Ask, outcome: FetchOutcome) -> Page | None:
    """Return the reply as a page for the flow to judge, an error reply too; None where there was none."""
    if isinstance(outcome, Fetched):
        page = Page(outcome.url, outcome.body, outcome.content_type, outcome.charset, outcome.status)
        page.headers = outcome.headers
        return page
    if isinstance(outcome, FetchFailed) and outcome.status is not None and outcome.status >= 400:
        return Page(ask.url, outcome.body or b"", "text/html", None, outcome.status)
    return None


def _shown_body(ask: Ask) -> str:
    """Return the names of a form's fields, or a JSON body: hidden fields are long, and belong to the session."""
    text = (ask.body or b"").decode("utf-8", "replace")
    if not re.match(r"[\w.$:%+-]+=", text):
        return text[:_LONGEST_SHOWN]
    names = [name for name, _ in parse_qsl(text, keep_blank_values=True)]
    more = f" and {len(names) - _SHOWN_FIELDS} more" if len(names) > _SHOWN_FIELDS else ""
    return f"{len(names)} fields: {', '.join(names[:_SHOWN_FIELDS])}{more}"
