"""What a file of parcels is read into: rows, and rejects."""

from __future__ import annotations

import csv
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from lienworker.errors import InputError

RAW_LIMIT = 2_000


@dataclass(slots=True)
class ParcelRow:
    """One usable row: an address, or a platform and a parcel id from which one can be built.

    Treat it as frozen. It is not, because that would cost 1 µs a row, a third of the cost of reading one.
    """

    line: int
    url: str | None
    platform: str | None
    state: str | None
    county: str | None
    parcel_id: str | None
    queue: str | None
    priority: int | None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reject:
    """One unusable row. `reason` is a stable keyword to filter by, `detail` the sentence for people."""

    line: int
    reason: str
    detail: str
    raw: str


@dataclass(frozen=True, slots=True)
class Defaults:
    """The values of a row where the file has none."""

    platform: str | None = None
    state: str | None = None
    county: str | None = None
    queue: str | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is to be read, where its name and its content do not tell."""

    format: str | None = None
    """csv, json, jsonl or txt."""
    encoding: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    """Counted from 1, as spreadsheets count."""
    columns: tuple[str, ...] = ()
    """Columns that the operator named: a row that has one of them is a header."""


class BadRowError(Exception):
    """Inside the intake only: becomes a `Reject` as soon as the reader adds its line and text."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

    def at(self, line: int, raw: str) -> Reject:
        return Reject(line, self.reason, self.detail, tidy(raw))


def tidy(raw: str) -> str:
    """Return the text cut to a reasonable length, without the half characters that no file or database accepts."""
    cut = raw[:RAW_LIMIT]
    return cut if cut.isascii() else cut.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# The rejects file: what could not be imported, for a person to open in a spreadsheet and correct.


HEADER = ("line", "reason", "detail", "raw")
#: Nobody corrects more rows than this by hand; the rest is only counted.
MOST_ROWS = 100_000
MOST_BYTES = 20_000_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain_name(name: str) -> str:
    """Return a file name that is harmless anywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", Path(name).name)[:100] or "import"


class RejectsFile:
    """Writes rejects to `path`. The file is created with the first one, and replaces an older one.

    It is bounded in rows and bytes, since a list can be compressed a thousandfold; its last line says what is left out.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.left_out = 0
        self._file: TextIO | None = None
        self._written = 0

    @classmethod
    def of_import(cls, folder: Path, name: str) -> RejectsFile:
        """Return a separate file for each import, even for imports of the same name."""
        return cls(folder / f"{plain_name(name)}-{secrets.token_hex(3)}.rejects.csv")

    def write(self, reject: Reject) -> None:
        self.count += 1
        if self.left_out or self.count > MOST_ROWS or (self._file and self._written > MOST_BYTES):
            self.left_out += 1
            return
        raw = reject.raw.replace("\0", "\u2400")
        self._write_row((str(reject.line), reject.reason, harmless(reject.detail), harmless(raw)))

    def close(self) -> None:
        if self._file is None or self._file.closed:
            return
        if self.left_out:
            self._write_row(("", "not_listed", f"{self.left_out:,} more rows were rejected; they are not listed", ""))
        self._file.close()

    def in_words(self) -> str:
        """Return a sentence that says where the rejects are, and whether all of them are there."""
        some = f"The first {self.count - self.left_out:,} rejected rows" if self.left_out else "The rejected rows"
        rest = f"; the other {self.left_out:,} were only counted" if self.left_out else ""
        return f"{some}, with line and reason, are in {self.path}{rest}"

    def _write_row(self, cells: tuple[str, ...]) -> None:
        try:
            if self._file is None:
                self._file = self._open()
            csv.writer(self._file).writerow(cells)
            self._written += sum(map(len, cells))
        except OSError as error:
            raise InputError(f"the rejects file {self.path} cannot be written ({error.strerror})") from None

    def __enter__(self) -> RejectsFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> TextIO:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self.path.open("w", encoding="utf-8", newline="")
        csv.writer(file).writerow(HEADER)
        return file


def harmless(cell: str) -> str:
    """Prefix a cell that a spreadsheet would run as a formula with the apostrophe that makes it text."""
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA) else cell
