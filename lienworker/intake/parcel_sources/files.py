"""Files of sources: one, a folder (a clone) or a zip archive of them, read in place."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePath

from lienworker.errors import InputError
from lienworker.intake.packed import BROKEN_ARCHIVE
from lienworker.intake.parcel_sources.openaddresses import read_document
from lienworker.intake.parcel_sources.own import read_own
from lienworker.intake.rows import Reject
from lienworker.store.parcel_sources import ParcelSource

_ENDINGS = (".json", ".toml")
#: Bytes. A source has a few thousand, a collection of all of them less than a million.
_LARGEST = 16_000_000
#: A clone has four thousand, of the whole world.
_MOST_FILES = 100_000


def tells_everything(path: Path) -> bool:
    """Return whether a path stands for all that its origin knows: then what was known of it before is forgotten."""
    return path.is_dir() or path.suffix.lower() in (".zip", ".toml")


def read_sources(path: Path) -> Iterator[ParcelSource | Reject]:
    """Yield the sources of a file, a folder or an archive, and a reject for each that cannot be used."""
    if path.is_dir():
        yield from _of_folder(path)
        return
    try:
        if path.suffix.lower() == ".zip":
            yield from _of_archive(path)
        elif path.suffix.lower() in _ENDINGS:
            yield from _of_file(_bounded(path), path.name)
        else:
            raise InputError(f"{path} is neither JSON nor TOML, no folder and no zip archive of such files")
    except OSError as problem:
        raise InputError(f"{path} cannot be read ({problem.strerror}); check the path") from None


def _bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST + 1)


def _of_folder(folder: Path) -> Iterator[ParcelSource | Reject]:
    """Read the files below a folder; links are not followed, and what git keeps is not looked at."""
    found = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if not name.lower().endswith(_ENDINGS) or path.is_symlink():
                continue
            found += 1
            if found > _MOST_FILES:
                raise InputError(f"{folder} has more than {_MOST_FILES:,} files; name the folder of the sources in it")
            yield from _of_file(_bounded(path), str(path.relative_to(folder)))
    if not found:
        raise InputError(f"{folder} has no sources in it (.json, .toml)")


def _of_archive(path: Path) -> Iterator[ParcelSource | Reject]:
    try:
        archive = zipfile.ZipFile(path)
    except BROKEN_ARCHIVE as problem:
        raise InputError(f"{path} is a damaged zip archive ({problem}); get it again") from None
    with archive:
        wanted = (info for info in archive.infolist() if info.filename.lower().endswith(_ENDINGS))
        for info in islice(wanted, _MOST_FILES):
            try:
                with archive.open(info) as member:
                    content = member.read(_LARGEST + 1)
            except BROKEN_ARCHIVE as problem:
                yield Reject(0, "bad_source", f"it cannot be unpacked ({problem})", info.filename)
                continue
            yield from _of_file(content, info.filename)


def _of_file(content: bytes, reference: str) -> Iterator[ParcelSource | Reject]:
    if len(content) > _LARGEST:
        yield Reject(0, "bad_source", f"it is larger than {_LARGEST // 1_000_000} MB", reference)
    elif reference.lower().endswith(".toml"):
        yield from read_own(content, PurePath(reference).stem, reference)
    else:
        try:
            document = json.loads(content)
        except (ValueError, RecursionError) as problem:
            yield Reject(0, "bad_source", f"it is not JSON ({problem})", reference)
            return
        yield from read_document(document, reference)
