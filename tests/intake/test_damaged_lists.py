"""Damaged workbooks and PDF documents, some of those that `make fuzz-lists` reads by the thousand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lienworker.intake import Defaults, read_parcels
from tests.intake.list_fuzzing import SEEDS, outcomes
from tests.intake.reading import rows
from tests.intake.test_workbooks import HEADER, ods, xls, xlsx

pytest.importorskip("pdfplumber", reason="the extra pdf is not installed: damaged PDF documents were not read")


def test_damaged_lists_give_rows_rejects_or_one_sentence() -> None:
    counts = Counter(what.partition(":")[0] for _, what in outcomes(150, seed=7))

    assert sum(counts.values()) == 150
    assert {"rows", "refused"} <= counts.keys()


@pytest.mark.parametrize("kind", SEEDS)
def test_what_is_damaged_is_not_damaged_to_begin_with(kind: str, tmp_path: Path) -> None:
    """Otherwise the campaign would read refusals only."""
    path = tmp_path / f"list.{kind.rpartition(' ')[2]}"
    path.write_bytes(SEEDS[kind])

    assert len(list(read_parcels(path, defaults=Defaults(platform="demo")))) == 12


@pytest.mark.parametrize("make", [xlsx, xls, ods])
def test_four_hundred_rows_of_a_workbook_are_read_without_a_wrong_cell(make: Any) -> None:
    table = [
        [f"00{n:04d}-{n % 7}", f"OTTER & HERON {n}", f"{n * 13:,}.50", f"2026-11-{n % 28 + 1:02d}"] for n in range(400)
    ]

    found = rows(make([HEADER, *table]), defaults=Defaults(platform="demo"))

    assert [[row.parcel_id, *(row.extra[name] for name in HEADER[1:])] for row in found] == table
