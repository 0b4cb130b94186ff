"""results: list, show, export, archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lienworker.cli.common import json_option, load_settings, open_folder, plural, print_rows, shown, with_options
from lienworker.cli.output import echo, print_json, print_json_list, standard_output
from lienworker.cli.tasks import filter_of

_COLUMNS = ("task_id", "parcel_id", "platform", "county", "owner_name", "property_address", "total_due", "scraped_at")

_OF_DATA = ("owner_name", "property_address", "total_due")

_filters = with_options(
    click.option("--platform", help="Only results of this platform."),
    click.option("--state", help="Only results of this state."),
    click.option("--county", help="Only results of this county."),
    click.option("--text", help="Only results with this in their task id or parcel id."),
    click.option("--doubtful", is_flag=True, help="Only results in which something looks wrong."),
)


@click.group(epilog="Example: lienworker results export --format csv --output results.csv")
def results() -> None:
    """Look at results, export them, archive the pending files."""


@results.command("list", epilog="Example: lienworker results list --county Dixie --json")
@_filters
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@json_option
def list_(limit: int, as_json: bool, **options: Any) -> None:
    """List results, oldest first."""
    from lienworker.queries.filters import find_results, list_results

    open_folder(load_settings())
    wanted = filter_of(options)
    if as_json:
        print_json_list(find_results(wanted, limit))
    else:
        print_rows(list_results(wanted, limit, _OF_DATA), _COLUMNS, as_json=False, nothing="No such results.")


@results.command(epilog="Example: lienworker results show p-0a1b2c…")
@click.argument("task_id")
@json_option
def show(task_id: str, as_json: bool) -> None:
    """One result with all its data and the places of its files."""
    from lienworker.store.results import result

    open_folder(load_settings())
    found = result(task_id)
    if found is None:
        raise click.ClickException(f"There is no result of task {task_id!r}. `lienworker tasks show` may say why.")
    if as_json:
        print_json(found)
    else:
        print_result(found)


def print_result(found: dict[str, Any]) -> None:
    """A result for people: what it is, where its files lie, and its data."""
    for name, value in found.items():
        if name != "data" and value is not None:
            echo(f"{name:>18}  {shown(value)}")
    print_json(found["data"])


@results.command(epilog="Example: lienworker results export --format csv --output results.csv")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="What to write.",
)
@click.option("--output", default="-", help="The file to write; - is standard output.", show_default=True)
@_filters
def export(form: str, output: str, **options: Any) -> None:
    """Export results to a file, streamed. A file appears whole or not at all."""
    from lienworker.queries.export import export as export_results
    from lienworker.queries.filters import find_results
    from lienworker.store.stale_files import users_file

    open_folder(load_settings())
    wanted = filter_of(options)
    if output == "-":
        export_results(lambda: find_results(wanted), form, standard_output())
        return
    try:
        with users_file(Path(output)) as out:
            n = export_results(lambda: find_results(wanted), form, out)
    except OSError as problem:
        raise click.ClickException(f"{output} cannot be written: {problem.strerror}.") from None
    echo(f"{plural(n, 'result')} written to {output}", err=True)


@results.command(epilog="Example: lienworker results archive --compress")
@click.option("--compress", is_flag=True, help="Make a .tar.gz instead of a .tar.")
def archive(compress: bool) -> None:
    """Pack the pending files into one verified archive, and only then remove them."""
    from lienworker.operator.archive import archive_pending

    made = archive_pending(open_folder(load_settings()), compress=compress)
    if made is None:
        echo("No pending files: nothing to archive.")
    else:
        echo(f"{plural(made.files, 'pending file')} packed into {made.path}")
