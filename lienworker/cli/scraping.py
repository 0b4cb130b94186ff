"""scrape: one URL, now, with no stack running."""

from __future__ import annotations

import sys
from typing import Any

import click

from lienworker.cli.common import json_option, load_settings, print_json
from lienworker.cli.results import print_result


@click.command(epilog="Example: lienworker scrape http://county.example/parcel/123 --platform generic")
@click.argument("url")
@click.option("--platform", help="Which platform's parser to use; detected if not given.")
@click.option("--queue-only", is_flag=True, help="Only add the task; the stack scrapes it.")
@json_option
def scrape(url: str, platform: str | None, queue_only: bool, as_json: bool) -> None:
    """Scrape one URL: fetch, parse, store, print.

    Works with no stack running. A page that gives no result shows what the parser saw. Exit 1 if it failed.
    """
    from lienworker.actors.by_hand import queue_url, scrape_now

    settings = load_settings()
    if queue_only:
        task_id = queue_url(settings, url, platform)
        print_json({"task_id": task_id}) if as_json else click.echo(f"Queued as task {task_id}.")
        return
    done = scrape_now(settings, url, platform)
    if as_json:
        print_json(done.as_dict())
    else:
        _print(done)
    sys.exit(0 if done.result else 1)


def _print(done: Any) -> None:
    if done.result:
        print_result(done.result)
        return
    click.echo(f"Failed: {done.task['reason']}: {done.task['last_error']}", err=True)
    if done.page:
        click.echo(
            f"The page ({done.page['size']:,} bytes, HTTP {done.page['status']}) is in {done.page['path']}", err=True
        )
        click.echo("What the parser saw:", err=True)
        click.echo(done.seen)
