"""No file under 16 MB takes much memory, disk or time for nothing; good rows may take as long as they take."""

from __future__ import annotations

import csv
import gzip
import io
import os
import subprocess
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lienworker.db.database import one_row, open_store
from lienworker.errors import InputError, OperatorError
from lienworker.intake import Reject, RejectsFile, read, read_parcels
from lienworker.intake import rows as intake_rows
from lienworker.maintenance.disk_limits import watch_import
from lienworker.platforms.catalog.registry import default_registry
from lienworker.settings import Settings
from lienworker.steps.import_file import How, Importer
from tests.harness.node import Node

MB = 1_000_000
SIZE = 15 * MB
ROW = b"http://a.example/1"


def filled(start: bytes, unit: bytes, end: bytes = b"") -> bytes:
    return start + unit * ((SIZE - len(start)) // len(unit)) + end


#: What is nearly 16 MB of nothing, by the name that the file has.
HOSTILE: dict[str, Callable[[], bytes]] = {
    "bad-rows.csv": lambda: filled(b"url\n", b"x\n"),
    "bad-rows.jsonl": lambda: filled(b'{"url":"http://a.example/1"}\n', b"x\n"),
    "empty-objects.jsonl": lambda: filled(b'{"url":"http://a.example/1"}\n', b"{}\n"),
    "empty-objects.json": lambda: filled(b"[", b"{},", b"{}]"),
    "numbers.json": lambda: filled(b"[", b"0,", b"0]"),
    "wrapped-numbers.json": lambda: filled(b'{"a":[', b"0,", b"0]}"),
    "wrapped-pairs.json": lambda: filled(b"{", b'"a":0,', b'"b":[]}'),
    "broken-objects.json": lambda: filled(b"[", b'{"a":x},', b"0]"),
    "blank-lines.csv": lambda: filled(b"url\n" + ROW + b"\n", b"\n"),
    "comments.txt": lambda: filled(ROW + b"\n", b"#\n"),
    "quotes.csv": lambda: filled(b"url\n", b'"\n'),
    "open-quotes.csv": lambda: filled(b"url\n", b'"' + b"a" * 300 + b"\n"),
    "columns.csv": lambda: filled(b"url", b",a", b"\n" + ROW + b"\n"),
    "deep.json": lambda: b"[" * SIZE,
    "deep.jsonl": lambda: filled(b'{"url":"http://a.example/1"}\n', b'{"a":' + b"[" * 900_000 + b"\n"),
    "values.jsonl": lambda: filled(b"", b'{"url":"http://a.example/1","x":[' + b"[]," * 320_000 + b"0]}\n"),
    "values.json": lambda: filled(b"[", b'{"url":"http://a.example/1","x":[' + b"0," * 480_000 + b"0]},", b"0]"),
    "keys.jsonl": lambda: filled(
        b"", b'{"url":"http://a.example/1"' + b"".join(b',"%x":0' % n for n in range(80_000)) + b"}\n"
    ),
    "wide-rows.csv": lambda: filled(
        b"url," + b",".join(b"%x" % n for n in range(150_000)) + b"\n", ROW + b",1" * 150_000 + b"\n"
    ),
    "digits.jsonl": lambda: filled(b'{"url":"http://a.example/1"}\n', b'{"url":' + b"1" * 900_000 + b"}\n"),
    "utf-16.csv": lambda: b"\xff\xfe" + ("url\n" + "x\n" * (SIZE // 4)).encode("utf-16-le"),
    "halves.csv": lambda: b"\xff\xfe" + b"\x00\xd8" * (SIZE // 2),
}


def run_measured(node: Node, *arguments: str) -> tuple[int, str, int, float]:
    """Exit code, what was said, the most memory in bytes, and seconds of one core."""
    peak = node.data.with_suffix(".peak")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.memory", str(peak), *arguments],
        env=node.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, said, 1024 * int(peak.read_text()), usage.ru_utime + usage.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_under_16_mb_takes_much_for_nothing(node: Node, tmp_path: Path, name: str) -> None:
    content = HOSTILE[name]()
    assert len(content) < 16 * MB
    (tmp_path / name).write_bytes(content)
    _, said, memory, seconds = run_measured(node, "import", str(tmp_path / name))
    assert "should not happen" not in said
    assert "Traceback" not in said
    assert memory < 400 * MB, said
    assert seconds < 10, said
    assert sum(path.stat().st_size for path in node.data.rglob("*") if path.is_file()) < 60 * MB


def packed(unit: bytes, times: int, start: bytes = b"") -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    pieces = [packer.compress(start), *(packer.compress(unit) for _ in range(times)), packer.flush()]
    return b"".join(pieces)


@pytest.mark.parametrize("unit", [b"x\n", b"\n", b"x", ROW + b"\n"], ids=["bad", "blank", "one line", "the same"])
def test_a_list_that_is_packed_a_thousandfold_is_refused_after_its_first_megabytes(unit: bytes) -> None:
    bomb = packed(unit * (MB // len(unit)), 100, b"url\n" + ROW + b"\n")
    assert len(bomb) < MB
    last: deque[Any] = deque(maxlen=1)
    with pytest.raises(InputError, match=r"more than 50 times its size|is no list of parcels"):
        last.extend(read_parcels(io.BytesIO(bomb), name="list.csv.gz"))
    assert last[0].line < 6 * MB


def test_an_ordinary_list_is_packed_less() -> None:
    lines = b"".join(b"https://www.county.example/parcel/%07d,FL,Juniper,%07d\n" % (n, n) for n in range(400_000))
    content = gzip.compress(b"url,state,county,parcel_id\n" + lines)
    assert len(lines) > 16 << 20
    assert sum(1 for _ in read_parcels(io.BytesIO(content), name="list.csv.gz")) == 400_000


def test_a_gzip_file_of_empty_pieces_is_refused_and_one_of_many_pieces_is_not() -> None:
    start = gzip.compress(b"url\n" + ROW + b"\n")
    with pytest.raises(InputError, match="empty pieces"):
        list(read_parcels(io.BytesIO(start + gzip.compress(b"") * 5_000), name="list.csv.gz"))
    many = start + b"".join(gzip.compress(ROW + b"%d\n" % n) for n in range(3_000))
    assert sum(1 for _ in read_parcels(io.BytesIO(many), name="list.csv.gz")) == 3_001


def test_a_list_with_some_good_rows_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_MOST_REJECTS", 100)
    good = b"url\n" + (b"x\n" * 9 + ROW + b"\n") * 500
    assert sum(1 for _ in read_parcels(io.BytesIO(good), name="list.csv")) == 5_000
    bad = b"url\n" + ROW + b"\n" + b"x\n" * 500
    with pytest.raises(InputError, match="is no list of parcels"):
        list(read_parcels(io.BytesIO(bad), name="list.csv"))


def test_a_row_or_a_header_of_a_hundred_thousand_values_is_refused() -> None:
    row = b'{"url":"http://a.example/1","x":[' + b"0," * 100_001 + b"0]}\n"
    (found,) = read_parcels(io.BytesIO(row), name="list.jsonl")
    assert isinstance(found, Reject)
    assert found.reason == "too_many_values"
    table = b"url" + b",a" * 20_000 + b"\n" + ROW + b"\n"
    with pytest.raises(InputError, match="20,001 columns"):
        list(read_parcels(io.BytesIO(table), name="list.csv"))


def test_what_was_good_before_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_MOST_REJECTS", 100)
    folder = open_store(tmp_path / "data")
    content = b"url\n" + ROW + b"\n" + b"x\n" * 500
    importer = Importer(default_registry(), io.BytesIO(content), "list.csv", How(batch_size=1))
    with pytest.raises(InputError, match="what was read before is kept"):
        importer.run(RejectsFile.of_import(folder.rejects, "list.csv"))
    assert one_row("SELECT count(*) FROM tasks")[0] == 1


def test_the_rejects_file_is_bounded_and_says_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_rows, "MOST_ROWS", 10)
    path = tmp_path / "rejects.csv"
    with RejectsFile(path) as file:
        for line in range(1, 51):
            file.write(Reject(line, "bad_url", "correct it", "x"))
    with path.open(newline="") as content:
        rows = list(csv.reader(content))
    assert len(rows) == 1 + 10 + 1
    assert rows[-1] == ["", "not_listed", "40 more rows were rejected; they are not listed", ""]
    assert (file.count, file.left_out) == (50, 40)
    assert file.in_words() == (
        f"The first 10 rejected rows, with line and reason, are in {path}; the other 40 were only counted"
    )


def test_long_rejects_count_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_rows, "MOST_BYTES", 10_000)
    path = tmp_path / "rejects.csv"
    with RejectsFile(path) as file:
        for line in range(1, 1001):
            file.write(Reject(line, "bad_url", "correct it", "x" * 2_000))
    assert path.stat().st_size < 14_000
    assert file.left_out > 900


def test_an_import_stops_when_the_folder_is_full(tmp_path: Path) -> None:
    """The limit is known although no worker has ever measured the folder, and is looked at between transactions."""
    folder = open_store(tmp_path / "data")
    settings = Settings(
        data_dir=folder.root, data_max_mb=6, disk_warn_mb=0, disk_stop_intake_mb=0, disk_stop_fetch_mb=0
    )
    check_room = watch_import(folder, settings)
    lines = b"".join(b"https://www.county.example/parcel/%07d\n" % n for n in range(200_000))
    importer = Importer(default_registry(), io.BytesIO(lines), "list.txt", How())
    with pytest.raises(OperatorError, match="LIENWORKER_DATA_MAX_MB"):
        importer.run(RejectsFile.of_import(folder.rejects, "list.txt"), lambda tally: check_room())
    assert 0 < importer.tally.added < 100_000
    assert one_row("SELECT status FROM imports")[0] == "stopped"


def test_heavy_rows_are_stored_in_small_batches(tmp_path: Path) -> None:
    open_store(tmp_path / "data")
    content = b"".join(b'{"url":"http://a.example/%d","x":["%s"]}\n' % (n, b"y" * 900_000) for n in range(12))
    importer = Importer(default_registry(), io.BytesIO(content), "list.jsonl", How())
    sizes = [len(batch) for batch in importer._batches(RejectsFile(tmp_path / "r.csv"))]
    assert sum(sizes) == 12
    assert max(sizes) <= 3


def test_a_long_value_is_not_read_over_and_over() -> None:
    """Doubling what is looked at makes the time grow with the length, not with its square."""
    value = b'{"url":"http://a.example/1","x":[' + b"0," * 480_000 + b"0]}"
    start = time.process_time()
    assert sum(1 for _ in read_parcels(io.BytesIO(b"[" + b",".join([value] * 4) + b"]"), name="list.json")) == 4
    assert time.process_time() - start < 2.5
