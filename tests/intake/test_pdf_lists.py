"""Lists in PDF documents: every cell as it stands there, and what is not certain is rejected with its page and line."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from lienworker.errors import InputError, PageError
from lienworker.intake import Defaults, Layout, ParcelRow, Reject, read_parcels
from lienworker.intake.pdf_table import convert
from lienworker.intake.read import header_of
from tests.harness.pdf_lists import aligned, document, ruled, text

pytest.importorskip("pdfplumber", reason="the extra pdf is not installed: lists in PDF documents were not read")
HEADER = ["Parcel ID", "Owner", "Situs", "Opening bid"]
WIDTHS = [120, 150, 150, 90]


def table(n: int) -> list[list[str]]:
    """Ids with zeros in front, some rows without an owner, amounts with commas."""
    return [
        [f"00-{i:05d}-{i % 7}", f"OTTER IDA {i}" if i % 9 else "", f"{i} ACORN LN", f"{i * 13:,}.50"] for i in range(n)
    ]


def read(content: bytes, tmp_path: Path) -> tuple[list[ParcelRow], list[Reject]]:
    path = tmp_path / "list.pdf"
    path.write_bytes(content)
    found = list(read_parcels(path, defaults=Defaults(platform="demo")))
    return [item for item in found if isinstance(item, ParcelRow)], [item for item in found if isinstance(item, Reject)]


def cells(row: ParcelRow) -> list[str]:
    return [row.parcel_id or "", *(row.extra.get(name, "") for name in HEADER[1:])]


@pytest.mark.parametrize("make", [ruled, aligned])
def test_four_hundred_rows_are_read_without_a_wrong_cell(make: object, tmp_path: Path) -> None:
    assert callable(make)
    good, rejects = read(make(HEADER, table(400), WIDTHS), tmp_path)

    assert not rejects
    assert [cells(row) for row in good] == table(400)


def test_a_name_that_runs_into_the_next_column_is_rejected_with_its_page_and_line(tmp_path: Path) -> None:
    rows = table(60)
    rows[45][1] = "OTTER AND OTTER AND OTTER AND OTTER"

    good, [reject] = read(aligned(HEADER, rows, WIDTHS), tmp_path)

    assert len(good) == 59
    assert (reject.line, reject.reason) == (46, "uncertain_row")
    assert reject.detail.startswith("page 2, line 8: ")


def test_a_word_on_a_rule_is_rejected(tmp_path: Path) -> None:
    rows = table(5)
    rows[2][0] = "00-00002-2-AND-MORE-THAN-FITS"

    good, [reject] = read(ruled(HEADER, rows, WIDTHS), tmp_path)

    assert len(good) == 4
    assert reject.detail.startswith("page 1, line 5: ")


def test_a_line_that_may_continue_the_one_before_costs_both(tmp_path: Path) -> None:
    rows = table(6)
    rows.insert(3, ["", "AND HERON JO", "", ""])

    good, rejects = read(aligned(HEADER, rows, WIDTHS), tmp_path)

    assert [row.parcel_id for row in good] == [row[0] for row in table(6) if row != table(6)[2]]
    assert [reject.reason for reject in rejects] == ["uncertain_row"] * 2
    assert "may continue" in rejects[0].detail


def test_a_merged_cell_is_rejected(tmp_path: Path) -> None:
    lines = ["40 800 m 40 740 l S", "300 800 m 300 740 l S", "160 800 m 160 760 l S"]
    lines += [f"40 {y} m 300 {y} l S" for y in (800, 780, 760, 740)]
    words = [text(43, 785, "Parcel ID"), text(163, 785, "Owner"), text(43, 765, "00-1"), text(163, 765, "OTTER"),
             text(43, 745, "00-2 AND ALL OF ITS LAND")]  # fmt: skip

    good, [reject] = read(document([lines + words]), tmp_path)

    assert [row.parcel_id for row in good] == ["00-1"]
    assert "1 cells where the header has 2" in reject.detail


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%PDF-1.4\nnothing", "cannot be read"),
        (document([["0 0 m 10 10 l S"]]), "it is a scan"),
        (document([[text(40, 700, "A letter to whom it may concern")]]), "no table with a column"),
        (document([["0 0 m 1 1 l S"]] * 1_001), "1,001 pages"),
    ],
)
def test_what_is_no_list_gets_one_sentence(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        read(content, tmp_path)


def test_a_page_with_too_much_on_it_is_refused_and_not_worked_on(tmp_path: Path) -> None:
    hostile = document([[f"{n % 600} 0 m {n % 600} 800 l S" for n in range(30_000)]])
    started = time.process_time()

    with pytest.raises(InputError, match="more on page 1 than a list has"):
        read(hostile, tmp_path)

    assert time.process_time() - started < 10


def test_without_the_library_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pdfplumber", None)

    with pytest.raises(PageError, match=r"lienworker\[pdf\]"):
        convert({"columns": []}, b"%PDF-1.4")


def test_the_header_is_shown_before_anything_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "list.pdf"
    path.write_bytes(aligned(HEADER, table(3), WIDTHS))

    assert header_of(path, Layout(), {}) == HEADER


def test_a_title_and_a_remark_are_no_parcels(tmp_path: Path) -> None:
    rows = [*table(45), ["Remarks", "", "none", ""], ["Total 45", "", "", ""]]

    good, rejects = read(aligned(HEADER, rows, WIDTHS, title="County of Juniper"), tmp_path)

    assert [row.parcel_id for row in good] == [row[0] for row in table(45)]
    assert len(rejects) == 2
