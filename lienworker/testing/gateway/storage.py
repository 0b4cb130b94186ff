"""What the reference Gateway keeps: results in a table with limits, raw files in one flat folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lienworker.testing.gateway.decoding import ResultRow, has_nul

MOST_FAILURES = 11
LONGEST_NAME = 200
COLUMN_LIMITS = {"state": 8, "platform": 64, "parcel_id": 255, "county": 255}

_COLUMNS = ("parcel_id", "platform", "state", "county", "data", "scraped_at")

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Version:
    """One storing of a result; the last one is what the table holds."""

    seq: int
    time: float
    worker_id: str
    row: ResultRow


@dataclass(slots=True)
class Counts:
    inserted: int = 0
    updated: int = 0
    errors: list[str] = field(default_factory=list)

    def reply(self) -> dict[str, Any]:
        counts = {"inserted": self.inserted, "updated": self.updated, "failed": len(self.errors)}
        return {**counts, "errors": self.errors or None}


def database_error(row: ResultRow) -> str:
    """Return what the database says to a row that breaks its limits; empty if it takes it."""
    for name, limit in COLUMN_LIMITS.items():
        if len(getattr(row, name)) > limit:
            return f"ERROR: value too long for type character varying({limit}) (SQLSTATE 22001)"
    if any("\0" in getattr(row, name) for name in (*COLUMN_LIMITS, "task_id", "raw_html_hash")):
        return 'ERROR: invalid byte sequence for encoding "UTF8": 0x00 (SQLSTATE 22021)'
    if has_nul(row.data):
        return "ERROR: unsupported Unicode escape sequence (SQLSTATE 22P05)"
    return ""


@dataclass(slots=True)
class ResultTable:
    """Upserts by (parcel_id, platform, state, county), with all versions kept for tests to ask for."""

    history: dict[Key, list[Version]] = field(default_factory=dict)

    def stored(self) -> list[dict[str, Any]]:
        """Return what the real table has columns for: neither task id, duration nor hash."""
        rows = [versions[-1].row for versions in self.history.values()]
        return [{name: getattr(row, name) for name in _COLUMNS} for row in rows]

    def store(
        self, rows: list[ResultRow], version: Callable[[ResultRow], Version], error: Callable[[ResultRow], str]
    ) -> tuple[Counts, list[ResultRow]]:
        """Store row by row, in order; after the 11th failure the rest is skipped in silence."""
        counts, stored = Counts(), []
        for row in rows:
            message = error(row)
            if message:
                counts.errors.append(f"{row.parcel_id}: {message}")
                if len(counts.errors) >= MOST_FAILURES:
                    break
                continue
            versions = self.history.setdefault(row.key, [])
            counts.updated += bool(versions)
            counts.inserted += not versions
            versions.append(version(row))
            stored.append(row)
        return counts, stored


def flat_name(filename: str, now: float) -> str:
    """Return the base name without `..` and without blanks at its ends, cut at 200 bytes, extension or not."""
    name = filename.rstrip("/").rsplit("/", 1)[-1].replace("..", "").replace("\0", "").strip()
    short = name.encode("utf-8", "replace")[:LONGEST_NAME].decode("utf-8", "ignore")
    return short if short not in {"", "."} else f"raw_{int(now * 1e9)}"


@dataclass(frozen=True, slots=True)
class RawFile:
    """One upload. `sha256` and `size` are of the bytes as they were sent."""

    name: str
    sent_name: str
    sha256: str
    size: int
    metadata: str
    worker_id: str
    seq: int
    time: float


@dataclass(slots=True)
class RawFolder:
    """One flat folder (on disk, or in memory without one): the same name overwrites in silence."""

    folder: Path | None = None
    uploads: list[RawFile] = field(default_factory=list)
    current: dict[str, RawFile] = field(default_factory=dict)
    _contents: dict[str, bytes] = field(default_factory=dict)

    def put(self, sent_name: str, content: bytes, metadata: str, worker_id: str, seq: int, now: float) -> RawFile:
        name = flat_name(sent_name, now)
        digest = hashlib.sha256(content).hexdigest()
        if self.folder is None:
            self._contents[name] = content
        else:
            (self.folder / name).write_bytes(content)
        file = RawFile(name, sent_name, digest, len(content), metadata, worker_id, seq, now)
        self.uploads.append(file)
        self.current[name] = file
        return file

    def content(self, name: str) -> bytes:
        """Return the bytes of a file. Raises KeyError for a name that was never uploaded."""
        known = self.current[name].name
        return self._contents[known] if self.folder is None else (self.folder / known).read_bytes()
