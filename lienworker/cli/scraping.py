"""scrape: one URL, now, with no stack running."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import (
    json_option,
    load_settings,
    named_task,
    open_folder,
    refuse_unknown_platform,
    warn_of_unknown_settings,
    with_options,
)
from lienworker.cli.flows import explain_failure, save_option, target_of, tell, trace_option
from lienworker.cli.output import echo, print_json
from lienworker.cli.results import print_result

if TYPE_CHECKING:
    from lienworker.settings import Settings


@click.command(epilog="Example: lienworker scrape http://county.example/parcel/123 --platform generic")
@click.argument("url", metavar="[URL_OR_TASK]", required=False)
@click.option("--platform", help="Which platform's parser to use; detected if not given.")
@click.option("--parcel-id", help="Instead of a URL: the parcel, at the platform's own address or by its flow.")
@click.option("--target", "words", multiple=True, metavar="NAME=VALUE", help="What the platform needs besides.")
@click.option("--follow", is_flag=True, help="A list: its parcels become tasks for the stack.")
@click.option("--parcels-platform", metavar="NAME", help="The platform of a list's parcels, where it links to none.")
@click.option("--state", help="The state of the parcel, or of a list's parcels.")
@click.option("--county", help="The county of the parcel, or of a list's parcels.")
@click.option("--queue-only", is_flag=True, help="Only add the task; the stack scrapes it.")
@with_options(trace_option, save_option)
@json_option
def scrape(
    url: str | None,
    platform: str | None,
    parcel_id: str | None,
    words: tuple[str, ...],
    queue_only: bool,
    as_json: bool,
    follow: bool,
    in_full: bool,
    save_to: Path,
    **parcels: str | None,
) -> None:
    """Scrape one URL, or one parcel of a platform: fetch, parse, store, print.

    A known task is named by its id or its beginning, or by its parcel id. Works with no stack running. A flow shows
    each of its steps. A page that gives no result shows what the parser saw. Exit 1 if it failed.
    """
    from lienworker.operator.scrape_now import queue_target, scrape_now, trace_of
    from lienworker.platforms import registry_with

    if url is None and not (platform and (parcel_id or words)):
        raise click.UsageError("Say a URL, or --platform with --parcel-id.")
    settings = load_settings()
    warn_of_unknown_settings()
    refuse_unknown_platform(registry_with(settings.platforms_folder), platform)
    url = _address(settings, url) if url else None
    state, county = (None, None) if url else (parcels["state"], parcels["county"])
    target = replace(target_of(words, platform), url=url, parcel_id=parcel_id, state=state, county=county)
    if queue_only:
        task_id = queue_target(settings, target)
        if follow:
            _ask_to_follow(task_id, parcels)
        print_json({"task_id": task_id}) if as_json else echo(f"Queued as task {task_id}.")
        return
    trace = trace_of(settings, target, tell, in_full=in_full)
    done = scrape_now(settings, target, trace)
    if as_json:
        print_json(done.as_dict())
    else:
        _print(done, settings)
    if trace and not done.result and in_full:
        explain_failure(trace, done.task["last_error"], save_to, platform or "page")
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
