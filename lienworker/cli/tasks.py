"""tasks: list, show, retry, cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import (
    json_option,
    load_settings,
    open_folder,
    plural,
    print_rows,
    print_table,
    shown,
    with_options,
)
from lienworker.cli.output import confirm, echo, print_json

if TYPE_CHECKING:
    from lienworker.operator.tasks import Done
    from lienworker.queries.filters import TaskFilter

_STATUSES = ["pending", "processing", "completed", "failed", "expired"]
_LONGEST_TEXT = 500
_COLUMNS = ("task_id", "status", "queue", "platform", "county", "parcel_id", "reason", "url")

filter_options = with_options(
    click.option("--status", type=click.Choice(_STATUSES), help="Only tasks with this status."),
    click.option("--reason", help="Only tasks that failed for this reason."),
    click.option("--platform", help="Only tasks of this platform."),
    click.option("--state", help="Only tasks of this state."),
    click.option("--county", help="Only tasks of this county."),
    click.option("--queue", type=click.Choice(["urgent", "default"]), help="Only tasks in this queue."),
    click.option("--source", type=click.Choice(["gateway", "local_file", "cli"]), help="Only tasks from there."),
    click.option("--text", help="Only tasks with this in their id, parcel id or URL."),
)


def filter_of(options: dict[str, Any]) -> TaskFilter:
    from lienworker.queries.filters import TaskFilter

    if len(options.get("text") or "") > _LONGEST_TEXT:
        raise click.UsageError(f"--text is longer than {_LONGEST_TEXT} characters.")
    return TaskFilter(**options)


@click.group(epilog="Example: lienworker tasks list --status failed")
def tasks() -> None:
    """Look at tasks, try them again, cancel them."""


@tasks.command("list", epilog="Example: lienworker tasks list --status failed --county Dixie")
@filter_options
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--offset", default=0, type=click.IntRange(0), help="How many to pass over.")
@json_option
def list_(limit: int, offset: int, as_json: bool, **options: Any) -> None:
    """List tasks, oldest first."""
    from lienworker.queries.filters import find_tasks

    open_folder(load_settings())
    rows = find_tasks(filter_of(options), limit, offset)
    print_rows(rows, _COLUMNS, as_json=as_json, nothing="No such tasks.")


@tasks.command(epilog="Example: lienworker tasks show p-0a1b2c…")
@click.argument("task_id")
@json_option
def show(task_id: str, as_json: bool) -> None:
    """One task's whole story: steps, attempts, errors, files."""
    story = _story(task_id)
    if as_json:
        print_json(story)
        return
    for name, value in story["task"].items():
        if value is not None:
            echo(f"{name:>14}  {shown(value) if name != 'last_error' else value}")
    for page in story["pages"]:
        echo(f"{'raw page':>14}  {page['path']} ({page['size']:,} bytes)")
    echo("\nSteps:")
    columns = ("id", "topic", "generation", "state", "attempts", "reason")
    print_table(columns, [[step[name] for name in columns] for step in story["steps"]])
    if story["attempts"]:
        echo("\nWhat went wrong:")
        for attempt in story["attempts"]:
            echo(f"  {attempt['at']}  {attempt['topic']}  {attempt['reason']}: {shown(attempt['error'])}")


def _story(task_id: str) -> dict[str, Any]:
    from dataclasses import asdict

    from lienworker.outbox.rows import steps_of
    from lienworker.store.pages import latest_page, pages_of
    from lienworker.store.results import result
    from lienworker.store.tasks import attempts_of, task

    open_folder(load_settings())
    found = task(task_id)
    if found is None:
        raise click.ClickException(f"There is no task {task_id!r}. `lienworker tasks list` shows what there is.")
    page = latest_page(task_id)
    return {
        "task": found,
        "steps": steps_of(task_id),
        "attempts": attempts_of(task_id),
        "page": asdict(page) if page else None,
        "pages": [asdict(part) for part in pages_of(task_id, page.generation)] if page else [],
        "result": result(task_id),
    }


@tasks.command(epilog="Example: lienworker tasks retry --reason http_503")
@click.argument("task_ids", nargs=-1, metavar="[ID]...")
@filter_options
@click.option("--all", "everything", is_flag=True, help="All failed and expired tasks.")
def retry(task_ids: tuple[str, ...], everything: bool, **options: Any) -> None:
    """Try failed tasks again: by id, by filter, or --all."""
    from lienworker.operator.tasks import retry_tasks

    ids, what = _chosen(task_ids, everything, options, ("failed", "expired"))
    _report("to be tried again", retry_tasks(ids, what), "not failed")


@tasks.command(epilog="Example: lienworker tasks cancel --county Dixie")
@click.argument("task_ids", nargs=-1, metavar="[ID]...")
@filter_options
@click.option("--all", "everything", is_flag=True, help="All tasks that wait.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def cancel(task_ids: tuple[str, ...], everything: bool, yes: bool, **options: Any) -> None:
    """Cancel tasks that wait: by id, by filter, or --all. They end as failed, reason `cancelled`."""
    from lienworker.operator.tasks import cancel_tasks

    ids, what = _chosen(task_ids, everything, options, ("pending", "processing"))
    if not yes and not task_ids and ids:
        confirm(f"Cancel {plural(len(ids), 'task')} ({what})?")
    _report("cancelled", cancel_tasks(ids, what), "not waiting, or in a worker's hands")


def _chosen(
    task_ids: tuple[str, ...], everything: bool, options: dict[str, Any], statuses: tuple[str, ...]
) -> tuple[list[str], str]:
    """The tasks that are meant, and how that was said."""
    from lienworker.queries.filters import find_task_ids

    wanted = filter_of(options)
    if sum((bool(task_ids), not wanted.is_empty, everything)) != 1:
        raise click.UsageError("Say which tasks: ids, or filters, or --all.")
    open_folder(load_settings())
    if task_ids:
        return list(task_ids), "ids " + " ".join(task_ids)[:500]
    return find_task_ids(wanted, statuses), wanted.in_words()


def _report(done_words: str, done: Done, left_words: str) -> None:
    left = f"; {done.left:,} left as they are ({left_words})" if done.left else ""
    echo(f"{plural(done.changed, 'task')} {done_words}{left}.")
