"""What a file is, where it comes from, and the one sentence for what cannot be used."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reading import outline, read, rows, sentence

from lienworker.errors import InputError
from lienworker.intake import read_parcels

CSV = "url,county\nhttps://a.example/1,Lee\n"
JSONL = '{"url": "https://a.example/1", "county": "Lee"}\n'
JSON = f"[{JSONL}]"
TXT = "https://a.example/1\n"
KINDS = {"csv": CSV, "tsv": CSV.replace(",", "\t"), "json": JSON, "jsonl": JSONL, "ndjson": JSONL, "txt": TXT}


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_is_read_by_its_name_zipped_or_not(tmp_path: Path, ending: str, zipped: bool) -> None:
    path = tmp_path / f"parcels.{ending}{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(KINDS[ending].encode(), mtime=0) if zipped else KINDS[ending].encode())

    assert [row.url for row in read_parcels(path)] == ["https://a.example/1"]  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", KINDS)
def test_without_a_name_the_content_decides(ending: str) -> None:
    assert [row.url for row in rows(KINDS[ending])] == ["https://a.example/1"]
    assert [row.url for row in rows(gzip.compress(KINDS[ending].encode(), mtime=0))] == ["https://a.example/1"]


def test_a_zipped_file_that_does_not_say_so_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "parcels.csv"
    path.write_bytes(
        gzip.compress(CSV.encode(), mtime=0) + gzip.compress(b"https://a.example/2,Kent\n", mtime=0) + b"\0" * 512
    )

    assert outline(path.read_bytes(), name=str(path)) == [(2, "ok"), (3, "ok")]


def test_standard_input_is_read_as_it_comes() -> None:
    script = "from lienworker.intake import read_parcels; print(*[row.url for row in read_parcels('-')])"

    done = subprocess.run([sys.executable, "-c", script], input=JSONL.encode() * 3, capture_output=True)

    assert done.stdout.split() == [b"https://a.example/1"] * 3


def test_an_open_file_stays_open() -> None:
    stream = io.BytesIO(CSV.encode())

    list(read_parcels(stream, name="parcels.csv"))

    assert not stream.closed


def test_a_table_in_a_txt_file_is_read_as_a_table() -> None:
    (row,) = rows("SEQ\tURL\n1\thttps://a.example/1\n", name="list.txt")

    assert row.extra == {"SEQ": "1"}


def test_a_table_in_a_txt_file_may_be_known_only_by_the_mapping() -> None:
    (row,) = rows("SEQ\tWHERE\n1\thttps://a.example/1\n", name="list.txt", mapping={"url": "WHERE"})

    assert row.url == "https://a.example/1"


def test_a_wrapped_list_on_one_line_is_told_from_jsonl() -> None:
    assert outline(f'{{"parcels": {JSON}}}'.replace("\n", "")) == [(1, "ok")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("list.json", CSV, "is not JSON"),
        ("list.jsonl", CSV, "is not JSONL"),
        ("list.jsonl", JSON, "is not JSONL"),
        ("list.jsonl", '{\n"parcels": []\n}', "is not JSONL"),
        ("list.csv", JSONL, "is not a CSV table"),
        ("list.csv", JSON, "is not a CSV table"),
        ("list.txt", JSON, "is not a list of URLs"),
        ("list.txt", "some\nwords\n", "is not a list of URLs"),
        ("list.csv", "<!DOCTYPE html><html>", "is a web page"),
        ("list.txt", "\n <html>", "is a web page"),
        ("list.csv", "", "is empty"),
        ("list.csv", " \n\n\t\n", "is empty"),
        ("list.csv", "\ufeff", "is empty"),
        ("list.json", "", "is empty"),
        ("list.txt", "# nothing\n", "has no parcels"),
        ("list.jsonl.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("list.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook that cannot be read"),
        ("list.csv", b"%PDF-1.7\n", "PDF"),
        ("list.csv", b"\x00\x01\x02\x03" * 50, "not a text file"),
        ("list.csv", CSV.encode("utf-16-le"), "UTF-16 without its mark"),
        ("list.csv", CSV.encode("utf-32"), "UTF-32"),
        ("list.csv", gzip.compress(gzip.compress(CSV.encode(), mtime=0), mtime=0), "zipped twice"),
        ("list.csv", b"\xff\xfe" + "url\nhttps://a.example/1".encode("utf-16-le")[:-1], "damaged UTF-16"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_gets_one_sentence(name: str, content: str | bytes, said: str) -> None:
    text = sentence(content, name=name)

    assert text.startswith(f"{name} ")
    assert said in text


def test_a_file_in_another_encoding_is_refused_with_the_place_and_the_remedy() -> None:
    content = "url,county\nhttps://a.example/1,Doña Ana\nhttps://a.example/2,Cañon\n".encode("cp1252")

    assert sentence(content, name="list.csv") == (
        "list.csv is not UTF-8: line 2 has the byte 0xF1 as its character 23; save it as UTF-8, "
        "or name its encoding (--encoding windows-1252)"
    )


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv does not exist"):
        list(read_parcels(tmp_path / "nowhere.csv"))
    with pytest.raises(InputError, match="is a folder"):
        list(read_parcels(str(tmp_path)))
    with pytest.raises(InputError, match="cannot be opened"):
        list(read_parcels("a\0b.csv"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "parcels.csv"
    path.write_text(CSV)
    path.chmod(0)

    with pytest.raises(InputError, match="may not be read"):
        list(read_parcels(path))


def test_a_cut_off_archive_gives_what_it_has_and_then_says_so() -> None:
    whole = gzip.compress(JSONL.encode() * 200_000, compresslevel=0, mtime=0)
    stream = read_parcels(io.BytesIO(whole[: len(whole) // 2]), name="list.jsonl.gz")

    assert [next(stream).line for _ in range(1_000)][-1] == 1_000
    with pytest.raises(InputError, match="cut off"):
        list(stream)


def test_a_damaged_archive_is_named() -> None:
    packed = bytearray(gzip.compress(CSV.encode() * 100, mtime=0))
    packed[30] ^= 0xFF

    assert "damaged gzip" in sentence(bytes(packed), name="list.csv.gz")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="'xls'"):
        read(CSV, format="xls")
