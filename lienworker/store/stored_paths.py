"""Paths that the database names: used only where they stay in the folder that they belong to.

A database may come out of a stranger's backup. What it says of `raw/…` is moved, removed, sent and shown, so a path
that leads anywhere else is no path of a page, whatever the row says.
"""

from __future__ import annotations

from pathlib import Path

from lienworker.errors import StoreError

#: What leads out of a folder, or nowhere.
_NO_NAMES = frozenset({"", ".", ".."})


def is_raw_path(path: object) -> bool:
    """Whether this is `raw/` and plain names below it; SQLite keeps anything in a column of text."""
    if not isinstance(path, str):
        return False
    top, *rest = path.split("/")
    return top == "raw" and bool(rest) and _NO_NAMES.isdisjoint(rest) and "\0" not in path


def raw_place(root: Path, path: str) -> Path:
    """Return where a stored raw page lies; raise StoreError for a path that leads out of `raw/`."""
    if not is_raw_path(path):
        raise StoreError(f"The stored path {str(path)[:200]!r} is not one of a raw page: it does not lie in raw/.")
    return root / path


def is_inside(folder: Path, place: Path) -> bool:
    """Whether a place lies in a folder, wherever links on the way lead: asked before anything is moved or removed."""
    return place.name not in _NO_NAMES and place.parent.resolve().is_relative_to(folder.resolve())
