"""status and doctor: how it is, and whether all is well."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import json_option, load_settings, open_folder, print_json, print_table

#: Rows of each backlog table on a screen.
_BACKLOG_ROWS = 6

if TYPE_CHECKING:
    from lienworker.reports.health import Health


@click.command(epilog="Example: lienworker status --watch")
@click.option("--watch", is_flag=True, help="Keep showing it, with rates, until Ctrl-C.")
@json_option
def status(watch: bool, as_json: bool) -> None:
    """Show the state of the data folder on one screen."""
    from lienworker.reports.health import judge
    from lienworker.reports.overview import overview

    settings = load_settings()
    folder = open_folder(settings)
    while True:
        facts = overview(settings, folder)
        if as_json:
            print_json(facts)
        else:
            if watch:
                click.clear()
            _print_status(facts, judge(settings, facts))
            click.echo("\n" + _pace_in_words(facts))
        if not watch:
            return
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            return


def _pace_in_words(facts: dict[str, Any]) -> str:
    """Rate, progress and time left, as the monitor's overview has them."""
    from lienworker.reports.words import seconds, share

    every = sum(facts["tasks"].values())
    parts = [f"{facts['rate']:.1f} tasks end a second"]
    parts += [f"{share((every - facts['left']) / every)} of {every:,} have ended"] if every else []
    parts += [f"{seconds(facts['left_seconds'])} left"] if facts["left_seconds"] and facts["stack_runs"] else []
    size = [f"the data folder takes {facts['data_mb']:,} MB"] if facts["data_mb"] is not None else []
    return ", ".join([*parts, *size, f"{facts['disk_free_mb']:,} MB free on the disk"])


def _print_status(facts: dict[str, Any], health: Health) -> None:
    colours = {"good": "green", "busy": "blue", "warn": "yellow", "bad": "red"}
    # What the Gateway said is in it: a stranger's text must not move the cursor.
    words = "".join(character if character.isprintable() else " " for character in health.words)
    words = words if os.environ.get("NO_COLOR") else click.style(words, colours[health.level], bold=True)
    click.echo(f"{facts['mode']}, {facts['data_dir']}: {words}\n")
    for place in facts["drift"]:
        click.echo(f"{place['words']}: `lienworker reparse` after a fix, or `lienworker platforms accept`.\n")
    for name in ("tasks", "outbox"):
        click.echo(f"{name:>7}  " + "  ".join(f"{state} {n:,}" for state, n in facts[name].items()))
    for queue, counts in facts["queues"].items():
        click.echo(f"{queue:>7}  " + "  ".join(f"{topic} {n:,}" for topic, n in counts.items()))
    if facts["failures"]:
        click.echo("\nFailed:")
        for failure in facts["failures"][:8]:
            click.echo(f"  {failure['n']:>8,}  {failure['reason']}: {(failure['sample'] or '')[:100]}")
    if facts["hosts"]:
        click.echo("\nHosts with work:")
        columns = ("host", "waiting", "delay", "cooling_seconds", "reason")
        print_table(columns, [[row[name] for name in columns] for row in facts["hosts"][:8]])
    _print_backlog(facts["backlog"])
    if facts["workers"]:
        click.echo("\nWorkers:")
        about = ("kind", "pid", "slots", "seen_at")
        print_table(about, [[row[name] for name in about] for row in facts["workers"]])


def _print_backlog(backlog: dict[str, Any]) -> None:
    """Who waits how long; what is old stands on the right."""
    from lienworker.reports.backlog import heads, in_lines

    for title, rows in (("host or step", backlog["rows"]), ("county", backlog["counties"])):
        if rows:
            click.echo("\nBacklog by age:")
            print_table((title, "all", *heads()), list(in_lines(rows, _BACKLOG_ROWS)))


@click.command(epilog="Example: lienworker health workers")
@click.argument("part", type=click.Choice(["workers", "schedule", "web"]))
def health(part: str) -> None:
    """Say whether one part of the stack gives a sign of life, for health checks. Exit 1 if not."""
    from lienworker.stack.signs import SIGNS

    settings = load_settings()
    is_well, words = SIGNS[part](settings, open_folder(settings))
    click.echo(words)
    sys.exit(0 if is_well else 1)


@click.command(epilog="Example: lienworker doctor --json")
@json_option
def doctor(as_json: bool) -> None:
    """Check environment, settings, database integrity and the outbox balance. Exit 1 on trouble."""
    from lienworker.reports.doctor import examine
    from lienworker.stack.redis_server import server_program

    findings = list(examine(load_settings(), server_program))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(f"{'ok ' if finding.is_well else 'BAD'}  {finding.check}: {finding.words}")
    sys.exit(0 if all(finding.is_well for finding in findings) else 1)
