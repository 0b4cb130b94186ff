"""A flow as a definition, in TOML or YAML: the names of `platforms.flows.model`, checked for their types.

[flow]
session = "30m"                                       # kept and used again for so long
sessions = 1                                          # how many at a host

[[flow.open]]                                         # steps that make a session
get = "{base_url}/search.aspx"
[[flow.open]]
when = { css = "#btAgree" }                           # only if the last page has it
submit = { form = "#frmMain", click = "btAgree" }
safe = true                                           # this POST may be sent again

[[flow.step]]
submit = { form = "#frmMain", set = { inpParid = "{parcel_id}" }, click = "btSearch" }
safe = true
missing = { text = "did not find any records" }       # the parcel does not exist
expect = { css = ["#datalet", "tr.SearchResults"] }   # anything else is a failure
capture = { detail = { css = "tr::attr(onclick)", re = "'(.+?)'" } }
[[flow.step]]
get = "{detail}"
keep = "profile"                                      # this reply is a page of the parcel
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lienworker.platforms.flows.checks import FlowError
from lienworker.platforms.flows.model import Capture, Condition, Flow, Repeat, Step, Submit, seconds_of

Where = tuple[str | int, ...]
Reader = Callable[[Any, Where], Any]


def flow_of(said: Mapping[str, Any], settings: Mapping[str, str]) -> Flow:
    """The flow of a definition's `[flow]`. Raises FlowError with the names that lead to what is wrong."""
    given = _read(said, _FLOW, "a flow", ())
    return Flow(settings=dict(settings), **{"steps": (), **given})


def settings_of(said: Any, where: Where = ("settings",)) -> dict[str, str]:
    """The settings of a definition: placeholders with their values."""
    return _texts(said, where)


def _read(said: Any, readers: Mapping[str, tuple[str, Reader]], what: str, where: Where) -> dict[str, Any]:
    if not isinstance(said, Mapping):
        raise FlowError(f"{what} must be a group of names with values", *where)
    for name in said:
        if name not in readers:
            raise FlowError(f"there is no {name!r} in {what}; there are {', '.join(readers)}", *where, str(name))
    return {readers[name][0]: readers[name][1](value, (*where, name)) for name, value in said.items()}


def _text(value: Any, where: Where) -> str:
    if not isinstance(value, str) or not value.strip():
        raise FlowError(f"{where[-1]} must be a text (in quotes)", *where)
    return value


def _flag(value: Any, where: Where) -> bool:
    if not isinstance(value, bool):
        raise FlowError(f"{where[-1]} must be true or false", *where)
    return value


def _count(value: Any, where: Where) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FlowError(f"{where[-1]} must be a whole number", *where)
    return value


def _seconds(value: Any, where: Where) -> float:
    try:
        return seconds_of(_text(value, where))
    except ValueError as error:
        raise FlowError(str(error), *where) from None


def _texts(value: Any, where: Where) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise FlowError(f"{where[-1]} must be names with texts (in quotes)", *where)
    return dict(value)


def _fields(value: Any, where: Where) -> dict[str, str | bool]:
    """Fields of a form: texts, and `false` for one that is left out."""
    if not isinstance(value, Mapping) or not all(isinstance(item, str) or item is False for item in value.values()):
        raise FlowError(f"{where[-1]} must be names with texts (in quotes), or false to leave a field out", *where)
    return dict(value)


def _alternatives(value: Any, where: Where) -> tuple[str, ...]:
    return tuple(_text(item, where) for item in (value if isinstance(value, list) else [value]))


def _statuses(value: Any, where: Where) -> tuple[int, ...]:
    return tuple(_count(item, where) for item in (value if isinstance(value, list) else [value]))


def _condition(value: Any, where: Where) -> Condition:
    return Condition(**_read(value, _CONDITION, f"{where[-1]}", where))


def _capture(value: Any, where: Where) -> Capture:
    return Capture(**_read(value, _CAPTURE, "a capture", where))


def _captures(value: Any, where: Where) -> dict[str, Capture]:
    if not isinstance(value, Mapping):
        raise FlowError("capture must be names with what is captured under them", *where)
    return {name: _capture(item, (*where, name)) for name, item in value.items()}


def _submit(value: Any, where: Where) -> Submit:
    return Submit(**_read(value, _SUBMIT, "submit", where))


def _repeat(value: Any, where: Where) -> Repeat:
    given = _read(value, _REPEAT, "repeat", where)
    if "most" not in given:
        raise FlowError("repeat needs a bound: most = 20", *where)
    return Repeat(**given)


def _steps(value: Any, where: Where) -> tuple[Step, ...]:
    if not isinstance(value, list):
        raise FlowError(f"write each step as [[flow.{where[-1]}]]", *where)
    return tuple(Step(**_read(item, _STEP, "a step", (*where, n))) for n, item in enumerate(value))


def _any(value: Any, where: Where) -> Any:
    return value


#: What there is, by its name in a definition: its name in the model, and how it is read.
_CONDITION: dict[str, tuple[str, Reader]] = {
    **{name: (name, _alternatives) for name in ("css", "xpath", "text", "re", "json", "url")},
    "status": ("status", _statuses),
    "without": ("without", _condition),
}
_CAPTURE: dict[str, tuple[str, Reader]] = {
    **{name: (name, _text) for name in ("css", "xpath", "json", "header", "re")},
    **{name: (name, _flag) for name in ("many", "optional")},
}
_SUBMIT: dict[str, tuple[str, Reader]] = {
    "form": ("form", _text),
    "set": ("set", _fields),
    "click": ("click", _text),
}
_REPEAT: dict[str, tuple[str, Reader]] = {
    "over": ("over", _text),
    "next": ("next", _capture),
    "until": ("until", _condition),
    "as": ("name", _text),
    "most": ("most", _count),
}
_STEP: dict[str, tuple[str, Reader]] = {
    **{name: (name, _text) for name in ("get", "post", "keep")},
    **{name: (name, _condition) for name in ("when", "expect", "missing", "lost")},
    **{name: (name, _flag) for name in ("optional", "safe")},
    **{name: (name, _texts) for name in ("form", "headers")},
    "json": ("json", _any),
    "submit": ("submit", _submit),
    "capture": ("capture", _captures),
    "repeat": ("repeat", _repeat),
}
_FLOW: dict[str, tuple[str, Reader]] = {
    "session": ("session", _seconds),
    "sessions": ("sessions", _count),
    "lost": ("lost", _condition),
    "headers": ("headers", _texts),
    "open": ("open", _steps),
    "step": ("steps", _steps),
}
