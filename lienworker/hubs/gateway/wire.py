"""The contract with the Gateway in one place: what comes in, what goes out, what an answer proves. All pure.

Reading tasks is in `work`, checking results before sending in `sanitize`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

_EXTENSION = re.compile(r"(\.[a-z0-9]{1,8}){1,3}")
#: What a raw file's name has no room for: dots in a row, and all but letters, digits and single dots.
_UNNAMABLE = re.compile(r"\.{2,}|[^A-Za-z0-9.]+")
#: Characters for platform, state, county, parcel and part. With 24 digits and an extension that makes 200 at most.
_NAME_LENGTHS = (24, 8, 32, 56, 24)
_NAME_DIGITS = 24


def result_item(
    *,
    task_id: str,
    parcel_id: str,
    platform: str,
    state: str,
    county: str,
    data: Mapping[str, Any],
    scraped_at: str,
    parse_duration_ms: int,
    raw_html_hash: str | None = None,
) -> dict[str, Any]:
    """Return an item for `/internal/results`; to be passed through `fit_result` before it is sent."""
    item: dict[str, Any] = {
        "task_id": task_id,
        "parcel_id": parcel_id,
        "platform": platform,
        "state": state,
        "county": county,
        "data": data,
        "scraped_at": scraped_at,
        "parse_duration_ms": parse_duration_ms,
    }
    return item | ({"raw_html_hash": raw_html_hash} if raw_html_hash else {})


def heartbeat_body(
    *,
    active_tasks: int,
    completed_last_minute: int,
    failed_last_minute: int,
    platforms: Sequence[str],
    cpu_percent: float,
    memory_percent: float,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the body of a heartbeat. `extra` (queue depths) never replaces a field of the contract."""
    contract = {
        "active_tasks": int(active_tasks),  # a float is a 400
        "completed_last_minute": int(completed_last_minute),
        "failed_last_minute": int(failed_last_minute),
        "platforms": list(platforms),
        "cpu_percent": float(cpu_percent),
        "memory_percent": float(memory_percent),
    }
    return {**(extra or {}), **contract}


def raw_name(platform: str, state: str, county: str, parcel_id: str, part: str, raw_sha256: str, ext: str) -> str:
    """Return a raw file's name at the Gateway, where all workers share one flat folder and a same name overwrites.

    It stores neither task id, hash nor metadata, so the name is all by which a person finds a parcel's page there. The
    digits at its end make it unique. It is never longer than the 200 bytes at which the Gateway cuts a name (and its
    extension) off, and has nothing in it that the Gateway takes out.
    """
    parts = (platform, state, county, parcel_id, part)
    shown = filter(None, map(_name_part, parts, _NAME_LENGTHS))
    # A JSON list is the join: no two different tuples read the same.
    digest = hashlib.sha256(json.dumps([*parts, raw_sha256]).encode("ascii")).hexdigest()
    return "_".join((*shown, digest[:_NAME_DIGITS])) + _name_suffix(ext)


def hashed_raw_name(platform: str, state: str, county: str, parcel_id: str, raw_sha256: str, ext: str) -> str:
    """Return the name under which raw files were sent up to version 0.1: what was sent keeps it."""
    identity = json.dumps([platform, state, county, parcel_id, raw_sha256])
    return hashlib.sha256(identity.encode("ascii")).hexdigest() + _name_suffix(ext)


def _name_part(text: str, length: int) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _UNNAMABLE.sub(lambda found: "." if set(found[0]) == {"."} else "-", plain)[:length].strip(".-")


def _name_suffix(ext: str) -> str:
    suffix = "." + ext.lower().lstrip(".")
    return suffix if _EXTENSION.fullmatch(suffix) else ".bin"


def task_segment(task_id: str) -> str | None:
    """Return a task id as one segment of a path; None where no URL can name it.

    A `/` ends the segment however it is written, and `.` and `..` are walked, not named. All else is written as Go's
    `URL.EscapedPath` writes it: the Gateway decodes a path only if it would encode it the same way, and otherwise looks
    for a task whose id is the encoded text.
    """
    if task_id in {"", ".", ".."} or "/" in task_id:
        return None
    try:
        return quote(task_id, safe="$&+,:;=@")
    except UnicodeEncodeError:  # half a character
        return None


# JSON that comes from outside, read without surprises.


MAX_DEPTH = 100

# Possessive (`++`, `*+`): a text that ends in the middle of a string is given up at once, not tried again and again.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_PLAIN = re.compile(r'[^"\[\]{}]*+')
#: So many strings and brackets are looked at in one text to find where objects end: about a second's work.
_MOST_MARKS = 2_000_000


def _int(digits: str) -> int | str:
    # Python refuses to convert more than 4,300 digits; such a number stays the text that it was.
    return int(digits) if len(digits) < 4000 else digits


def _float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_DECODER = json.JSONDecoder(parse_int=_int, parse_float=_float, parse_constant=lambda _: None)


def decode(body: bytes | str) -> Any:
    """Return the value in `body`. Raises ValueError for what is not JSON, absurd nesting included."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        return _DECODER.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def objects_in_array(text: str, start: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each object of an array begins and ends, and how many values are in it, without decoding any.

    All else in the array is passed over. It ends with the array, or where the text breaks off, or where it has more
    in it than anybody would write. A value takes 100 to 200 bytes of memory once it is decoded.
    """
    depth, begin, values = 0, start, 0
    position = _PLAIN.match(text, start).end()  # type: ignore[union-attr]  # matches the empty text
    for _ in range(_MOST_MARKS):
        mark = _STRING_OR_BRACKET.match(text, position)
        if mark is None or mark[1] == "":  # the end, or a string that has none
            return
        if (character := text[position]) in "[{":
            begin, values = (begin, values + 1) if depth else (position, 1)
            depth += 1
        elif character in "]}":
            depth -= 1
            if depth < 0:
                return
            if not depth and text[begin] == "{":
                yield begin, mark.end(), values
        position = _PLAIN.match(text, mark.end()).end()  # type: ignore[union-attr]
        values += text.count(",", mark.end(), position)


def encode(value: Any) -> str:
    """Return plain ASCII JSON of anything that `decode` returned; what is nested too deeply becomes null."""
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return json.dumps(_pruned(value, MAX_DEPTH), separators=(",", ":"))


def _pruned(value: Any, room: int) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(inner, room - 1) for key, inner in value.items()} if room else None
    if isinstance(value, list):
        return [_pruned(inner, room - 1) for inner in value] if room else None
    return value


# What a reply of the Gateway proves. Answers that look like success and are not are told apart here.


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
        """Return how many the Gateway looked at before it stopped; the rest was skipped in silence."""
        return self.stored + self.failed


@dataclass(frozen=True, slots=True)
class RawReply:
    """Where the Gateway says it put a raw file, and the name under which it was sent."""

    path: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class RawFailure:
    """A 200 that is none: `{"status":"error"}`."""

    message: str


@dataclass(frozen=True, slots=True)
class ClosedReply:
    """`success` false: unknown, already closed, or another worker's."""

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
    """Return the word of a command, or the word under a usual name of an object: the contract does not say which."""
    if isinstance(command, dict):
        command = next((command[key] for key in ("command", "name", "type", "action") if key in command), "")
    return plain_words(command)[:_LONGEST_COMMAND].lower() if isinstance(command, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def parse_results(value: Any, sent: int) -> ResultsReply | None:
    """Read the counts; None for some that cannot be true: more than was sent, or nothing said about anything."""
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
    words = (one if isinstance(one, str) else encode(one) for one in listed[:_MOST_ERRORS])
    return tuple(one[:_LONGEST_ERROR] for one in words)


def parse_raw(value: Any) -> RawReply | RawFailure | None:
    """Read the reply to a raw file; only `status: ok` is success."""
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
    """Read the reply to a heartbeat; `commands` may be null, missing, a list, or (leniently) a single command."""
    acknowledged = value.get("acknowledged") if isinstance(value, dict) else None
    if not isinstance(acknowledged, bool):
        return None
    commands = value.get("commands")
    listed = commands if isinstance(commands, list) else [] if commands is None else [commands]
    return HeartbeatReply(acknowledged, tuple(one for one in listed[:_MOST_COMMANDS] if one is not None))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return seconds to wait by `Retry-After` (seconds or HTTP date) or `X-RateLimit-Reset`; None if neither says.

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
    """Return seconds from now; deployments send these, or seconds or milliseconds since 1970."""
    number = _number(text)
    if number is None or number < 1e9:
        return number
    return (number / 1000 if number > 1e11 else number) - here


def error_words(body: str, content_type: str = "") -> str:
    """Return what an error reply says, in one short line, whether it is text, JSON, HTML or nothing."""
    text = body.strip()
    if "html" in content_type or text[:200].lower().lstrip().startswith(("<!doctype", "<html")):
        page = text[:_LONGEST_HTML]
        title = _TITLE.search(page)
        return "an HTML page: " + plain_words(title[1] if title else _TAGS.sub(" ", page))
    try:
        return plain_words(_json_words(decode(text)) or text)
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
    """Return one line without control characters, cut to a length that a person reads."""
    line = " ".join(_CONTROL.sub(" ", text[: 4 * _LONGEST_WORDS]).split())
    return line if len(line) <= _LONGEST_WORDS else line[: _LONGEST_WORDS - 1] + "…"


def scrubber(secrets: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that takes secrets out of text, also where the other side echoed them."""
    known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def scrub(words: str) -> str:
        for secret in known:
            words = words.replace(secret, "[secret]")
        return words

    return scrub
