"""tasks: list, show, retry, cancel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import islice
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
    print_table,
    print_total,
    shown,
    since_option,
    with_options,
)
from lienworker.cli.output import confirm, echo, print_json
from lienworker.text_safety import plural

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
    import_option("tasks"),
    since_option("tasks that came"),
)


def filter_of(options: dict[str, Any]) -> TaskFilter:
    from lienworker.db.clock import rfc3339
    from lienworker.queries.filters import TaskFilter

    if len(options.get("text") or "") > _LONGEST_TEXT:
        raise click.UsageError(f"--text is longer than {_LONGEST_TEXT} characters.")
    since_ms = options.pop("since_ms", None)
    return TaskFilter(**options, since=rfc3339(since_ms) if since_ms is not None else None)


@click.group(epilog="Example: lienworker tasks list --status failed")
def tasks() -> None:
    """Look at tasks, try them again, cancel them."""


@tasks.command("list", epilog="Example: lienworker tasks list --status failed --county Dixie")
@filter_options
@list_options
@click.option("--offset", default=0, type=click.IntRange(0), help="How many to pass over.")
@json_option
def list_(limit: int, reverse: bool, offset: int, as_json: bool, **options: Any) -> None:
    """List tasks, newest first."""
    from lienworker.queries.lists import count_tasks, each_task

    open_folder(load_settings())
    wanted = filter_of(options)
    rows = list(islice(each_task(wanted, oldest_first=reverse), offset, offset + limit))
    print_rows(rows, _COLUMNS, as_json=as_json, nothing="No such tasks.")
    if not as_json:
        print_total(offset + len(rows), offset + limit, "task", lambda: count_tasks(wanted))


@tasks.command(epilog="Example: lienworker tasks show p-0a1b2c…")
@click.argument("name", metavar="TASK")
@json_option
def show(name: str, as_json: bool) -> None:
    """One task's whole story: steps, attempts, errors, files.

    TASK is a task's id or its beginning, a parcel id, or an address.
    """
    folder = open_folder(load_settings())
    story = _story(named_task(name))
    if as_json:
        print_json(story)
        return
    for name, value in story["task"].items():
        if value is not None:
            echo(f"{name:>14}  {shown(value) if name != 'last_error' else value}")
    for page in story["pages"]:
        echo(f"{'raw page':>14}  {folder.root / page['path']} ({page['size']:,} bytes)")
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

    page = latest_page(task_id)
    return {
        "task": task(task_id),
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
    """Try failed tasks again: by id, by filter, or --all. Exit 1 if there was none."""
    from lienworker.operator.tasks import retry_tasks

    ids, what = _chosen(task_ids, everything, options, ("failed", "expired"))
    _report("to be tried again", retry_tasks(ids, what), "not failed")


@tasks.command(epilog="Example: lienworker tasks cancel --county Dixie")
@click.argument("task_ids", nargs=-1, metavar="[ID]...")
@filter_options
@click.option("--all", "everything", is_flag=True, help="All tasks that wait.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def cancel(task_ids: tuple[str, ...], everything: bool, yes: bool, **options: Any) -> None:
    """Cancel tasks that wait: by id, by filter, or --all. They end as failed, reason `cancelled`.

    Exit 1 if there was none.
    """
    from lienworker.operator.tasks import cancel_tasks

    ids, what = _chosen(task_ids, everything, options, ("pending", "processing"))
    if not yes and not task_ids and ids:
        confirm(f"Cancel {plural(len(ids), 'task')} ({what})?")
    _report("cancelled", cancel_tasks(ids, what), "not waiting, or in a worker's hands")


@tasks.command(epilog="Example: lienworker tasks fill --import 3 --state FL --county Dixie")
@click.argument("task_ids", nargs=-1, metavar="[ID]...")
@click.option("--state", help="The state of those that have none; unset: as their addresses tell.")
@click.option("--county", help="The county of those that have none; unset: as their addresses tell.")
@click.option("--import", "import_id", type=int, metavar="N", help="Those of this import.")
@click.option("--platform", help="Those of this platform.")
@click.option("--text", help="Those with this in their id, parcel id or URL.")
@click.option("--all", "everything", is_flag=True, help="All tasks.")
def fill(task_ids: tuple[str, ...], state: str | None, county: str | None, everything: bool, **options: Any) -> None:
    """Fill in the state and the county of tasks and results that lack them.

    A Gateway takes no result without both. Those that were parked for it go out then. What a task or a result says
    already stays as it is. Exit 1 if there was nothing to fill in.
    """
    from lienworker.intake.fields import check_county, check_state
    from lienworker.operator.keys import fill as fill_in
    from lienworker.operator.keys import keys_to_fill
    from lienworker.outbox.keys import Keys
    from lienworker.platforms import registry_with

    settings = load_settings()
    given = Keys(
        state and _checked(check_state, state, "--state"), county and _checked(check_county, county, "--county")
    )
    ids, what = _chosen(task_ids, everything, options, _STATUSES)
    known = keys_to_fill(registry_with(settings.platforms_folder), ids, given)
    done = fill_in(open_folder(settings), known, what)
    words = f"{plural(len(done.task_ids), 'task')} filled in"
    echo(words + (f"; {plural(done.released, 'parked result')} can be delivered now." if done.released else "."))
    sys.exit(0 if done.task_ids else 1)


def _checked(check: Callable[[Any], str], value: str, option: str) -> str:
    from lienworker.intake.rows import BadRowError

    try:
        return check(value)
    except BadRowError as problem:
        raise click.BadParameter(problem.detail, param_hint=option) from None


def _chosen(
    task_ids: tuple[str, ...], everything: bool, options: dict[str, Any], statuses: Sequence[str]
) -> tuple[list[str], str]:
    """The tasks that are meant, and how that was said."""
    from lienworker.queries.lists import task_ids as ids_of

    wanted = filter_of(options)
    if sum((bool(task_ids), not wanted.is_empty, everything)) != 1:
        raise click.UsageError("Say which tasks: ids, or filters, or --all.")
    open_folder(load_settings())
    if task_ids:
        task_ids = tuple(map(named_task, task_ids))
        return list(task_ids), "ids " + " ".join(task_ids)[:500]
    return ids_of(wanted, statuses), wanted.in_words()


def _report(done_words: str, done: Done, left_words: str) -> None:
    left = f"; {done.left:,} left as they are ({left_words})" if done.left else ""
    echo(f"{plural(done.changed, 'task')} {done_words}{left}.")
    sys.exit(0 if done.changed else 1)
