"""results: list, show, export, archive."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import (
    import_option,
    json_option,
    list_options,
    load_settings,
    named_task,
    open_folder,
    print_rows,
    print_total,
    shown,
    since_option,
    with_options,
)
from lienworker.cli.output import echo, print_json, print_json_list, standard_output
from lienworker.cli.tasks import filter_of
from lienworker.text_safety import plural

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder
    from lienworker.queries.export import Shape
    from lienworker.queries.filters import TaskFilter
    from lienworker.store.runs import PageFilter

_COLUMNS = ("task_id", "parcel_id", "platform", "county", "owner_name", "property_address", "total_due", "scraped_at")

_OF_DATA = ("owner_name", "property_address", "total_due")

_filters = with_options(
    click.option("--platform", help="Only results of this platform."),
    click.option("--state", help="Only results of this state."),
    click.option("--county", help="Only results of this county."),
    click.option("--text", help="Only results with this in their task id, parcel id or data."),
    click.option("--queue", type=click.Choice(["urgent", "default"]), help="Only results of tasks in this queue."),
    import_option("results"),
    since_option("results made"),
    click.option("--doubtful", is_flag=True, help="Only results in which something looks wrong."),
)


@click.group(epilog="Example: lienworker results export --output results.csv")
def results() -> None:
    """Look at results, export them, archive the pending files."""


@results.command("list", epilog="Example: lienworker results list --county Dixie --json")
@_filters
@list_options
@json_option
def list_(limit: int, reverse: bool, as_json: bool, **options: Any) -> None:
    """List results, newest first."""
    from lienworker.queries.lists import count_results, each_result, each_result_in_short

    open_folder(load_settings())
    wanted = filter_of(options)
    if as_json:
        print_json_list(islice(each_result(wanted, oldest_first=reverse), limit))
        return
    found = list(islice(each_result_in_short(wanted, oldest_first=reverse), limit))
    rows = [{**row, **{name: row["data"].get(name) for name in _OF_DATA}} for row in found]
    print_rows(rows, _COLUMNS, as_json=False, nothing="No such results.")
    print_total(len(rows), limit, "result", lambda: count_results(wanted))


@results.command(epilog="Example: lienworker results show p-0a1b2c…")
@click.argument("name", metavar="TASK")
@json_option
def show(name: str, as_json: bool) -> None:
    """One result with all its data and the places of its files.

    TASK is a task's id or its beginning, a parcel id, or an address.
    """
    from lienworker.store.results import result

    folder = open_folder(load_settings())
    task_id = named_task(name)
    found = result(task_id)
    if found is None:
        raise click.ClickException(f"Task {task_id} has no result: `lienworker tasks show {task_id}` says why.")
    if as_json:
        print_json(found)
    else:
        print_result(found, folder.root)


def print_result(found: dict[str, Any], folder: Path) -> None:
    """A result for people: what it is, where its files lie, and its data."""
    for name, value in found.items():
        if name.endswith("_path") and value:
            echo(f"{name:>18}  {shown(folder / value, sys.maxsize)}")
        elif name != "data" and value is not None:
            echo(f"{name:>18}  {shown(value)}")
    print_json(found["data"])


@results.command(epilog="Example: lienworker results export --output results.xlsx --county Dixie --since 2026-01-31")
@click.option("--output", default="-", help="The file to write; - is standard output.", show_default=True)
@click.option("--format", "form", type=click.Choice(["csv", "json", "jsonl", "xlsx"]), help="Not by the file's name.")
@click.option("--fields", help="Only these columns, with commas, such as parcel_id,owner_name,total_due.")
@click.option("--bom", is_flag=True, help="Mark a CSV as UTF-8, as Excel wants it.")
@_filters
def export(output: str, form: str | None, fields: str | None, bom: bool, **options: Any) -> None:
    """Export results to a file, streamed. It appears whole or not at all.

    The format follows the name: .csv, .json, .jsonl or .xlsx (a sheet each for parcels, liens, taxes, values and
    sales); .gz after it packs. The address and your own columns are in each.
    """
    from lienworker.db.database import refuse_database
    from lienworker.queries.export import export as export_results
    from lienworker.queries.export import selected, shape_of
    from lienworker.store.stale_files import users_file

    is_stream = output == "-" or (Path(output).exists() and not Path(output).is_file())
    columns = tuple(name.strip() for name in (fields or "").split(",") if name.strip())
    open_folder(load_settings())
    refuse_database(Path(output))  # before its name is found to be no good
    shape = shape_of(output, form or ("jsonl" if is_stream else None), columns, bom=bom)
    wanted = filter_of(options)
    if output == "-":
        _to_standard_output(wanted, shape)
        return
    try:
        with users_file(Path(output)) as out:
            n = export_results(selected(wanted), shape, out)
    except OSError as problem:
        raise click.ClickException(f"{output} cannot be written: {problem.strerror}.") from None
    echo(f"{plural(n, 'result')} written to {output}", err=True)


def _to_standard_output(wanted: TaskFilter, shape: Shape) -> None:
    from lienworker.queries.export import export as export_results
    from lienworker.queries.export import export_text, selected

    if sys.stdout.isatty():
        if shape.format == "xlsx":
            raise click.UsageError("A workbook is nothing for a terminal: say --output results.xlsx.")
        export_text(selected(wanted), shape, standard_output())
    else:
        export_results(selected(wanted), shape, sys.stdout.buffer)


@results.command(epilog="Example: lienworker results archive --warc pages.warc.gz --county Dixie")
@click.option("--compress", is_flag=True, help="Make a .tar.gz instead of a .tar.")
@click.option("--warc", type=click.Path(path_type=Path), help="Write the raw pages to this file; remove nothing.")
@click.option("--platform", help="Only pages of this platform (--warc).")
@click.option("--county", help="Only pages of this county (--warc).")
@since_option("pages fetched")
def archive(compress: bool, warc: Path | None, platform: str | None, county: str | None, since_ms: int | None) -> None:
    """Pack the pending files into one verified archive, and only then remove them.

    With --warc: write raw pages as a standard web archive, which other tools read and `lienworker import` takes back.
    """
    from lienworker.db.clock import rfc3339
    from lienworker.operator.archive import archive_pending
    from lienworker.store.runs import PageFilter

    folder = open_folder(load_settings())
    if warc is not None:
        since = rfc3339(since_ms) if since_ms is not None else None
        _archive_pages(folder, warc, PageFilter(platform, county, since))
        return
    made = archive_pending(folder, compress=compress)
    if made is None:
        echo("No pending files: nothing to archive.")
    else:
        echo(f"{plural(made.files, 'pending file')} packed into {made.path}")


def _archive_pages(folder: DataFolder, path: Path, wanted: PageFilter) -> None:
    from lienworker.operator.warc import write_warc

    made = write_warc(folder, path, wanted)
    echo(f"{plural(made.pages, 'page')} written to {path}")
    if made.unreadable:
        echo(f"{plural(len(made.unreadable), 'page')} could not be read; see `lienworker doctor`.", err=True)
        sys.exit(1)
