"""What the server and the views exchange: questions, pages, and how pages become HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jinja2
from markupsafe import Markup, escape

from lienworker.data_folder import DataFolder
from lienworker.queries import formatting
from lienworker.settings import Settings

_CODE = re.compile("`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Question:
    """What a visitor asks for."""

    params: Mapping[str, str]
    query: Mapping[str, str]

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


View = Callable[[Place, Question], Page]


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
        topic=formatting.topic, with_code=_with_code,
    )  # fmt: skip
    return made


def _with_code(text: str) -> Markup:
    """Return our own text, with what is between backticks set as code; all of it escaped first."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 # nosec B704
