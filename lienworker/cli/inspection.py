"""status, analyze and doctor: how it is, what was collected, whether all is well."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from lienworker.cli.common import json_option, load_settings, open_folder, print_json, print_table


@click.command(epilog="Example: lienworker status --watch")
@click.option("--watch", is_flag=True, help="Keep showing it, with rates, until Ctrl-C.")
@json_option
def status(watch: bool, as_json: bool) -> None:
    """Show the state of the data folder on one screen."""
    settings = load_settings()
    folder = open_folder(settings)
    before: tuple[float, int] | None = None
    while True:
        from lienworker.reports.overview import health_in_words, overview
        from lienworker.stack.supervisor import is_stack_running

        facts = overview(settings, folder)
        if as_json:
            print_json(facts)
        else:
            now = (time.monotonic(), facts["tasks"]["completed"] + facts["tasks"]["failed"])
            if watch:
                click.clear()
            _print_status(facts, health_in_words(facts, settings, stack_runs=is_stack_running(folder)))
            if before:
                click.echo(f"\n{(now[1] - before[1]) / (now[0] - before[0]):.1f} tasks end a second")
            before = now
        if not watch:
            return
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            return


def _print_status(facts: dict[str, Any], health: str) -> None:
    click.echo(f"{facts['mode']}, {facts['data_dir']}: {health}.\n")
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
    if facts["workers"]:
        click.echo("\nWorkers:")
        about = ("kind", "pid", "slots", "seen_at")
        print_table(about, [[row[name] for name in about] for row in facts["workers"]])


@click.command(epilog="Example: lienworker analyze old-data --json")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def analyze(folder: Path | None, as_json: bool) -> None:
    """Say what was collected: counts, failures by reason, field fill rates, timings.

    FOLDER is a data folder; the current one if it is not given.
    """
    from lienworker.errors import InputError
    from lienworker.reports.analyze import analyze as figures
    from lienworker.store.folder import DataFolder

    settings = load_settings()
    if folder:
        if not DataFolder(folder).database.is_file():
            raise InputError(f"{folder} is not a data folder: there is no lienworker.db in it.")
        settings = replace(settings, data_dir=folder.absolute())
    open_folder(settings)
    facts = figures()
    if as_json:
        print_json(facts)
    else:
        _print_analysis(facts)


def _print_analysis(facts: dict[str, Any]) -> None:
    click.echo("Tasks: " + ", ".join(f"{n:,} {status}" for status, n in facts["tasks"].items()))
    for failure in facts["failures"]:
        click.echo(f"  {failure['n']:>8,}  {failure['reason']}: {(failure['sample'] or '')[:100]}")
    columns = ("platform", "state", "county", "tasks", "completed", "failed")
    click.echo("\nBy county:")
    print_table(columns, [[row[name] for name in columns] for row in facts["counties"][:30]])
    for platform, fields in facts["fields"].items():
        click.echo(f"\nFields of {platform} (share of results that have them):")
        for name, share in fields.items():
            click.echo(f"  {share:>6.1%}  {name}")
    click.echo("\nTimings:")
    for name, spread in facts["timings"].items():
        if spread:
            click.echo(f"  {name:<11} " + "  ".join(f"{key} {value:,}" for key, value in spread.items()))


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
