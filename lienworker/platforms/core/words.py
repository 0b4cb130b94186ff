"""The words of a target that templates of addresses and flows may use."""

from __future__ import annotations

import re
from typing import Any

from lienworker.platforms.core.base import Target

#: What every target has a word for, if it says enough; `extra` may bring others.
TARGET_WORDS = ("parcel_id", "state", "county", "url", "county_host", "town", "parcel_digits")


def words_of(target: Target) -> dict[str, Any]:
    """The target's words by their names; those that it does not say are empty or None."""
    words: dict[str, Any] = {
        "county": target.county, "state": target.state, "parcel_id": target.parcel_id, "url": target.url,
        **target.extra,
    }  # fmt: skip
    words["county_host"] = re.sub(r"[^a-z]", "", (target.county or "").lower())
    if words["county_host"] and target.state:
        words.setdefault("town", words["county_host"] + target.state.lower())  # as Vision names its towns: lymenh
    words["parcel_digits"] = re.sub(r"\D", "", target.parcel_id or "")
    return words
