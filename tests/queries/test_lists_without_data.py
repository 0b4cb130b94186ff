"""Lists of results: a record of megabytes costs them nothing."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from lienworker.cli.output import print_json, print_json_list
from lienworker.db.database import execute, open_store, write
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import each_result, each_result_in_short, list_results
from lienworker.store.results import NewResult, save_result

HUGE = 4_000_000


def _save(task_id: str, data: dict[str, Any], **more: Any) -> None:
    about = ("12-3", "generic", "XX", "Juniper")
    made = ("raw/x.html.gz", "0" * 64, "2026-01-01T00:00:00.000Z", "1", "2026-01-01T00:00:00.000Z", 5)
    with write("test"):
        execute(
            "INSERT INTO tasks (task_id, source, url, queue, priority, status, target_json, created_at, received_at,"
            " updated_at) VALUES (?, 'cli', ?, 'default', 4, 'completed', '{}', '', '', '')",
            (task_id, f"https://county.example/{task_id}"),
        )
        save_result(NewResult(task_id, 1, *about, data, None, *made, **more))


@pytest.fixture
def stored(tmp_path: Path) -> None:
    open_store(tmp_path / "data")
    _save("t1", {"owner_name": "WREN ADA", "total_due": 1.5, "homestead": True, "sales": [{"price": 1.0}] * 3})
    _save("t2", {"owner_name": "HERON " + "x" * HUGE, "fields": {"a": "x" * HUGE}})
    _save("t3", {"parcels": [{"parcel_id": str(n)} for n in range(100_000)]}, stays_here=True)


def _peak(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("stored")
def test_the_monitors_list_has_the_plain_values_and_never_the_record() -> None:
    rows = {row["task_id"]: row["data"] for row in list_results(TaskFilter()).rows}
    assert rows["t1"] == {"owner_name": "WREN ADA", "total_due": 1.5, "homestead": True}
    assert len(rows["t2"]["owner_name"]) == 200
    assert rows["t3"] == {}
    assert _peak(lambda: list_results(TaskFilter())) < HUGE / 4
    assert _peak(lambda: list_results(TaskFilter(text="wren"))) < HUGE / 4


@pytest.mark.usefixtures("stored")
def test_a_table_of_results_has_the_values_that_it_shows() -> None:
    rows = {row["task_id"]: row["data"] for row in each_result_in_short(TaskFilter())}
    assert (rows["t1"]["owner_name"], rows["t1"]["total_due"]) == ("WREN ADA", 1.5)
    assert rows["t3"] == {}


@pytest.mark.usefixtures("stored")
def test_a_damaged_record_spoils_no_list() -> None:
    with write("test"):
        execute("UPDATE results SET data = '{broken' WHERE task_id = 't2'")
    assert {row["task_id"] for row in list_results(TaskFilter()).rows} == {"t1", "t2", "t3"}
    assert len(list(each_result_in_short(TaskFilter()))) == 3


@pytest.mark.usefixtures("stored")
def test_a_download_has_every_record_whole() -> None:
    found = {row["task_id"]: row["data"] for row in each_result(TaskFilter())}
    assert len(found["t3"]["parcels"]) == 100_000
    assert len(found["t2"]["fields"]["a"]) == HUGE


@pytest.mark.parametrize("values", [[], [{"a": [1, {"b": "x\ny"}]}], [{"a": 1}, {"b": None}, 3]])
def test_a_list_printed_one_by_one_is_the_same_json(values: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    print_json_list(iter(values))
    one_by_one = capsys.readouterr().out
    print_json(values)
    assert one_by_one == capsys.readouterr().out
    assert json.loads(one_by_one) == values
