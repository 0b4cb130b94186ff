"""Packs the pending files into one archive, checks it, and only then removes them."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

from lienworker.data_folder import DataFolder, fsync_folder, rename
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import write
from lienworker.errors import StoreError
from lienworker.store.audit import record_action
from lienworker.store.pending import rebuild
from lienworker.store.results import forget_pending

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Archive:
    path: Path
    files: int


def archive_pending(folder: DataFolder, *, compress: bool) -> Archive | None:
    """Archive all pending files; return None when there are none. A crash in between leaves the files in place."""
    files = sorted(path for path in folder.pending.glob("*.json") if path.is_file())
    if not files:
        return None
    stamp = rfc3339(now_ms()).replace(":", "").replace(".", "")
    path = folder.archive / f"pending-{stamp}.tar{'.gz' if compress else ''}"
    aside = path.with_name(f".{path.name}.part")
    hashes = _pack(files, aside, compress)
    if broken := _verify(aside, hashes):
        logger.warning("%s is no longer a result; the pending files are rebuilt", folder.pending / broken)
        rebuild(folder)
        files = [path for path in files if path.is_file()]
        if _verify(aside, _pack(files, aside, compress)):
            aside.unlink()
            raise StoreError(f"{folder.pending / broken} cannot be read and cannot be rebuilt; nothing was archived.")
    rename(aside, path, "archive")
    fsync_folder(folder.archive)
    with write("archive"):
        forget_pending([f"pending/{file.name}" for file in files])
        record_action("archive", path.name, len(files))
    for file in files:
        file.unlink(missing_ok=True)
    return Archive(path, len(files))


def _pack(files: list[Path], aside: Path, compress: bool) -> dict[str, str]:
    hashes = {}
    with aside.open("wb") as out:
        with tarfile.open(fileobj=out, mode="w:gz" if compress else "w") as archive:
            for file in files:
                archive.add(file, arcname=file.name, recursive=False)
                hashes[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        out.flush()
        os.fsync(out.fileno())
    return hashes


def _verify(aside: Path, hashes: dict[str, str]) -> str | None:
    """Read the archive back from disk: every file must be in it, intact. Return the name of one that is no result."""
    found, broken = {}, None
    with tarfile.open(aside) as archive:
        for member in archive:
            body = archive.extractfile(member)
            assert body is not None
            content = body.read()
            broken = broken if _is_result(content) else member.name
            found[member.name] = hashlib.sha256(content).hexdigest()
    if found != hashes:
        aside.unlink()
        raise StoreError("The archive does not match the pending files, which were left in place.")
    return broken


def _is_result(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except ValueError:
        return False
