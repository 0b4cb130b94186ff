"""Make a result fit for the Gateway before it is sent, or say why that cannot be done.

One item that the Gateway cannot read rejects its whole batch without a word of detail, so none may leave unchecked.
Inside `data` a value that it would choke on is fixed and the change is named. The four keys are never changed:
a changed key is another parcel.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lienworker.hubs.gateway.wire import MAX_DEPTH

KEY_LIMITS = {"parcel_id": 255, "platform": 64, "state": 8, "county": 255}
LARGEST_EXACT_INT = 2**53
LARGEST_DURATION_MS = 2**31 - 1
_MOST_CHANGES = 20

_SURROGATE = re.compile("[\ud800-\udfff]")
_STRICT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z")
_FIELDS = ("task_id", *KEY_LIMITS, "data", "scraped_at", "parse_duration_ms", "raw_html_hash")


class WrittenItem(dict[str, Any]):
    """An item whose JSON is written already; what it is about can be asked for, its data is in the text alone."""

    def __init__(self, item: Mapping[str, Any], text: str) -> None:
        super().__init__(item)
        self.text = text


@dataclass(frozen=True, slots=True)
class FitResult:
    """An item that can be sent, and what was changed to make it so."""

    item: dict[str, Any]
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unfit:
    """An item that must not be sent. `reason` is a stable word, `detail` the sentence for people."""

    reason: str
    detail: str


class _UnfitError(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def fit_result(item: object) -> FitResult | Unfit:
    """Return the item with every value as the Gateway wants it."""
    if not isinstance(item, Mapping):
        return Unfit("not_an_object", "The result is not an object.")
    changes: list[str] = []
    try:
        fit = _fit(item, changes)
    except _UnfitError as problem:
        return Unfit(problem.reason, problem.detail)
    if len(changes) > _MOST_CHANGES:
        changes[_MOST_CHANGES:] = [f"and {len(changes) - _MOST_CHANGES} more"]
    return FitResult(fit, tuple(changes))


def unfit_key(item: Mapping[str, Any]) -> Unfit | None:
    """Return what is wrong with the four keys of a result, if anything; it is never sent then, nor is its page."""
    try:
        for name, limit in KEY_LIMITS.items():
            _key(name, item.get(name), limit, [])
    except _UnfitError as problem:
        return Unfit(problem.reason, problem.detail)
    return None


def fit_stored(item: Mapping[str, Any], data: str) -> FitResult | Unfit:
    """Do the same for an item whose data is stored as JSON, which is decoded only if something in it needs fixing."""
    if not is_plain_object(data):
        return fit_result({**item, "data": json.loads(data)})
    fitted = fit_result({**item, "data": {}})
    if isinstance(fitted, Unfit):
        return fitted
    about = {name: value for name, value in fitted.item.items() if name != "data"}
    head = json.dumps(about, separators=(",", ":"))
    return FitResult(WrittenItem(about, f'{head[:-1]},"data":{data}}}'), fitted.changes)


def with_raw(data: str, listing: Sequence[Mapping[str, Any]]) -> str:
    """Return a result's data, as JSON text, with its raw files under `_raw`.

    That is added when a result is sent, and only then: exports and comparisons are of what was scraped.
    """
    if not listing or not data.startswith("{"):
        return data
    if '"_raw"' in data:  # a page has such a field of its own: the files win
        return json.dumps({**json.loads(data), "_raw": listing})
    files = json.dumps(listing, separators=(",", ":"))
    rest = data[1:].lstrip()
    return f'{{"_raw":{files}{"" if rest == "}" else ","}{rest}'


def results_body(items: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the body of a call of `/internal/results`. Raises ValueError or TypeError for what is no JSON."""
    return f"[{','.join(map(_written, items))}]".encode("ascii")


def _written(item: Mapping[str, Any]) -> str:
    if isinstance(item, WrittenItem):
        return item.text
    return json.dumps(item, allow_nan=False, separators=(",", ":"))


def _fit(item: Mapping[Any, Any], changes: list[str]) -> dict[str, Any]:
    fit: dict[str, Any] = {"task_id": _task_id(item.get("task_id"), changes)}
    for name, limit in KEY_LIMITS.items():
        fit[name] = _key(name, item.get(name), limit, changes)
    data = item.get("data")
    if not isinstance(data, Mapping):
        raise _UnfitError("data_not_object", f"data is {_type(data)}, not an object.")
    fit["data"] = Cleaner(changes).clean(data, "data")
    fit["scraped_at"] = _scraped_at(item.get("scraped_at"), changes)
    fit["parse_duration_ms"] = _duration(item.get("parse_duration_ms"), changes)
    if item.get("raw_html_hash"):
        fit["raw_html_hash"] = Cleaner(changes).text(str(item["raw_html_hash"]), "raw_html_hash")
    changes.extend(f"{name!s:.60}: not in the contract, left out" for name in item if name not in _FIELDS)
    return fit


def _type(value: object) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"


def _plain_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _task_id(value: object, changes: list[str]) -> str:
    if _plain_int(value):
        changes.append("task_id: number made text")
        return str(value)
    if not isinstance(value, str) or not value:
        raise _UnfitError("task_id_missing", f"task_id is {_type(value) if value != '' else 'empty'}.")
    return Cleaner(changes).text(value, "task_id")


def _key(name: str, value: object, limit: int, changes: list[str]) -> str:
    if _plain_int(value):
        value = str(value)
        changes.append(f"{name}: number made text")
    if value is None or (isinstance(value, str) and not value.strip()):
        raise _UnfitError("incomplete_key", f"{name} is empty; the Gateway stores by all four keys.")
    if not isinstance(value, str):
        raise _UnfitError("key_not_text", f"{name} is {_type(value)}, not text.")
    if len(value) > limit:
        raise _UnfitError("key_too_long", f"{name} has {len(value)} characters; the Gateway takes {limit}.")
    if "\0" in value or (not value.isascii() and _SURROGATE.search(value)):
        raise _UnfitError("key_not_storable", f"{name} has a character that no database stores.")
    return value


def _scraped_at(value: object, changes: list[str]) -> str:
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if isinstance(value, str) and _STRICT.fullmatch(value):
            return value
        if moment.tzinfo is None:
            raise ValueError("no time zone")
        fit = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise _UnfitError("scraped_at_unreadable", f"scraped_at is not a time with a zone: {value!s:.60}") from None
    if value != fit:
        changes.append("scraped_at: rewritten as RFC 3339 UTC")
    return fit


def _duration(value: object, changes: list[str]) -> int:
    convert: Callable[[Any], float] = float
    try:
        number = 0.0 if isinstance(value, bool) else convert(value)
        fit = min(max(round(number), 0), LARGEST_DURATION_MS)
    except (TypeError, ValueError, OverflowError):
        fit = 0
    if not _plain_int(value) or value != fit:
        changes.append(f"parse_duration_ms: {value!s:.40} made {fit}")
    return fit


class Cleaner:
    """Turns any value into safe JSON for the Gateway and its database, and records what it changed."""

    def __init__(self, changes: list[str]) -> None:
        self._changes = changes

    def clean(self, value: Any, path: str, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise _UnfitError("too_deep", f"data is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(value, str):
            return self.text(value, path)
        if isinstance(value, Mapping):
            return self._mapping(value, path, depth)
        if isinstance(value, list | tuple):
            return [self.clean(inner, f"{path}[{n}]", depth + 1) for n, inner in enumerate(value)]
        return self._scalar(value, path)

    def text(self, value: str, path: str) -> str:
        if "\0" in value:
            self._note(path, "NUL removed")
            value = value.replace("\0", "")
        if _SURROGATE.search(value):
            self._note(path, "half a character replaced")
            value = _SURROGATE.sub("\ufffd", value)
        return value

    def _scalar(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return (
                value
                if abs(value) <= LARGEST_EXACT_INT
                else self._noted(path, "large integer made text", _digits(value))
            )
        if isinstance(value, float):
            return value if math.isfinite(value) else self._noted(path, f"{value} made null", None)
        return self._noted(path, f"{type(value).__name__} made text", self.text(str(value), path))

    def _mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        fit: dict[str, Any] = {}
        for key, inner in value.items():
            name = self._free_name(self.text(str(key), f"{path}.{key!s:.60}"), fit, path)
            fit[name] = self.clean(inner, f"{path}.{name:.60}", depth + 1)
        return fit

    def _free_name(self, name: str, taken: Mapping[str, Any], path: str) -> str:
        # Two names may become one when their NULs go; neither value is to be lost.
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        if free != name:
            self._note(path, f"{name:.60} renamed {free:.60}")
        return free

    def _noted(self, path: str, words: str, value: Any) -> Any:
        self._note(path, words)
        return value

    def _note(self, path: str, words: str) -> None:
        shown = _SURROGATE.sub("\ufffd", path.replace("\0", ""))
        self._changes.append(f"{shown[-120:]}: {words}")


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # more than 4,300 digits
        return hex(number)


def clean_text(value: Mapping[str, Any]) -> str:
    """Return an object as JSON that every reader takes; for metadata and heartbeats, whose changes nobody reads."""
    with contextlib.suppress(TypeError, ValueError, RecursionError):  # what is no JSON is fixed below
        text = json.dumps(value)
        if is_plain_object(text):
            return text
    try:
        return json.dumps(Cleaner([]).clean(value, ""))
    except _UnfitError:
        return "null"


# JSON text that can be sent as it is, told at a glance: decoding, looking at each value and encoding costs far more.
#
# A false alarm only costs time, since what raises one is then looked at value by value. So the marks are looked for
# anywhere in the text, also inside of strings.


# NUL and halves of characters as JSON writes them, and what is no JSON at all though Python writes it.
_ESCAPES = ("\\u0000", "\\ud", "\\uD")
# 2^53 has sixteen digits. Looking for so many noughts takes a twentieth of what the pattern takes, so it comes first.
_NOUGHTS = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 16
# A number follows a colon, a comma or a bracket; an id of many digits follows a quotation mark.
_LONG_NUMBER = re.compile(r"[:,\[]\s*-?[0-9]{16}")
# Possessive: a pattern that backtracks would note each letter of a long text, a hundred bytes for one.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_BRACKETS = re.compile(r"[\[{]|[\]}]")


def is_plain_object(text: str) -> bool:
    """Say whether the text of an object has nothing in it that the Gateway or its database would choke on."""
    if not text.startswith("{") or not text.isascii() or "NaN" in text or "Infinity" in text or _has_escape(text):
        return False
    return not _has_long_number(text) and not _is_deep(text)


def _has_escape(text: str) -> bool:
    return "\\u" in text and any(escape in text for escape in _ESCAPES)


def _has_long_number(text: str) -> bool:
    return _LONG in text.encode().translate(_NOUGHTS) and _LONG_NUMBER.search(text) is not None


def _is_deep(text: str) -> bool:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False
