"""The rejects file: what could not be imported, for a person to open in a spreadsheet and put right."""

from __future__ import annotations

import csv
import re
import secrets
from pathlib import Path
from types import TracebackType
from typing import TextIO

from lienworker.errors import InputError
from lienworker.intake.rows import Reject

HEADER = ("line", "reason", "detail", "raw")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain_name(name: str) -> str:
    """A file name that is harmless anywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", Path(name).name)[:100] or "import"


class RejectsFile:
    """Writes rejects to `path`. The file comes into being with the first one, in place of an older one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._file: TextIO | None = None

    @classmethod
    def of_import(cls, folder: Path, name: str) -> RejectsFile:
        """A file of its own for each import, also of those that are called the same."""
        return cls(folder / f"{plain_name(name)}-{secrets.token_hex(3)}.rejects.csv")

    def write(self, reject: Reject) -> None:
        try:
            if self._file is None:
                self._file = self._open()
            raw = reject.raw.replace("\0", "\u2400")
            cells = (reject.line, reject.reason, harmless(reject.detail), harmless(raw))
            csv.writer(self._file).writerow(cells)
        except OSError as error:
            raise InputError(f"the rejects file {self.path} cannot be written ({error.strerror})") from None
        self.count += 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

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
    """A cell that a spreadsheet would run as a formula, with the apostrophe that makes it text."""
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA) else cell
