"""Making one record of the records of a parcel's pages."""

from __future__ import annotations

from typing import Any

_EMPTY: tuple[Any, ...] = (None, "", [], {})


def merge(record: dict[str, Any], other: dict[str, Any]) -> None:
    """Add what another page of the same parcel says. What is there already stands; lists and `fields` grow."""
    for name, value in other.items():
        known = record.get(name)
        if known in _EMPTY:
            record[name] = value
        elif isinstance(known, list) and isinstance(value, list):
            record[name] = known + [item for item in value if item not in known]
        elif name == "fields" and isinstance(known, dict) and isinstance(value, dict):
            record[name] = {**value, **known}
