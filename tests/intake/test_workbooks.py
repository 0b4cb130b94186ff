"""Spreadsheets: the sheet and the header are found, cells are as a person sees them, and no workbook is too clever."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
import pytest
import xlwt

from lienworker.errors import InputError
from lienworker.intake import Defaults, Layout, ParcelRow, Reject, read_parcels
from lienworker.intake.number_formats import apply_mask
from tests.intake.reading import read, rows, sentence

Table = list[list[Any]]
PLATFORM = Defaults(platform="demo")
HEADER = ["Parcel ID", "Owner", "Opening bid", "Sale date"]


def xlsx(table: Table, *others: tuple[str, Table]) -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    for row in table:
        sheet.append(row)
    for name, cells in others:
        more = workbook.create_sheet(name)
        for row in cells:
            more.append(row)
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def xls(table: Table) -> bytes:
    workbook = xlwt.Workbook()
    sheet = workbook.add_sheet("Sheet")
    day = xlwt.easyxf(num_format_str="YYYY-MM-DD")
    for at, row in enumerate(table):
        for column, cell in enumerate(row):
            if cell is not None:
                sheet.write(at, column, cell, *([day] if isinstance(cell, dt.date) else []))
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def ods(table: Table) -> bytes:
    lines = "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in table)
    content = (
        '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet">{lines}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    return out.getvalue()


def _ods_cell(cell: Any) -> str:
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, dt.date):
        return f'<table:table-cell office:value-type="date" office:date-value="{cell}"><text:p/></table:table-cell>'
    if isinstance(cell, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{cell}"><text:p/></table:table-cell>'
    return f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'


def parcels(n: int) -> Table:
    chance = random.Random(7)
    names = ["SMITH & SONS, LLC", 'THE "OLD" TRUST', "Núñez", "O'BRIEN", "A; B|C"]
    start = dt.date(2026, 6, 1)
    return [
        [
            f"{chance.randrange(100):02}-{chance.randrange(1000):03}-{n:05}",
            chance.choice(names),
            chance.choice([1200, 88.25, 0.5, None]),
            start + dt.timedelta(days=chance.randrange(90)),
        ]
        for n in range(n)
    ]


def _as_written(row: list[Any]) -> tuple[Any, ...]:
    parcel_id, owner, bid, day = row
    return parcel_id, owner, None if bid is None else str(bid), day.isoformat()


def _as_read(row: ParcelRow) -> tuple[Any, ...]:
    extra = row.extra
    return row.parcel_id, extra.get("Owner"), extra.get("Opening bid"), extra.get("Sale date")


@pytest.mark.parametrize("make", [xlsx, xls, ods])
def test_four_hundred_rows_of_a_workbook_are_read_without_a_wrong_cell(make: Callable[[Table], bytes]) -> None:
    table = parcels(400)

    found = rows(make([HEADER, *table]), defaults=PLATFORM)

    assert [_as_read(row) for row in found] == [_as_written(row) for row in table]


@pytest.mark.parametrize("make", [xlsx, xls, ods])
def test_the_header_is_found_below_titles_and_lines_are_rows_of_the_sheet(make: Callable[[Table], bytes]) -> None:
    above: Table = [["Dixie County"], [None], ["List of", 2026]]

    found = rows(make([*above, HEADER, *parcels(2)]), defaults=PLATFORM)

    assert [row.line for row in found] == [5, 6]


def test_ids_that_a_format_shows_with_zeros_and_hyphens_are_read_as_they_are_shown() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.append(["Parcel ID"])
    for at, (number, mask) in enumerate([(123, "00000"), (1234567, "00-00-000"), (7, "General"), (42, '"R"0000')], 2):
        sheet.cell(at, 1, number).number_format = mask
    out = io.BytesIO()
    workbook.save(out)

    assert [row.parcel_id for row in rows(out.getvalue(), defaults=PLATFORM)] == ["00123", "12-34-567", "7", "R0042"]


@pytest.mark.parametrize(
    ("digits", "mask", "shown"),
    [("5", "000", "005"), ("12345", "000", "12345"), ("1234", "00-00-00", "00-12-34"), ("99", r"0\.0", "9.9")],
)
def test_a_mask_is_filled_from_the_right(digits: str, mask: str, shown: str) -> None:
    assert apply_mask(digits, mask) == shown


def test_an_id_that_the_spreadsheet_has_rounded_is_rejected() -> None:
    (found,) = read(xlsx([["Parcel ID"], [123456789012345678]]), defaults=PLATFORM)

    assert isinstance(found, Reject)
    assert found.reason == "bad_parcel_id"
    assert "rounded" in found.detail


def test_a_line_break_in_a_cell_moves_no_line() -> None:
    found = rows(xlsx([["Parcel ID", "Owner"], ["1", "A\nB"], ["2", "C"]]), defaults=PLATFORM)

    assert [(row.line, row.extra["Owner"]) for row in found] == [(2, "A B"), (3, "C")]


def test_the_sheet_with_parcels_is_taken_and_of_two_one_must_be_named() -> None:
    notes = ("Notes", [["Read me"], ["nothing here"]])
    second = ("June", [["Parcel ID"], ["J-1"]])

    assert [row.parcel_id for row in rows(xlsx([["Parcel ID"], ["M-1"]], notes), defaults=PLATFORM)] == ["M-1"]

    both = xlsx([["Parcel ID"], ["M-1"]], notes, second)
    assert sentence(both, name="list.xlsx", defaults=PLATFORM) == (
        "list.xlsx has parcels on 2 sheets ('Sheet', 'June'); say which one (--sheet)"
    )
    june = rows(both, layout=Layout(sheet="June"), defaults=PLATFORM)
    assert [row.parcel_id for row in june] == ["J-1"]
    wrong = sentence(both, name="list.xlsx", layout=Layout(sheet="July"), defaults=PLATFORM)
    assert wrong == "list.xlsx has no sheet 'July'; its sheets are 'Sheet', 'Notes', 'June'"


def test_a_header_row_that_is_named_is_believed() -> None:
    table = xlsx([["Parcel ID", "x"], ["Konto", "y"], ["A-1", "z"]])

    (found,) = rows(table, layout=Layout(header_row=2), mapping={"parcel_id": "Konto"}, defaults=PLATFORM)

    assert (found.line, found.parcel_id, found.extra) == (3, "A-1", {"y": "z"})


def test_a_table_of_text_has_a_header_row_and_an_encoding_too() -> None:
    content = "County list\n\nparcel_id,owner\n1,Doña Ana\n".encode("cp1252")
    layout = Layout(encoding="windows-1252", header_row=3)

    (found,) = rows(content, layout=layout, defaults=PLATFORM)

    assert (found.line, found.extra["owner"]) == (4, "Doña Ana")
    assert "no encoding 'latin-99'" in sentence(content, layout=Layout(encoding="latin-99"))
    assert "no encoding of text" in sentence(content, layout=Layout(encoding="hex"))
    assert "nothing in line 9" in sentence(b"parcel_id\n1\n", layout=Layout(header_row=9))


def _zip(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return out.getvalue()


def test_a_zip_archive_with_one_table_is_that_table() -> None:
    csv = b"parcel_id\n1\n2\n"

    assert len(rows(_zip(list_csv=csv, readme_txt=b"hello", a__b_png=b""), defaults=PLATFORM)) == 2
    assert len(rows(_zip(list_xlsx=xlsx([["Parcel ID"], ["1"]])), defaults=PLATFORM)) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_zip(a_csv=b"x", b_csv=b"y"), "has 2 lists inside ('a.csv', 'b.csv')"),
        (_zip(a_png=b"x"), "without a list of parcels; there is 'a.png' inside"),
        (_zip(a_csv=b"parcel_id\n" + b"x" * 40_000_000), "unpacks to more than 50 times"),
        (_zip(list_csv=b"parcel_id\n1\n")[:-30], "damaged zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "cannot be read"),
        (xlsx([["a", "b"], ["c", "d"]]), "no sheet with a column for a URL or a parcel id"),
        (xlsx([]), "no sheet with a column for a URL or a parcel id"),
    ],
    ids=["two lists", "no list", "a bomb", "cut off", "no workbook", "no column", "empty"],
)
def test_an_archive_that_cannot_be_used_gets_one_sentence(content: bytes, said: str) -> None:
    text = sentence(content, name="list.zip", defaults=PLATFORM)

    assert said in text
    assert "\n" not in text


def test_a_workbook_that_describes_billions_of_cells_gets_one_sentence() -> None:
    """One cell at the far corner, whose sheet a reader would lay out in full."""
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet["A1"] = "Parcel ID"
    sheet["XFD1048576"] = "x"
    out = io.BytesIO()
    workbook.save(out)

    assert "takes too much memory or time; save the sheet as CSV" in sentence(out.getvalue(), name="list.xlsx")


def test_damaged_workbooks_give_rows_rejects_or_one_sentence(tmp_path: Path) -> None:
    chance = random.Random(3)
    whole = {".xlsx": xlsx([HEADER, *parcels(30)]), ".xls": xls([HEADER, *parcels(30)]), ".ods": ods([HEADER])}
    for number in range(24):
        ending, content = chance.choice(list(whole.items()))
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 20)):
            damaged[chance.randrange(4, len(damaged))] = chance.randrange(256)
        path = tmp_path / f"list{number}{ending}"
        path.write_bytes(damaged[: chance.choice([len(damaged), chance.randrange(8, len(damaged))])])
        with contextlib.suppress(InputError):  # anything else would be a fault of ours
            list(read_parcels(path, defaults=PLATFORM))
