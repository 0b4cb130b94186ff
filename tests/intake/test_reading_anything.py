"""Whatever the bytes are, there are only rows, rejects and one kind of error; and what was written is read."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from itertools import chain, repeat
from pathlib import Path
from typing import Any, ClassVar

import fuzzing
import pytest
from fuzzing import FORMATS, SCRAPS, SEEDS
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import rows

from lienworker.intake import Layout, ParcelRow, Reject, read_parcels


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    content = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(content)))
        content[place : place + draw(st.integers(0, 3))] = draw(st.sampled_from(SCRAPS) | st.binary(max_size=3))
    return bytes(content)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200) | damaged_files(), st.sampled_from(FORMATS))
def test_any_bytes_give_rows_rejects_or_an_input_error(content: bytes, form: str | None) -> None:
    fuzzing.read(content, form)


def test_a_short_campaign_of_damaged_files_breaks_nothing() -> None:
    """`make fuzz` runs a hundred thousand."""
    assert fuzzing.campaign(2_000, seed=20)["broken"] == 0


@pytest.mark.parametrize("case", sorted(fuzzing.CASES.glob("*.*")), ids=lambda case: case.name)
def test_what_once_broke_a_reader_does_not_any_more(case: Path) -> None:
    fuzzing.read(case.read_bytes(), None if case.suffix == ".any" else case.suffix[1:])


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp", "Cf")), min_size=1)
ids = st.from_regex(r"\A[0-9A-Z]([ 0-9A-Z.-]{0,20}[0-9A-Z])?\Z")
records = st.fixed_dictionaries(
    {
        "url": st.from_regex(r"\Ahttps?://[a-z]{1,8}\.example/[a-zA-Z0-9?=&,;|%.#'\"/-]{0,30}\Z"),
        "platform": st.sampled_from(["qpublic", "vgsi", "polk_ia"]),
        "state": st.sampled_from(["FL", "AZ"]),
        "county": words.map(lambda word: word[:100]),
        "parcel_id": ids,
        "queue": st.sampled_from(["urgent", "default"]),
        "priority": st.integers(1, 4),
        "note": words | st.just('two\nlines, "quoted"; and | more'),
    }
)


def as_csv(lines: list[dict[str, Any]], delimiter: str, quoting: Any) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), delimiter=delimiter, quoting=quoting)
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def as_records(found: list[ParcelRow]) -> list[dict[str, Any]]:
    names = ("url", "platform", "state", "county", "parcel_id", "queue", "priority")
    return [{**{name: getattr(row, name) for name in names}, **row.extra} for row in found]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(records, min_size=1, max_size=8),
    st.sampled_from(",;\t|"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_was_written_as_csv_is_read_again(lines: list[dict[str, Any]], delimiter: str, quoting: Any) -> None:
    assert as_records(rows(as_csv(lines, delimiter, quoting), format="csv")) == lines


@settings(max_examples=60, deadline=None)
@given(st.lists(records, min_size=1, max_size=8), st.booleans(), st.sampled_from([None, 1]))
def test_what_was_written_as_json_is_read_again(
    lines: list[dict[str, Any]], ascii_only: bool, indent: int | None
) -> None:
    array = json.dumps(lines, ensure_ascii=ascii_only, indent=indent)
    assert as_records(rows(array, format="json")) == lines
    one_a_line = "\n".join(json.dumps(line, ensure_ascii=ascii_only) for line in lines)
    assert as_records(rows(one_a_line, format="jsonl")) == lines


@settings(max_examples=60, deadline=None)
@given(st.lists(records, min_size=1, max_size=8))
def test_what_was_written_as_a_list_is_read_again(lines: list[dict[str, Any]]) -> None:
    urls = [line["url"] for line in lines]

    assert [row.url for row in rows("\n".join(urls), format="txt")] == urls


class Endless(io.RawIOBase):
    """A megabytes-long file that is never there all at once."""

    LINES: ClassVar = {
        "csv": (b"url,county\n", b"https://a.example/1,Lee\n", b""),
        "json": (b"[", b'{"url": "https://a.example/1"},\n', b"{}]"),
        "jsonl": (b"", b'{"url": "https://a.example/1"}\n', b""),
        "txt": (b"", b"https://a.example/1\n", b""),
    }

    def __init__(self, form: str, blocks: int) -> None:
        first, line, last = self.LINES[form]
        self._blocks = chain([first + line], repeat(line * 3_000, blocks), [last])

    def read(self, size: int = -1, /) -> bytes:
        return next(self._blocks, b"")


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "txt"])
def test_memory_does_not_grow_with_the_file(form: str) -> None:
    tracemalloc.start()
    count = sum(1 for _ in read_parcels(Endless(form, 20), layout=Layout(format=form)))  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count >= 60_001
    assert peak < 4_000_000


def test_a_bomb_of_one_endless_line_is_defused() -> None:
    bomb = io.BytesIO(b"http://a.example/1\n" + b"x" * 60_000_000 + b"\nhttp://a.example/2\n")

    tracemalloc.start()
    found = list(read_parcels(bomb, name="list.txt"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [item.line for item in found] == [1, 2, 3]
    assert isinstance(found[1], Reject)
    assert found[1].reason == "line_too_long"
    assert peak < 12_000_000
