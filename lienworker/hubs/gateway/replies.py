"""What a reply of the Gateway proves. Answers that look like success and are not are told apart here."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from lienworker.hubs.gateway import jsontext

LONGEST_RETRY_AFTER = 86_400.0
_MOST_ERRORS = 1000
_LONGEST_ERROR = 1000
_MOST_COMMANDS, _LONGEST_COMMAND = 20, 100
_LONGEST_WORDS = 500
#: Of an HTML page no more is looked at: the patterns below take longer than in proportion.
_LONGEST_HTML = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResultsReply:
    """The counts for one batch. Only `all_stored` is proof, and only for the batch as a whole."""

    sent: int
    inserted: int
    updated: int
    failed: int
    errors: tuple[str, ...] = ()

    @property
    def stored(self) -> int:
        return self.inserted + self.updated

    @property
    def all_stored(self) -> bool:
        return self.stored == self.sent

    @property
    def processed(self) -> int:
        """How many the Gateway looked at before it stopped; the rest was skipped in silence."""
        return self.stored + self.failed


@dataclass(frozen=True, slots=True)
class RawReply:
    """Where the Gateway says it put a raw file."""

    path: str


@dataclass(frozen=True, slots=True)
class RawFailure:
    """A 200 that is none: `{"status":"error"}`."""

    message: str


@dataclass(frozen=True, slots=True)
class ClosedReply:
    """`success` false: unknown, already closed, or another worker's. There is nothing left to do in any case."""

    success: bool


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """`commands` are JSON values as they came; `command_names` are the words in them."""

    acknowledged: bool
    commands: tuple[Any, ...] = ()

    @property
    def command_names(self) -> tuple[str, ...]:
        return tuple(name for name in map(_command_name, self.commands) if name)


def _command_name(command: Any) -> str:
    """The contract does not say what a command looks like: a word, or an object with the word under a usual name."""
    if isinstance(command, dict):
        command = next((command[key] for key in ("command", "name", "type", "action") if key in command), "")
    return plain_words(command)[:_LONGEST_COMMAND].lower() if isinstance(command, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def parse_results(value: Any, sent: int) -> ResultsReply | None:
    """None for counts that cannot be true: more than was sent, or nothing said about anything."""
    if not isinstance(value, dict):
        return None
    counts = [_count(value.get(name)) for name in ("inserted", "updated", "failed")]
    inserted, updated, failed = counts
    if inserted is None or updated is None or failed is None:
        return None
    reply = ResultsReply(sent, inserted, updated, failed, _errors(value.get("errors")))
    if reply.processed > sent or (sent and not reply.processed):
        return None
    return reply


def _errors(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [] if value is None else [value]
    words = (one if isinstance(one, str) else jsontext.encode(one) for one in listed[:_MOST_ERRORS])
    return tuple(one[:_LONGEST_ERROR] for one in words)


def parse_raw(value: Any) -> RawReply | RawFailure | None:
    """Only `status: ok` is success."""
    if not isinstance(value, dict) or not isinstance(value.get("status"), str):
        return None
    if value["status"] == "ok":
        return RawReply(_short(value.get("path")))
    said = (value.get(name) for name in ("message", "error", "status"))
    return RawFailure(next(filter(None, map(_short, said)), "no words"))


def _short(value: Any) -> str:
    """Return a text or a number as words that a person reads; nothing of what may be nested."""
    return plain_words(str(value)) if isinstance(value, str | int | float) and value else ""


def parse_closed(value: Any) -> ClosedReply | None:
    success = value.get("success") if isinstance(value, dict) else None
    return ClosedReply(success) if isinstance(success, bool) else None


def parse_heartbeat(value: Any) -> HeartbeatReply | None:
    """`commands` may be null, missing, a list, or (leniently) a single command."""
    acknowledged = value.get("acknowledged") if isinstance(value, dict) else None
    if not isinstance(acknowledged, bool):
        return None
    commands = value.get("commands")
    listed = commands if isinstance(commands, list) else [] if commands is None else [commands]
    return HeartbeatReply(acknowledged, tuple(one for one in listed[:_MOST_COMMANDS] if one is not None))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait by `Retry-After` (seconds or HTTP date), else by `X-RateLimit-Reset`; None if neither says.

    `headers` is looked up as it is: pass a case-insensitive mapping. Dates count from the reply's own `Date`
    where it has one, so that a wrong clock on this side shortens no pause.
    """
    here = _http_date(headers.get("Date")) or (time.time() if now is None else now)
    asked = headers.get("Retry-After", "")
    seconds = _number(asked)
    if seconds is None and (date := _http_date(asked)) is not None:
        seconds = date - here
    if seconds is None:
        seconds = _reset(headers.get("X-RateLimit-Reset", ""), here)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _http_date(text: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(text) if text else None
        if moment is None:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _reset(text: str, here: float) -> float | None:
    """Deployments differ: seconds from now, seconds since 1970, or milliseconds since 1970."""
    number = _number(text)
    if number is None or number < 1e9:
        return number
    return (number / 1000 if number > 1e11 else number) - here


def error_words(body: str, content_type: str = "") -> str:
    """What an error reply says, in one short line, whether it is text, JSON, HTML or nothing."""
    text = body.strip()
    if "html" in content_type or text[:200].lower().lstrip().startswith(("<!doctype", "<html")):
        page = text[:_LONGEST_HTML]
        title = _TITLE.search(page)
        return "an HTML page: " + plain_words(title[1] if title else _TAGS.sub(" ", page))
    try:
        return plain_words(_json_words(jsontext.decode(text)) or text)
    except ValueError:
        return plain_words(text)


def _json_words(value: Any) -> str:
    inner = value.get("error", value) if isinstance(value, dict) else None
    if isinstance(inner, str):
        return inner
    if not isinstance(inner, dict):
        return ""
    return ": ".join(filter(None, (_short(inner.get(name)) for name in ("code", "message"))))


def plain_words(text: str) -> str:
    """One line without control characters, cut to a length that a person reads."""
    line = " ".join(_CONTROL.sub(" ", text[: 4 * _LONGEST_WORDS]).split())
    return line if len(line) <= _LONGEST_WORDS else line[: _LONGEST_WORDS - 1] + "…"


def scrubber(secrets: tuple[str, ...]) -> Callable[[str], str]:
    """A function that takes secrets out of words, also where the other side echoed them."""
    known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def scrub(words: str) -> str:
        for secret in known:
            words = words.replace(secret, "[secret]")
        return words

    return scrub
