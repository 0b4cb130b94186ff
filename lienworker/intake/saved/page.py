"""A saved page, and what makes a reply of a site one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lienworker.intake.rows import BadRowError, Reject, tidy
from lienworker.intake.urls import UrlChecker

#: Kinds of content that a parser may know. Scripts, styles and pictures are passed over without a word.
PAGES = frozenset({"text/html", "application/xhtml+xml"})
DATA = frozenset({"application/json", "application/geo+json", "text/json", "text/csv"})


@dataclass(frozen=True, slots=True)
class SavedPage:
    """One page. `place` counts it in its file; `name` is its file's own name where there is one."""

    place: int
    url: str | None
    body: bytes = field(repr=False)
    content_type: str = "text/html"
    charset: str | None = None
    fetched_at: str | None = None
    name: str = ""
    task: Mapping[str, Any] = field(default_factory=dict)
    """What the task knew of the parcel, in an archive of our own."""


class Door:
    """Decides which replies of a recorded session are pages, within the size that a page may have."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._checked = UrlChecker()

    def wants(self, status: int, content_type: str) -> bool:
        return status == 200 and content_type in PAGES | DATA

    def address(self, url: str) -> str:
        """Return the address without a login in it; raise BadRowError for what is none."""
        scheme, mark, rest = url.partition("://")
        site, slash, path = rest.partition("/")
        checked = self._checked(f"{scheme}{mark}{site.rpartition('@')[2]}{slash}{path}")
        if checked is None:
            raise BadRowError("bad_url", "the page has no address")
        return checked

    def check(self, place: int, body: bytes, what: str) -> Reject | None:
        if len(body) > self.most_bytes:
            detail = f"the page is larger than {self.most_bytes / 1e6:g} MB (LIENWORKER_MAX_PAGE_MB)"
            return Reject(place, "too_large", detail, tidy(what))
        if not body.strip():
            return Reject(place, "empty_page", "the page has no content; save it again once it is loaded", tidy(what))
        return None


def split_type(value: str) -> tuple[str, str | None]:
    """Split a Content-Type header into the type and the charset."""
    kind, _, parameters = value.partition(";")
    charset = None
    for parameter in parameters.split(";"):
        name, _, said = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = said.strip().strip("\"'").lower()[:40] or None
    return kind.strip().lower(), charset
