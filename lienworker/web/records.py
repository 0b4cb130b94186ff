"""The audit: who did what, and to how many rows."""

from __future__ import annotations

from lienworker.store.audit import actions
from lienworker.web.pages import Page, Place, Question

_SHOWN = 200


def audit(_place: Place, _question: Question) -> Page:
    return Page("audit.html", "Audit", {"rows": actions(_SHOWN), "shown": _SHOWN})
