"""scrape: one URL, now, with no stack running."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import (
    json_option,
    load_settings,
    named_task,
    open_folder,
    refuse_unknown_platform,
    warn_of_unknown_settings,
)
from lienworker.cli.output import echo, print_json
from lienworker.cli.results import print_result

if TYPE_CHECKING:
    from lienworker.settings import Settings


@click.command(epilog="Example: lienworker scrape http://county.example/parcel/123 --platform generic")
@click.argument("url", metavar="URL_OR_TASK")
@click.option("--platform", help="Which platform's parser to use; detected if not given.")
@click.option("--follow", is_flag=True, help="A list: its parcels become tasks for the stack.")
@click.option("--parcels-platform", metavar="NAME", help="The platform of a list's parcels, where it links to none.")
@click.option("--state", help="The state of a list's parcels.")
@click.option("--county", help="The county of a list's parcels.")
@click.option("--queue-only", is_flag=True, help="Only add the task; the stack scrapes it.")
@json_option
def scrape(
    url: str, platform: str | None, queue_only: bool, as_json: bool, follow: bool, **parcels: str | None
) -> None:
    """Scrape one URL: fetch, parse, store, print.

    A known task is named by its id or its beginning, or by its parcel id. Works with no stack running. A page that
    gives no result shows what the parser saw. Exit 1 if it failed.
    """
    from lienworker.operator.scrape_now import queue_url, scrape_now
    from lienworker.platforms import registry_with

    settings = load_settings()
    warn_of_unknown_settings()
    refuse_unknown_platform(registry_with(settings.platforms_folder), platform)
    url = _address(settings, url)
    if queue_only:
        task_id = queue_url(settings, url, platform)
        if follow:
            _ask_to_follow(task_id, parcels)
        print_json({"task_id": task_id}) if as_json else echo(f"Queued as task {task_id}.")
        return
    done = scrape_now(settings, url, platform)
    if as_json:
        print_json(done.as_dict())
    else:
        _print(done, settings)
    if follow and done.result:
        _follow(settings, done.task["task_id"], parcels)
    sys.exit(0 if done.result else 1)


def _address(settings: Settings, name: str) -> str:
    """The address itself, or that of a task which goes by this name."""
    from lienworker.data_folder import DataFolder
    from lienworker.queries.lists import tasks_called
    from lienworker.store.tasks import task

    if "://" in name or not DataFolder(settings.data_dir).database.exists():
        return name
    open_folder(settings)
    found = task(named_task(name)) if tasks_called(name) else None
    return found["url"] if found else name


def _about(parcels: dict[str, str | None]) -> dict[str, str | None]:
    return {"platform": parcels["parcels_platform"], "state": parcels["state"], "county": parcels["county"]}


def _ask_to_follow(task_id: str, parcels: dict[str, str | None]) -> None:
    from lienworker.steps.follow import ask_to_follow

    ask_to_follow(task_id, _about(parcels))


def _follow(settings: Settings, task_id: str, parcels: dict[str, str | None]) -> None:
    from lienworker.data_folder import DataFolder
    from lienworker.platforms import registry_with
    from lienworker.steps.follow import follow_stored

    registry = registry_with(settings.platforms_folder)
    followed = follow_stored(DataFolder(settings.data_dir), registry, task_id, _about(parcels))
    if followed is None:
        echo("The page is not a list: there is nothing to follow.", err=True)
        return
    items, done = followed
    left = items - done.added - done.known
    words = f"{items:,} items: {done.added:,} new tasks, {done.known:,} already known"
    words += f", {left:,} without an address (--parcels-platform may build one)" if left else ""
    echo(words + ".", err=True)


def _print(done: Any, settings: Settings) -> None:
    if done.result:
        print_result(done.result, settings.data_dir)
        return
    echo(f"Failed: {done.task['reason']}: {done.task['last_error']}", err=True)
    if done.page:
        about = f"{done.page['size']:,} bytes, HTTP {done.page['status']}"
        echo(f"The page ({about}) is in {settings.data_dir / done.page['path']}", err=True)
        echo("What the parser saw:", err=True)
        echo(done.seen)
