"""What one check of `doctor` came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    is_well: bool
    words: str
