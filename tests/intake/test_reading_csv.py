"""CSV and its relatives."""

from __future__ import annotations

import pytest
from reading import outline, read, rows, sentence

from lienworker.intake import Defaults, ParcelRow, Reject

URL = "https://county.example/parcel/1"


def test_a_table_gives_its_columns_under_our_names_and_keeps_the_others() -> None:
    found = rows(
        "url,platform,state,county,parcel_id,queue,priority,Owner\n"
        f"{URL},QPublic,fl,Columbia,00 10-001,URGENT,2,PEREZ ANA\n",
        format="csv",
    )

    assert found == [ParcelRow(2, URL, "qpublic", "FL", "Columbia", "00 10-001", "urgent", 2, {"Owner": "PEREZ ANA"})]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_seen_from_the_header(delimiter: str) -> None:
    table = f"Owner,Name|County|URL|Parcel No.\nA,B|Lee|{URL}|007\n" if delimiter == "|" else None
    table = table or f"County,URL,Parcel No.\nLee,{URL},007\n".replace(",", delimiter)

    (row,) = rows(table, format="csv")

    assert (row.county, row.url, row.parcel_id) == ("Lee", URL, "007")


def test_excel_may_name_the_delimiter_in_a_line_of_its_own() -> None:
    assert outline(f"sep=;\nurl;county\n{URL};Lee\n", format="csv") == [(3, "ok")]


def test_case_order_blanks_and_a_bom_in_the_header_do_not_matter() -> None:
    (row,) = rows(f"\ufeff  COUNTY , Url ,  Parcel ID\nLee,{URL},007\n", format="csv")

    assert (row.county, row.url, row.parcel_id) == ("Lee", URL, "007")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_utf8_and_marked_utf16_are_read(encoding: str) -> None:
    (row,) = rows(f"url;county\n{URL};Doña Ana\n".encode(encoding), format="csv")

    assert row.county == "Doña Ana"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_will_do(end: str) -> None:
    text = end.join(["url,county", f"{URL},Lee", f'{URL},"Do, re"', ""])

    assert [(row.line, row.county) for row in rows(text, format="csv")] == [(2, "Lee"), (3, "Do, re")]


def test_quotes_hold_separators_quotes_and_line_ends_and_a_record_counts_from_its_first_line() -> None:
    found = rows(f'url,note\n{URL},"a, ""b""\nc"\n{URL},d\n', format="csv")

    assert [(row.line, row.extra) for row in found] == [(2, {"note": 'a, "b"\nc'}), (4, {"note": "d"})]


def test_an_unclosed_quote_costs_its_own_line_only() -> None:
    table = f'url,note\n{URL},"open\n{URL},b\n{URL},"c"\n{URL},d\n'

    assert outline(table, format="csv") == [(2, "unclosed_quote"), (3, "ok"), (4, "ok"), (5, "ok")]


def test_an_unclosed_quote_far_from_any_other_does_not_swallow_the_file() -> None:
    table = f'url,note\n{URL},"open\n' + f"{URL},b\n" * 5_000

    found = outline(table, format="csv")

    assert found[0] == (2, "unclosed_quote")
    assert found[1:] == [(line, "ok") for line in range(3, 5_003)]


def test_an_unclosed_quote_in_the_last_line_is_rejected() -> None:
    assert outline(f'url,note\n{URL},a\n{URL},"open', format="csv") == [(2, "ok"), (3, "unclosed_quote")]


def test_a_name_in_quotes_inside_a_cell_is_no_fault() -> None:
    (row,) = rows(f'url|owner\n{URL}|"BUD" DOE\n', format="csv")

    assert row.extra == {"owner": "BUD DOE"}


def test_too_many_columns_are_rejected_but_empty_ones_are_not() -> None:
    table = f"url,county\n{URL},Lee,more\n{URL},Lee,,\n{URL}\n"

    assert outline(table, format="csv") == [(2, "too_many_columns"), (3, "ok"), (4, "ok")]


def test_blank_lines_and_rows_of_empty_cells_are_skipped() -> None:
    assert outline(f"\n\nurl,county\n\n{URL},Lee\n,\n  , \n", format="csv") == [(5, "ok")]


def test_columns_of_the_same_name_are_all_kept() -> None:
    (row,) = rows(f"url,OWNER NAME,OWNER NAME,,OWNER NAME\n{URL},A,B,C,D\n", format="csv")

    assert row.extra == {"OWNER NAME": "A", "OWNER NAME 2": "B", "column 4": "C", "OWNER NAME 3": "D"}


def test_empty_cells_are_left_out_and_the_others_stay_as_they_are() -> None:
    (row,) = rows(f"url,a,b,c\n{URL},, x  y ,010.00\n", format="csv")

    assert row.extra == {"b": " x  y ", "c": "010.00"}


def test_defaults_fill_only_what_the_row_does_not_say() -> None:
    defaults = Defaults(platform="vgsi", state="ma", county="Essex", queue="urgent", priority=4)

    first, second = rows("parcel_id,state,county,priority\n001,,,\n002,CT,Kent,1\n", format="csv", defaults=defaults)

    assert first == ParcelRow(2, None, "vgsi", "MA", "Essex", "001", "urgent", 4)
    assert second == ParcelRow(3, None, "vgsi", "CT", "Kent", "002", "urgent", 1)


def test_a_bad_row_does_not_stop_the_rest_and_keeps_its_text() -> None:
    first, second, third = read(f"url,priority\n{URL},1\n{URL},high\n{URL},2\n", format="csv")

    assert isinstance(first, ParcelRow)
    assert isinstance(second, Reject)
    assert (second.line, second.reason, second.raw) == (3, "bad_priority", f"{URL},high")
    assert "1, 2, 3 or 4" in second.detail
    assert isinstance(third, ParcelRow)


@pytest.mark.parametrize(
    ("cell", "column", "reason"),
    [
        ("high", "priority", "bad_priority"),
        ("0", "priority", "bad_priority"),
        ("2.0", "priority", "bad_priority"),
        ("later", "queue", "bad_queue"),
        ("Q Public", "platform", "bad_platform"),
        ("x" * 65, "platform", "bad_platform"),
        ("New Mexico", "state", "bad_state"),
        ("x" * 256, "county", "bad_county"),
        ("x" * 256, "parcel_id", "bad_parcel_id"),
        ("a\x07b", "parcel_id", "bad_parcel_id"),
        ("a\0b", "county", "nul_character"),
        ("a\0b", "note", "nul_character"),
    ],
)
def test_a_value_that_cannot_be_used_has_its_own_reason(cell: str, column: str, reason: str) -> None:
    assert outline(f"url,{column}\n{URL},{cell}\n{URL},\n", format="csv") == [(2, reason), (3, "ok")]


def test_a_row_needs_a_url_or_a_platform_and_a_parcel_id() -> None:
    table = f"url,platform,parcel_id\n{URL},,\n,vgsi,1\n,,1\n,vgsi,\n"

    assert outline(table, format="csv") == [
        (2, "ok"),
        (3, "ok"),
        (4, "missing_platform"),
        (5, "missing_url"),
    ]


def test_a_row_with_bytes_of_another_encoding_is_rejected_among_good_ones() -> None:
    table = f"url,county\n{URL},Lee\n{URL},Do\u00f1a\n{URL},Kent\n".encode("latin-1")

    assert outline(table, format="csv") == [(2, "ok"), (3, "bad_encoding"), (4, "ok")]
    reject = read(table, format="csv")[1]
    assert isinstance(reject, Reject)
    assert reject.raw == f"{URL},Do\ufffda"


def test_a_line_over_a_megabyte_is_rejected_with_its_beginning() -> None:
    table = f"url,note\n{URL},{'x' * 3_000_000}\n{URL},y\n"

    first, second = read(table, format="csv")

    assert isinstance(first, Reject)
    assert (first.line, first.reason, len(first.raw)) == (2, "line_too_long", 2_000)
    assert isinstance(second, ParcelRow)
    assert second.line == 3


def test_the_operator_can_say_which_column_is_what() -> None:
    table = "Key,Where,Parcel ID\nK1,https://a.example/1,P1\n"

    (row,) = rows(table, format="csv", mapping={"parcel_id": "key", "url": "Where"})

    assert (row.url, row.parcel_id, row.extra) == ("https://a.example/1", "K1", {"Parcel ID": "P1"})


def test_a_mapping_to_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    said = sentence(f"url,Key\n{URL},1\n", format="csv", mapping={"parcel_id": "Id"})

    assert "no column 'Id'" in said
    assert "'Key'" in said


def test_a_mapping_of_an_unknown_field_is_refused() -> None:
    assert "'owner'" in sentence(f"url\n{URL}\n", format="csv", mapping={"owner": "url"})


def test_a_header_without_a_usable_column_is_refused_in_one_sentence() -> None:
    assert "'Name', 'Amount'" in sentence("Name,Amount\nA,1\n", name="list.csv")


def test_parcel_ids_without_any_platform_are_refused_once_and_not_row_by_row() -> None:
    said = sentence("APN,Amount\n1,1\n", name="list.csv")

    assert "'APN'" in said
    assert "platform" in said


def test_a_url_where_the_header_should_be_is_recognised() -> None:
    assert "has no header" in sentence(f"{URL}\n{URL}\n", name="list.csv")


def test_a_header_alone_is_a_file_without_parcels() -> None:
    assert "list.csv has no parcels" in sentence("url,county\n", name="list.csv")


def test_a_default_that_cannot_be_used_is_refused_before_anything_is_read() -> None:
    assert "priority" in sentence(f"url\n{URL}\n", format="csv", defaults=Defaults(priority=7))
