"""What the server and the views exchange: questions, pages, and how pages become HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jinja2
from markupsafe import Markup, escape

from lienworker.data_folder import DataFolder
from lienworker.db.clock import rfc3339
from lienworker.queries import formatting
from lienworker.queries.lists import PAGE, TOP, Listing
from lienworker.settings import Settings

_CODE = re.compile("`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Question:
    """What a visitor asks for."""

    params: Mapping[str, str]
    query: Mapping[str, str]
    #: What was chosen in a list, one by one.
    ids: tuple[str, ...] = ()

    def text(self, name: str) -> str | None:
        return self.query.get(name, "").strip()[:500] or None

    def number(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default


@dataclass(frozen=True, slots=True)
class Page:
    """An answer: the facts, and the template that shows them to people."""

    template: str
    title: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """What every view may look at."""

    settings: Settings
    folder: DataFolder
    read_only: bool


@dataclass(frozen=True, slots=True)
class Meant:
    """What an action is about: how many, a description, and how to do it."""

    n: int
    noun: str
    words: str
    warning: str
    do: Callable[[], int]
    is_audited: bool = True


View = Callable[[Place, Question], Page]

#: New rows above a list that are counted; more are "100+".
_MOST_NEWER = 100


def list_facts(question: Question, rows_below: Callable[[int, int], Listing], *, stays: bool = True) -> dict[str, Any]:
    """Return a page of a list for a template.

    A list on an open page stays where it is: the page asks with `top`, its first row, and is told how many came since.
    """
    top = question.number("top", TOP)
    listing = rows_below(question.number("below", min(top + 1, TOP)), PAGE)
    newest = rows_below(TOP, _MOST_NEWER).rows if top < TOP else []
    first = max((row["position"] for row in listing.rows), default=None)
    return {
        "rows": listing.rows,
        "more": listing.more,
        "looked_at_all": listing.looked_at_all,
        "top": (top if top < TOP else first) if stays and "below" not in question.query else None,
        "newer": sum(row["position"] > top for row in newest),
    }


class NotThereError(Exception):
    """A visitor asked for what does not exist; the text is for the visitor."""


class CannotError(Exception):
    """What was asked for cannot be done now; the text is for the visitor."""


def environment() -> jinja2.Environment:
    """Return the templates, which escape everything: scraped text is never trusted."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("lienworker.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        ago=formatting.ago, at=formatting.at, number=formatting.number, seconds=formatting.seconds,
        share=formatting.share, size=formatting.size, query=formatting.query, cut=formatting.cut,
        topic=formatting.topic, value=formatting.value, label=formatting.label,
        with_code=_with_code, when=_when, stamp=_stamp,
    )  # fmt: skip
    return made


def _when(moment: int | str | None) -> Markup:
    """Return how long ago a time was; the time itself is shown on hover."""
    return _time(
        Markup('<time datetime="{}" title="{}" data-utc="{}" data-ago>{}</time>'), moment, formatting.ago(moment)
    )


def _stamp(moment: int | str | None) -> Markup:
    """Return a time to the second with its zone: UTC, which a script turns into the visitor's."""
    words = f"{formatting.at(moment)} UTC"
    return _time(Markup('<time datetime="{}" title="{}" data-utc="{}">{}</time>'), moment, words)


def _time(form: Markup, moment: int | str | None, words: str) -> Markup:
    if moment is None:
        return Markup("–")
    exact = moment if isinstance(moment, str) else rfc3339(moment)
    utc = f"{formatting.at(moment)} UTC"
    return form.format(exact, utc, utc, words)


def _with_code(text: str) -> Markup:
    """Return our own text, with what is between backticks set as code; all of it escaped first."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 # nosec B704
