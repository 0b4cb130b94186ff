"""Raw pages on disk: compressed, named after their content, stored before any row refers to them."""

from __future__ import annotations

import errno
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from isal import igzip, isal_zlib

from lienworker.data_folder import DataFolder, aside_name, fsync_folder, rename, safe_part
from lienworker.errors import RefusedError, ShortageError, StoreError

#: Intel's library compresses a page in a sixth of the time of zlib's level 3, to within 4 % of its size.
_LEVEL = 2
_PIECE = 1 << 20
_GZIP = 31  # zlib's name for the format
#: The largest value of LIENWORKER_MAX_PAGE_MB.
_LARGEST_PAGE = 1024 * 1_000_000
_REMEDY = "`lienworker doctor --repair --refetch` fetches such pages again."
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_DAMAGED = cast("tuple[type[Exception], ...]", (EOFError, zlib.error, isal_zlib.error))  # stubs: an instance
#: Folders whose parents this process has flushed.
_durable: set[Path] = set()
_EXTENSIONS = {
    "application/json": "json",
    "application/geo+json": "json",
    "text/json": "json",
    "text/csv": "csv",
}


@dataclass(frozen=True, slots=True)
class PageKey:
    """Which parcel's page it is; unknown parts are empty."""

    platform: str
    state: str
    county: str
    parcel_id: str
    task_id: str
    #: Which of the parcel's pages, where there are several.
    part: str = ""

    @property
    def name(self) -> str:
        """The parcel's id, or the task's where that is not known; and the part, where that has a name."""
        name = safe_part(self.parcel_id) if self.parcel_id else safe_part(self.task_id, str.lower)
        return f"{name}.{safe_part(self.part, str.lower)}" if self.part else name

    @property
    def place(self) -> Path:
        return Path(
            safe_part(self.platform or "_", str.lower),
            safe_part(self.state or "_", str.upper),
            safe_part(self.county or "_", str.title),
        )


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """A page written to a temporary file and not yet renamed into place."""

    aside: Path
    path: Path
    sha256: str
    size: int


def write_aside(folder: DataFolder, key: PageKey, body: bytes, content_type: str) -> WrittenPage:
    """Compress a page into a temporary file on the disk of its final place. Cheap to throw away."""
    sha256 = hashlib.sha256(body).hexdigest()
    place = folder.raw / key.place
    extension = _EXTENSIONS.get(content_type, "html")
    path = place / f"{key.name}.{sha256[:16]}.{extension}.gz"
    aside = folder.aside / aside_name()
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(aside, _compressed(body))
    except OSError as problem:
        with suppress(OSError):
            aside.unlink(missing_ok=True)  # do not fill a full disk further
        raise RefusedError.because(problem, str(place.relative_to(folder.root)), len(body)) from None
    return WrittenPage(aside, path, sha256, len(body))


def _compressed(body: bytes) -> Iterator[bytes]:
    """Compress a page piece by piece: one that does not shrink would take twice its size in memory."""
    compressor, view = isal_zlib.compressobj(_LEVEL, wbits=_GZIP), memoryview(body)
    for start in range(0, len(body), _PIECE):
        yield compressor.compress(view[start : start + _PIECE])
    yield compressor.flush()


def _write(aside: Path, pieces: Iterator[bytes]) -> None:
    """Write a file and let the disk start on it at once: flushing a group is then one wait for all, not one each."""
    with open(aside, "xb") as file:
        file.writelines(pieces)
        file.flush()
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def put_in_place(pages: Sequence[WrittenPage]) -> None:
    """Make pages durable under their final names: flush the files, rename them, then flush the folders.

    The name carries the content's hash, so a rename can only ever replace the very same page.
    """
    try:
        _put_in_place(pages)
    except OSError as problem:
        for page in pages:
            with suppress(OSError):
                page.aside.unlink(missing_ok=True)
        place = Path(*pages[0].path.parts[-5:-1])  # from `raw` on
        raise RefusedError.because(problem, str(place), pages[0].size) from None


def _put_in_place(pages: Sequence[WrittenPage]) -> None:
    for page in pages:
        handle = os.open(page.aside, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    for page in pages:
        rename(page.aside, page.path, "raw_file")
    for place in {page.path.parent for page in pages}:
        _make_durable(place)


def _make_durable(place: Path) -> None:
    """Flush the folder, and the first time those above it up to `raw/`, since they may be as new as the page."""
    fsync_folder(place)
    if place not in _durable:
        for parent in list(place.parents)[:4]:
            fsync_folder(parent)
        _durable.add(place)


def read_page(path: Path, sha256: str) -> bytes:
    """Return the page's bytes, checked against its hash."""
    pieces: list[bytes] = []
    check_page_file(path, sha256, pieces.append)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def check_page_file(path: Path, sha256: str, keep: Callable[[bytes], object] = lambda piece: None) -> None:
    """Read a page's file to its end; raise StoreError unless it is the page of that hash.

    A file can unpack to a thousand times its size: a caller that only checks it holds one piece at a time, and one that
    keeps it holds no more than the largest page that can have been fetched.
    """
    found, size = hashlib.sha256(), 0
    try:
        with igzip.open(path, "rb") as content:  # type: ignore[no-untyped-call]
            while piece := content.read(_PIECE):
                size += len(piece)
                if size > _LARGEST_PAGE:
                    raise StoreError(f"The raw page {path} is larger than any page that we fetch. {_REMEDY}")
                found.update(piece)
                keep(piece)
    except OSError as problem:
        if problem.errno in _SHORTAGES:  # the page is there: to fetch it again would be wrong
            raise ShortageError(problem.errno, problem.strerror, str(path)) from None
        raise StoreError(f"The raw page {path} cannot be read: {problem}. {_REMEDY}") from None
    except _DAMAGED as problem:
        raise StoreError(f"The raw page {path} cannot be read: {problem}. {_REMEDY}") from None
    if found.hexdigest() != sha256:
        raise StoreError(f"The raw page {path} is not the one that was stored: its hash differs. {_REMEDY}")


# Paths that the database names: used only where they stay in the folder that they belong to.
#
# A database may come from a stranger's backup. The paths that it names under `raw/` are moved, removed, sent and shown,
# so a path that leads anywhere else is not accepted as a page, whatever the row says.


#: Path parts that lead out of a folder, or nowhere.
_NO_NAMES = frozenset({"", ".", ".."})


def is_raw_path(path: object) -> bool:
    """Return whether this is `raw/` and plain names below it; a text column of SQLite can hold anything."""
    if not isinstance(path, str):
        return False
    top, *rest = path.split("/")
    return top == "raw" and bool(rest) and _NO_NAMES.isdisjoint(rest) and "\0" not in path


def raw_place(root: Path, path: str) -> Path:
    """Return where a stored raw page is; raise StoreError for a path that leads out of `raw/`."""
    if not is_raw_path(path):
        raise StoreError(f"The stored path {str(path)[:200]!r} is not one of a raw page: it does not lie in raw/.")
    return root / path


def is_inside(folder: Path, place: Path) -> bool:
    """Return whether a path is in a folder after following links; checked before anything is moved or removed."""
    return place.name not in _NO_NAMES and place.parent.resolve().is_relative_to(folder.resolve())
