"""The rejects file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lienworker.errors import InputError
from lienworker.intake import Reject, RejectsFile


def test_no_reject_makes_no_file(tmp_path: Path) -> None:
    with RejectsFile(tmp_path / "rejects.csv") as file:
        pass

    assert file.count == 0
    assert list(tmp_path.iterdir()) == []


def test_rejects_can_be_read_back_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rejects.csv"

    with RejectsFile(path) as file:
        file.write(Reject(7, "bad_priority", "use 1, 2, 3 or 4", 'x,"two\nlines"'))
        file.write(Reject(9, "nul_character", "remove it", "ñ\0"))

    with path.open(encoding="utf-8", newline="") as lines:
        assert list(csv.reader(lines)) == [
            ["line", "reason", "detail", "raw"],
            ["7", "bad_priority", "use 1, 2, 3 or 4", 'x,"two\nlines"'],
            ["9", "nul_character", "remove it", "ñ␀"],
        ]
    assert file.count == 2


@pytest.mark.parametrize("raw", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1"])
def test_a_cell_that_a_spreadsheet_would_run_is_made_harmless(tmp_path: Path, raw: str) -> None:
    path = tmp_path / "rejects.csv"

    with RejectsFile(path) as file:
        file.write(Reject(1, "bad_url", "correct it", raw))

    with path.open(encoding="utf-8", newline="") as lines:
        assert list(csv.reader(lines))[1][3] == f"'{raw}"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match=r"rejects\.csv cannot be written"):
        RejectsFile(tmp_path / "file" / "rejects.csv").write(Reject(1, "bad_url", "correct it", "x"))
