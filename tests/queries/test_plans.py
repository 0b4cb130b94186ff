"""What lists, show and export commands read before their first line goes by an index, however many tasks there are.

SQLite keeps no statistics here, so the plan of an empty folder is that of a full one. Totals, which are counted after
the lines, are not looked at: `make bench-looking` takes the time of whole commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import click
import pytest

from benchmarks.looking import COMMANDS
from lienworker.cli import cli as lienworker
from lienworker.db.database import all_rows, database
from lienworker.operator.rows import RowFilter, find_rows
from lienworker.outbox.rows import is_row, steps_of
from lienworker.queries.counties import counties, samples_of_failures
from lienworker.queries.export import items_to_export, selected
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import each_result, each_result_in_short, each_task, page_story, tasks_called
from lienworker.queries.search import results_that_begin, tasks_that_begin
from lienworker.store.counts import failures, import_counts
from lienworker.store.imports import import_numbered, imports
from lienworker.store.results import result
from lienworker.store.tasks import attempts_of, task
from tests.harness.shelf import Shelf, page

_SINCE = "2026-01-01T00:00:00.000Z"
_FILTERS = [
    TaskFilter(),
    TaskFilter(county="mArsh"),
    TaskFilter(county="nowhere", state="XX"),
    TaskFilter(platform="quarry", status="completed"),
    TaskFilter(status="failed", reason="http_404"),
    TaskFilter(queue="urgent"),
    TaskFilter(source="cli"),
    TaskFilter(text="nothing like this"),
    TaskFilter(since=_SINCE),
    TaskFilter(import_id=1),
    TaskFilter(doubtful=True),
]
#: Tables that grow with the work, and what a plan may not do with them.
_LARGE = "tasks|results|outbox|pages|attempts|run_pages"
_SCAN = re.compile(rf"SCAN (?:{_LARGE}|o|t|r|p)\b(?! USING (?:COVERING )?INDEX)")


def _lists(wanted: TaskFilter) -> Iterator[Any]:
    for oldest_first in (False, True):
        yield from islice(each_task(wanted, oldest_first=oldest_first), 3)
        yield from islice(each_result(wanted, oldest_first=oldest_first), 3)
        yield from islice(each_result_in_short(wanted, oldest_first=oldest_first), 3)
    yield from islice(items_to_export(wanted), 3)


def _shows() -> Iterator[Any]:
    task_id, url = next((row["task_id"], row["url"]) for row in each_task(TaskFilter()))
    for name in (task_id, task_id[:9], url, "00-1", "nobody"):
        yield tasks_called(name)
    yield task(task_id), attempts_of(task_id), page_story(task_id), steps_of(task_id), result(task_id), is_row(1)
    yield tasks_that_begin("00-1"), results_that_begin("1 main"), selected(TaskFilter(county="Marsh")).columns()
    yield imports(), import_numbered(1), failures(1), import_counts(1)
    yield counties(0), samples_of_failures("quarry", "Marsh")


def _rows() -> Iterator[Any]:
    for wanted in (RowFilter(), RowFilter(state="parked"), RowFilter(topic="upload_raw")):
        for oldest_first in (False, True):
            yield find_rows(wanted, 3, oldest_first=oldest_first)


@pytest.fixture
def steps_of_plans(shelf: Shelf) -> Callable[[Iterable[Any]], dict[str, list[str]]]:
    """What SQLite does for each statement that a question sends."""
    shelf.add("Marsh", {str(n): page(n) for n in range(5)})
    shelf.work()

    def look(answers: Iterable[Any]) -> dict[str, list[str]]:
        sent: list[str] = []
        database.connection().set_trace_callback(sent.append)
        list(answers)
        database.connection().set_trace_callback(None)
        queries = {sql for sql in sent if re.match(r"\s*(SELECT|WITH)\b", sql)}
        assert queries
        return {sql: [row[3] for row in all_rows("EXPLAIN QUERY PLAN " + sql)] for sql in queries}

    return look


@pytest.mark.parametrize("wanted", _FILTERS, ids=TaskFilter.in_words)
def test_no_list_or_export_reads_or_sorts_a_whole_table_before_its_first_line(
    steps_of_plans: Callable[[Iterable[Any]], dict[str, list[str]]], wanted: TaskFilter
) -> None:
    bad = {
        sql: step
        for sql, steps in steps_of_plans(_lists(wanted)).items()
        for step in steps
        if _SCAN.match(step) or "TEMP B-TREE" in step
    }
    assert not bad, "\n".join(f"{step}\n    {sql}" for sql, step in bad.items())


def test_no_show_command_reads_a_whole_table(
    steps_of_plans: Callable[[Iterable[Any]], dict[str, list[str]]],
) -> None:
    bad = {sql: step for sql, steps in steps_of_plans(_shows()).items() for step in steps if _SCAN.match(step)}
    assert not bad, "\n".join(f"{step}\n    {sql}" for sql, step in bad.items())


def test_rows_of_the_outbox_are_walked_in_their_order_and_never_sorted(
    steps_of_plans: Callable[[Iterable[Any]], dict[str, list[str]]],
) -> None:
    assert not [step for steps in steps_of_plans(_rows()).values() for step in steps if "TEMP B-TREE" in step]


def test_rows_that_cannot_be_there_are_not_looked_for(
    steps_of_plans: Callable[[Iterable[Any]], dict[str, list[str]]],
) -> None:
    filters = [RowFilter(state="discarded"), RowFilter(county="nowhere")]
    sent = steps_of_plans(find_rows(wanted, 3) for wanted in filters)
    assert not [sql for sql in sent if "FROM outbox" in sql]
    assert find_rows(RowFilter(county="mARSH"), 3)


def test_the_benchmark_takes_the_time_of_every_command_that_looks() -> None:
    looking = {"list", "show", "export", "status"}
    found = {words for words in _commands(lienworker) if words.split()[-1] in looking}
    assert found
    assert not [words for words in found if not any(f"{timed} ".startswith(f"{words} ") for timed in COMMANDS)]


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _commands(found, (*path, name))
