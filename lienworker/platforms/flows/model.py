"""What a flow is made of. Plain data: the same objects come from Python, TOML and YAML.

A text may hold placeholders, `{parcel_id}`: names of the target, of the settings, and of what earlier steps captured.
At the start of an address a placeholder is (the beginning of) an address; anywhere else in it, it is percent-escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from lienworker.platforms.flows.checks import check_flow

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Condition:
    """What a page has. Each kind that is named must hold; of several alternatives of a kind, any one."""

    css: tuple[str, ...] = ()
    xpath: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    """Words that the page shows, in any case; placeholders are filled in."""
    re: tuple[str, ...] = ()
    """Regular expressions, searched for in the source."""
    json: tuple[str, ...] = ()
    """Paths (JMESPath) that lead to something: not to null, nor to an empty list or text."""
    url: tuple[str, ...] = ()
    """Regular expressions, searched for in the address that the page has after redirects."""
    status: tuple[int, ...] = ()
    """HTTP statuses. Only a condition that names one holds for a reply that is an error (400 and above)."""
    without: Condition | None = None
    """What the page must not have."""

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, item.name) for item in fields(self))


@dataclass(frozen=True)
class Capture:
    """A value that later steps use: found by one of `css`, `xpath`, `json`, `header` (or in the whole source), then cut
    out by `re`: its first group, or all that it matches."""

    css: str = ""
    xpath: str = ""
    json: str = ""
    header: str = ""
    """The name of a header of the reply."""
    re: str = ""
    many: bool = False
    """All that is found, as a list for `repeat`, and not only the first."""
    optional: bool = False
    """Whether the page may lack it. A step that uses it nevertheless fails."""


@dataclass(frozen=True)
class Submit:
    """The form of the last page, sent with all its fields as they were received."""

    form: str = "form"
    """CSS of the form; the first one is taken."""
    set: Mapping[str, str | bool] = field(default_factory=dict)
    """Fields that get another value; `False` leaves one out."""
    click: str = ""
    """The button that is pressed: its name, its id or its CSS. It may be a link that calls `__doPostBack`, whose words
    go into `__EVENTTARGET` and `__EVENTARGUMENT`. Without it, the form's first submit button, as by Enter."""


@dataclass(frozen=True)
class Repeat:
    """Walk a step several times: once for each item of a captured list, on to the next link, or until something."""

    most: int
    """The bound; what is beyond it is left out."""
    over: str = ""
    """The name of a captured list (`many = true`)."""
    next: Capture | None = None
    """Where the page has the address of the next one; the last page has none."""
    until: Condition | None = None
    """What the last page has."""
    name: str = ""
    """The placeholder (`as` in a definition): the item of the list (`item`), or the round from 1 on (`n`)."""

    @property
    def placeholder(self) -> str:
        return self.name or ("item" if self.over else "n")


@dataclass(frozen=True)
class Step:
    """One request, and what is done with its reply. Without a request it is about the last page."""

    get: str = ""
    post: str = ""
    form: Mapping[str, str] | None = None
    """The fields of a `post`."""
    json: Any = None
    """The body of a `post`, instead of `form`."""
    submit: Submit | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    when: Condition | None = None
    """The step is walked only if the last page has this."""
    expect: Condition | None = None
    """What the reply must have; anything else is a failure with a reason."""
    missing: Condition | None = None
    """How a reply says that the parcel does not exist."""
    lost: Condition | None = None
    """How a reply says that the session is over."""
    capture: Mapping[str, Capture] = field(default_factory=dict)
    keep: str = ""
    """The name of the part under which the reply is kept as a page of the parcel."""
    optional: bool = False
    """Whether the site may not offer the page (404, 410, or what `missing` says). Trouble of the site is no excuse."""
    repeat: Repeat | None = None
    safe: bool = False
    """Whether a POST only looks something up, so that it may be sent again after a loss or a crash."""

    @property
    def asks(self) -> bool:
        return bool(self.get or self.post or self.submit)

    @property
    def is_post(self) -> bool:
        """Whether it may be a POST; what a form really is, only its page says."""
        return bool(self.post or self.submit)


@dataclass(frozen=True)
class Flow:
    """How the pages of a target are reached. Raises FlowError where it cannot work."""

    steps: tuple[Step, ...]
    open: tuple[Step, ...] = ()
    """Steps that make a session; they are walked only when there is none."""
    session: float | None = None
    """Seconds for which a session is kept and used again; None where each walk has its own."""
    sessions: int = 1
    """How many there may be at a host at a time."""
    lost: Condition | None = None
    """How any page says that the session is over."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """For all steps."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Placeholders with their values. A target must bring the ones that are empty, and cannot change the others."""

    def __post_init__(self) -> None:
        check_flow(self)


def seconds_of(written: str) -> float:
    """The seconds of `30m`, `90s`, `2h` or `1d`. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d{1,6})\s*([smhd])\s*", written)
    if match is None:
        raise ValueError(f"{written!r} is no time: write 90s, 30m, 2h or 1d")
    return int(match[1]) * float(_UNITS[match[2]])
