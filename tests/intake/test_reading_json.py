"""JSON arrays and JSONL."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
from reading import outline, read, rows, sentence

from lienworker.intake import Layout, ParcelRow, Reject, read_parcels

A, B, C = (f'{{"url": "https://county.example/{n}"}}' for n in "abc")


def test_jsonl_gives_a_row_a_line() -> None:
    line = '{"URL": "https://a.example/1", "APN": "007", "State": "fl", "priority": 3, "owner": "X", "none": null}'

    assert rows(f"\n{line}\r\n", format="jsonl") == [
        ParcelRow(2, "https://a.example/1", None, "FL", None, "007", None, 3, {"owner": "X"})
    ]


def test_a_numeric_parcel_id_keeps_all_its_digits_and_a_float_is_refused() -> None:
    lines = (
        '{"platform": "vgsi", "parcel_id": 123456789012345678901234567890}\n'
        '{"platform": "vgsi", "parcel_id": 12.50}\n'
        '{"platform": "vgsi", "parcel_id": true}\n'
    )

    first, second, third = read(lines, format="jsonl")

    assert isinstance(first, ParcelRow)
    assert first.parcel_id == "123456789012345678901234567890"
    assert isinstance(second, Reject)
    assert isinstance(third, Reject)
    assert {second.reason, third.reason} == {"bad_parcel_id"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"url": "https://a.example/1"', "bad_json"),
        ("nonsense", "bad_json"),
        (f"{A} {B}", "bad_json"),
        ('{"url": "https://a.example/1", "x": NaN}', "bad_json"),
        ('{"url": "https://a.example/1", "x": 1e999}', "bad_json"),
        ('{"url": "https://a.example/1", "x": ' + "9" * 5_000 + "}", "bad_json"),
        ('{"url": "https://a.example/1", "x": "\\u0000"}', "nul_character"),
        ('{"url": "https://a.example/1", "x": "\\ud800"}', "bad_encoding"),
        ('{"url": "https://a.example/1", "\\ud800": 1}', "bad_encoding"),
        ('{"url": "https://a.example/1", "x": "' + "x" * 1_000_000 + '"}', "line_too_long"),
        ('{"url": "https://a.example/1", "x": ' + "[" * 40 + "]" * 40 + "}", "too_deep"),
        ('{"url": "https://a.example/1", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "too_deep"),
        ("[1]", "not_an_object"),
        ("null", "not_an_object"),
        ("{}", "missing_url"),
        ('{"url": 7}', "bad_url"),
        ('{"url": ["https://a.example/1"]}', "bad_url"),
        ('{"url": "https://a.example/1", "state": ["FL"]}', "bad_state"),
        ('{"url": "https://a.example/1", "county": {"name": "Lee"}}', "bad_county"),
        ('{"url": "https://a.example/1", "state": 7}', "bad_state"),
        ('{"url": "https://a.example/1", "priority": true}', "bad_priority"),
        ('{"url": "https://a.example/1", "priority": 1.0}', "bad_priority"),
    ],
)
def test_a_bad_line_or_element_is_rejected_between_its_good_neighbours(line: str, reason: str) -> None:
    assert outline(f"{A}\n{line}\n{C}\n", format="jsonl") == [(1, "ok"), (2, reason), (3, "ok")]


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ('{"url": "https://a.example/1" "x": 1}', "bad_json"),
        ('{"url": https://a.example/1, "x": [{"a": 1}, {"b": 2}]}', "bad_json"),
        ('{"url": "https://a.example/1", "x": NaN}', "bad_json"),
        ('{"url": "https://a.example/1}', "bad_json"),
        ('{"url": "https://a.example/1"', "bad_json"),
        ('{"url": "https://a.example/1"]', "bad_json"),
        ("nonsense", "bad_json"),
        ('{"url": "https://a.example/1", "x": "' + "x" * 1_500_000 + '"}', "line_too_long"),
        ('{"url": "https://a.example/1", "x": "\\ud800"}', "bad_encoding"),
        ("17", "not_an_object"),
        ('"https://a.example/1"', "not_an_object"),
        ("[]", "not_an_object"),
    ],
)
def test_a_bad_element_of_an_array_costs_only_itself(element: str, reason: str) -> None:
    assert outline(f"[\n{A},\n{element},\n{C}\n]", format="json") == [(2, "ok"), (3, reason), (4, "ok")]


def test_the_elements_of_a_pretty_array_have_the_line_that_they_begin_on() -> None:
    text = json.dumps([json.loads(A), {"x": {"deep": [1, 2]}, **json.loads(B)}, json.loads(C)], indent=2)

    assert [row.line for row in rows(text, format="json")] == [2, 5, 14]


def test_an_array_is_read_the_same_however_it_is_cut_into_pieces() -> None:
    text = f'[{A}, {{"platform": "vgsi", "parcel_id": 12345, "x": "\\u00e9\\\\"}},\n {{"url": 1e5}},\n{C}]'

    class Dribble(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(1)

    assert list(read_parcels(Dribble(text.encode()), layout=Layout(format="json"))) == read(text, format="json")


def test_an_array_under_a_key_is_found_behind_other_pairs() -> None:
    text = f'{{"count": 2, "tags": ["a", "b"], "source": {{"x": []}}, "parcels": [{A}, {B}], "next": null}}'

    assert outline(text, format="json") == [(1, "ok"), (1, "ok")]


def test_objects_one_after_the_other_are_read_also_from_a_json_file() -> None:
    assert outline(f"{A}\n{B}\n", name="list.json") == [(1, "ok"), (2, "ok")]


def test_one_object_is_one_row() -> None:
    assert outline(json.dumps(json.loads(A), indent=2), name="list.json") == [(1, "ok")]


def test_what_follows_the_end_of_the_array_does_not_vanish() -> None:
    assert outline(f"[{A}]\n[{B}]", format="json") == [(1, "ok"), (2, "bad_json")]


def test_a_cut_off_array_gives_its_rows_and_then_says_so() -> None:
    stream = read_parcels(io.BytesIO(f'[{A},\n{B},\n{{"url": "ht'.encode()), name="list.json")

    assert [next(stream).line, next(stream).line] == [1, 2]
    assert "list.json was cut off" in sentence(f'[{A},\n{{"url": "ht', name="list.json")
    assert "list.json was cut off" in sentence(f"[{A}", name="list.json")


def test_a_broken_last_element_is_a_reject_and_not_taken_for_a_cut_off_file() -> None:
    assert outline(f'[\n{A},\n{{"url": "https://a.example/1",\n]', format="json") == [(2, "ok"), (3, "bad_json")]


def test_an_empty_array_is_a_file_without_parcels() -> None:
    assert "list.json has no parcels" in sentence("[]", name="list.json")
    assert "list.json has no parcels" in sentence('{"parcels": []}', name="list.json")


def test_an_object_without_any_list_is_refused() -> None:
    assert "no list of parcels" in sentence('{"count": 2, "state": "FL"}', name="list.json")


def test_a_chosen_key_may_be_missing_from_some_objects() -> None:
    text = '{"Key": "1", "platform": "vgsi"}\n{"url": "https://a.example/2"}\n'

    first, second = rows(text, format="jsonl", mapping={"parcel_id": "Key"})

    assert (first.parcel_id, second.parcel_id) == ("1", None)


def test_keys_that_never_repeat_do_not_fill_the_memory() -> None:
    def lines() -> Iterator[str]:
        for n in range(2_000):
            yield f'{{"url": "https://a{n}.example/1", "key{n}": {n}, "county": "c{n}"}}\n'

    found = rows("".join(lines()), format="jsonl")

    assert [row.extra for row in found] == [{f"key{n}": n} for n in range(2_000)]
