"""Exports: the format follows the name, and each has the address and the operator's own columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from openpyxl import load_workbook

from lienworker.cli import cli as lienworker
from lienworker.db.database import execute, write
from lienworker.queries import lists
from lienworker.queries.export import Selection, Shape, export_text, selected
from lienworker.queries.filters import TaskFilter
from lienworker.store import columns
from lienworker.store.pending import show_undelivered
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk
from tests.harness.on_demand import gateway, here

__all__ = ["gateway", "here"]

LIENS = [{"certificate": "0042", "face_amount": 812.5, "sale_date": "2024-06-01"}]


@pytest.fixture
def cli(here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIENWORKER_DATA_DIR", str(here.runtime.folder.root))
    return lambda *arguments: CliRunner().invoke(lienworker, list(arguments))


@pytest.fixture
def two(here: Desk, cli: Any) -> None:
    """Two parcels of an auction's own list, and a third of another county."""
    rows = ["url,state,county,parcel_id,case_no,opening bid,owner_name"]
    rows += [f"http://county.example/p/{n},XX,Juniper,00{n},C-{n},{n}00.50,from the list" for n in (1, 2)]
    Path("auction.csv").write_text("\n".join(rows) + "\n")
    assert cli("import", "auction.csv", "--queue", "urgent").exit_code == 0
    here.scrape_waiting(total_due=12.5, liens=LIENS, year_built=1987, fields={"Owner:": "x"})
    here.add(1, start=3, county="Marsh")


def exported(cli: Any, name: str, *more: str) -> bytes:
    done: Result = cli("results", "export", "--output", name, *more)
    assert done.exit_code == 0, done.output
    return Path(name).read_bytes()


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


@pytest.mark.usefixtures("two")
def test_the_format_follows_the_name(cli: Any) -> None:
    table = rows_of(exported(cli, "a.csv"))
    assert [row["parcel_id"] for row in table] == ["p-3", "002", "001"]
    assert rows_of(gzip.decompress(exported(cli, "a.CSV.gz"))) == table
    whole = json.loads(exported(cli, "a.json"))
    assert [item["data"]["owner_name"] for item in whole] == ["Owner of p-3", "Owner of 002", "Owner of 001"]
    assert json.loads(gzip.decompress(exported(cli, "a.json.gz"))) == whole
    assert [json.loads(line) for line in exported(cli, "a.jsonl").splitlines()] == whole
    assert exported(cli, "b.txt", "--format", "csv") == exported(cli, "a.csv")


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", "a.xlsx.gz"])
def test_a_name_that_says_nothing_is_refused_and_nothing_is_written(cli: Any, name: str) -> None:
    assert cli("results", "export", "--output", name).exit_code != 0
    assert not Path(name).exists()


@pytest.mark.usefixtures("two")
def test_the_operators_own_columns_and_the_address_are_in_every_export(cli: Any) -> None:
    row = rows_of(exported(cli, "a.csv"))[2]
    assert (row["case_no"], row["opening bid"], row["url"]) == ("C-1", "100.50", "http://county.example/p/1")
    assert (row["owner_name"], row["list_owner_name"]) == ("Owner of 001", "from the list")
    assert not [name for name in row if name.startswith("data.")]
    item = json.loads(exported(cli, "a.json"))[2]
    assert item["url"] == "http://county.example/p/1"
    assert item["list"] == {"case_no": "C-1", "opening bid": "100.50", "owner_name": "from the list"}


@pytest.mark.usefixtures("two")
def test_a_workbook_has_a_sheet_for_each_history_with_numbers_and_dates(cli: Any) -> None:
    exported(cli, "a.xlsx")
    book = load_workbook("a.xlsx")
    assert book.sheetnames == ["parcels", "liens", "taxes", "values", "sales"]
    header, *rows = book["parcels"].iter_rows(values_only=True)
    parcel = dict(zip(header, rows[2], strict=True))
    assert (parcel["parcel_id"], parcel["total_due"], parcel["case_no"]) == ("001", 12.5, "C-1")
    assert isinstance(parcel["scraped_at"], datetime)
    header, *rows = book["liens"].iter_rows(values_only=True)
    lien = dict(zip(header, rows[1], strict=True))
    assert lien["parcel_id"] == "001"
    assert (lien["certificate"], lien["face_amount"], lien["sale_date"]) == ("0042", 812.5, datetime(2024, 6, 1))


@pytest.mark.usefixtures("two")
def test_without_the_package_excel_is_one_sentence(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    done = cli("results", "export", "--output", "a.xlsx")
    assert "pip install 'lienworker[excel]'" in str(done.exception)
    assert not Path("a.xlsx").exists()


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("options", "parcels"),
    [
        (["--import", "1"], ["002", "001"]),
        (["--county", "MARSH"], ["p-3"]),
        (["--queue", "urgent"], ["002", "001"]),
        (["--since", "2020-01-31"], ["p-3", "002", "001"]),
        (["--since", "2999-01-31"], []),
        (["--import", "7"], []),
    ],
)
def test_an_export_of_some(cli: Any, options: list[str], parcels: list[str]) -> None:
    assert [row["parcel_id"] for row in rows_of(exported(cli, "a.csv", *options))] == parcels
    listed = json.loads(cli("results", "list", "--json", *options).output)
    assert [row["parcel_id"] for row in listed] == parcels


@pytest.mark.usefixtures("two")
def test_a_large_import_is_whole_though_some_of_its_tasks_have_no_result(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with write("test"):
        execute("DELETE FROM results WHERE parcel_id = '001'")
    monkeypatch.setattr(lists, "_SMALL_IMPORT", 1)
    assert [row["parcel_id"] for row in rows_of(exported(cli, "a.csv", "--import", "1"))] == ["002"]


@pytest.mark.usefixtures("two")
def test_chosen_fields_come_in_their_order(cli: Any) -> None:
    content = exported(cli, "a.csv", "--fields", "case_no,parcel_id,total_due", "--import", "1", "--bom")
    assert content.startswith(b"\xef\xbb\xbfcase_no,parcel_id,total_due\r\n")
    assert json.loads(exported(cli, "a.json", "--fields", "parcel_id,total_due", "--import", "1")) == [
        {"parcel_id": "002", "total_due": 12.5},
        {"parcel_id": "001", "total_due": 12.5},
    ]
    wrong = cli("results", "export", "--output", "b.csv", "--fields", "total_do")
    assert "Did you mean 'total_due'?" in str(wrong.exception)


@pytest.mark.usefixtures("two")
def test_tasks_are_found_by_import_time_and_county_without_case(cli: Any) -> None:
    def listed(*options: str) -> list[str]:
        return [row["parcel_id"] for row in json.loads(cli("tasks", "list", "--json", *options).output)]

    assert listed() == ["p-3", "002", "001"]
    assert listed("--reverse", "--limit", "1") == ["001"]
    assert listed("--import", "1", "--county", "juniper") == ["002", "001"]
    assert listed("--since", "2999-01-01") == []
    assert listed("--since", "2020-01-01", "--state", "xx") == ["p-3", "002", "001"]
    assert "1 of 3 tasks; --limit 3 shows all." in cli("tasks", "list", "--limit", "1").stderr
    assert "3 results." in cli("results", "list").stderr


@pytest.mark.usefixtures("two")
def test_a_folder_of_result_files_and_each_export_can_be_analyzed(cli: Any, here: Desk) -> None:
    whole = json.loads(cli("analyze", "--json").output)
    show_undelivered(here.runtime.folder, "", is_last=True)  # on demand, files are made when results are late
    places = [str(here.runtime.folder.pending), str(here.runtime.folder.root)]
    for name in ("a.csv", "a.json.gz", "a.jsonl"):
        exported(cli, name)
        places.append(name)
    for place in places:
        facts = json.loads(cli("analyze", place, "--json").output)
        assert facts["tasks"]["completed"] == 3, place
        assert {(row["county"], row["completed"]) for row in facts["counties"]} == {("Juniper", 2), ("Marsh", 1)}
        assert max(share for fields in facts["fields"].values() for share in fields.values()) == 1.0
        assert facts["fields"].keys() == whole["fields"].keys()


def test_a_folder_without_results_is_one_sentence(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no result is in it" in str(cli("analyze", "empty").exception)
    (tmp_path / "empty" / "x.json").write_text("[1]")
    assert "is no result" in str(cli("analyze", "empty").exception)
    assert "need one" in str(cli("analyze", "empty", "--html", "r.html").exception)


# The columns of a table are known before its first row.


def header_of(cli: Any, *options: str) -> list[str]:
    return exported(cli, "a.csv", *options).decode().splitlines()[0].split(",")


@pytest.mark.usefixtures("two")
def test_a_header_is_written_before_any_result_is_read() -> None:
    def unreadable() -> Iterator[dict[str, Any]]:
        raise LookupError
        yield {}

    out = io.StringIO()
    with pytest.raises(LookupError):
        export_text(Selection(unreadable, selected(TaskFilter()).columns), Shape("csv"), out)
    assert {"case_no", "owner_name", "total_due"} < set(out.getvalue().strip().split(","))


@pytest.mark.usefixtures("two")
def test_a_county_has_its_own_columns_and_an_import_those_of_its_list(cli: Any, here: Desk) -> None:
    here.scraped([here.new_task(9, county="Marsh")], pelicans=3, auction={"date": "2026-01-31"})
    assert {"pelicans", "auction.date", "total_due"} < set(header_of(cli))
    assert "total_due" not in header_of(cli, "--county", "marsh")
    assert {"pelicans", "auction.date"} < set(header_of(cli, "--county", "MARSH", "--state", "xx"))
    assert "pelicans" not in header_of(cli, "--county", "Juniper")
    assert "case_no" in header_of(cli, "--import", "1")
    assert "case_no" not in header_of(cli, "--import", "2")


def test_a_county_that_was_filled_in_later_has_its_columns(cli: Any, here: Desk) -> None:
    here.scraped([here.new_task(1, county=None)], pelicans=3)
    assert cli("tasks", "fill", "--all", "--county", "Marsh").exit_code == 0
    (row,) = rows_of(exported(cli, "a.csv", "--county", "Marsh"))
    assert row["pelicans"] == "3"


@pytest.mark.usefixtures("two")
def test_a_task_that_another_list_names_again_keeps_its_columns(cli: Any) -> None:
    Path("again.csv").write_text("url,lot\nhttp://county.example/p/1,7\n")
    assert cli("import", "again.csv").exit_code == 0
    (row,) = rows_of(exported(cli, "a.csv", "--import", "2"))
    assert row["case_no"] == "C-1"


@pytest.mark.usefixtures("two")
def test_what_an_earlier_version_stored_is_looked_through_once(cli: Any) -> None:
    before = exported(cli, "a.csv")
    with write("test"):
        execute("DELETE FROM list_columns")
        execute("DELETE FROM result_columns")
        columns.forget("since an upgrade")
    assert exported(cli, "a.csv") == before
    assert columns.are_known()


@pytest.mark.usefixtures("two")
def test_a_value_without_a_column_ends_the_export_and_the_next_one_has_it(cli: Any) -> None:
    before = exported(cli, "a.csv")
    for name in ("b.csv", "b.xlsx"):
        with write("test"):
            execute("DELETE FROM result_columns WHERE name = 'total_due'")
        refused = cli("results", "export", "--output", name)
        assert "'total_due'" in str(refused.exception)
        assert not Path(name).exists()
        assert exported(cli, "a.csv") == before
