"""imports, counties and logs: what files brought, how well each county is scraped, what the stack says."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import (
    json_option,
    list_options,
    load_settings,
    open_folder,
    print_rows,
    print_total,
    shown,
    since_option,
)
from lienworker.cli.output import echo, print_json

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder

_IMPORTS = ("id", "name", "status", "rows", "added", "known", "refreshed", "rejected", "started_at")
_COUNTIES = ("platform", "state", "county", "ended", "failed", "ended_now", "failed_now", "waiting", "drift", "paused")
_LOOK_SECONDS = 0.5
_DAY_MINUTES = 24 * 60


@click.group(epilog="Example: lienworker imports list")
def imports() -> None:
    """Look at the files that were imported."""


@imports.command("list", epilog="Example: lienworker imports list --limit 10")
@since_option("imports that began")
@list_options
@json_option
def list_imports(since_ms: int | None, limit: int, reverse: bool, as_json: bool) -> None:
    """List imports, newest first."""
    from lienworker.db.clock import rfc3339
    from lienworker.store.imports import count_imports
    from lienworker.store.imports import imports as all_imports

    open_folder(load_settings())
    since = rfc3339(since_ms) if since_ms is not None else ""
    rows = all_imports(limit, since=since, oldest_first=reverse)
    print_rows(rows, _IMPORTS, as_json=as_json, nothing="No such imports.")
    if not as_json:
        print_total(len(rows), limit, "import", lambda: count_imports(since))


@imports.command("show", epilog="Example: lienworker imports show 3")
@click.argument("number", type=int, metavar="N")
@json_option
def show_import(number: int, as_json: bool) -> None:
    """One import: what its rows came to, how far its tasks are, and where its rejects are."""
    from lienworker.queries.forecast.facts import forecast_of_import
    from lienworker.queries.forecast.words import as_facts, for_progress
    from lienworker.store.counts import failures, import_counts
    from lienworker.store.imports import import_numbered

    settings = load_settings()
    open_folder(settings)
    found = import_numbered(number)
    if found is None:
        raise click.ClickException(f"There is no import {number}. `lienworker imports list` shows what there is.")
    tasks, ends = import_counts(number), forecast_of_import(settings, number)
    reasons = [{"reason": reason, "n": n, "sample": sample} for reason, n, sample in failures(number)]
    if as_json:
        print_json({**found, "tasks": tasks, "failures": reasons, "forecast": as_facts(ends)})
        return
    options = found.pop("options")
    mapping = options.pop("mapping", {})
    for name, value in {**found, **options}.items():
        if value is not None:
            echo(f"{name:>14}  {shown(value, sys.maxsize)}")
    for field, column in mapping.items():
        echo(f"{'column':>14}  {field} = {shown(column)}")
    echo(f"{'tasks':>14}  " + "  ".join(f"{status} {n:,}" for status, n in tasks.items()))
    if words := for_progress(ends):
        echo(f"{'forecast':>14}  {words}")
    for failure in reasons:
        echo(f"  {failure['n']:>8,}  {failure['reason']}: {failure['sample'] or ''}")


@click.group(epilog="Example: lienworker counties list")
def counties() -> None:
    """How well each county is scraped."""


@counties.command("list", epilog="Example: lienworker counties list --state FL")
@click.option("--platform", help="Only counties of this platform.")
@click.option("--state", help="Only counties of this state.")
@click.option("--county", help="Only this county.")
@since_option("counties in which something ended")
@click.option("--reverse", is_flag=True, help="Those in trouble last.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@json_option
def list_counties(since_ms: int | None, reverse: bool, limit: int, as_json: bool, **wanted: str | None) -> None:
    """List counties: what ended and failed, ever and lately, and what waits. Those in trouble come first.

    Lately is the last day, or from --since on.
    """
    found = [row for row in _all_counties(since_ms) if _is_wanted(row, wanted)]
    rows = [row for row in found if since_ms is None or row["ended_now"]][:: -1 if reverse else 1]
    print_rows(rows[:limit], _COUNTIES, as_json=as_json, nothing="No such counties.")
    if not as_json:
        print_total(len(rows[:limit]), limit, "row", lambda: len(rows))


def _is_wanted(row: dict[str, Any], wanted: dict[str, str | None]) -> bool:
    return all(value is None or row[name].lower() == value.lower() for name, value in wanted.items())


def _all_counties(since_ms: int | None = None) -> list[dict[str, Any]]:
    from lienworker.queries.counties import counties as figures
    from lienworker.store.counts import this_minute

    open_folder(load_settings())
    # A county's figures are kept by the day.
    lately = this_minute() - _DAY_MINUTES if since_ms is None else since_ms // 60_000 // _DAY_MINUTES * _DAY_MINUTES
    return figures(lately, limit=sys.maxsize)


@counties.command("show", epilog="Example: lienworker counties show Dixie")
@click.argument("county")
@json_option
def show_county(county: str, as_json: bool) -> None:
    """One county: its figures, and a sample of each kind of failure. Its name is taken without case."""
    from lienworker.cli.common import did_you_mean
    from lienworker.queries.counties import samples_of_failures

    found = _all_counties()
    rows = [row for row in found if row["county"].lower() == county.lower()]
    if not rows:
        near = did_you_mean(county, {row["county"] for row in found})
        raise click.ClickException(f"There is no county {county!r}.{near} `lienworker counties list` shows them.")
    facts = [{**row, "failures": samples_of_failures(row["platform"], row["county"])} for row in rows]
    if as_json:
        print_json(facts)
        return
    print_rows(rows, _COUNTIES, as_json=False, nothing="")
    for fact in facts:
        for failure in fact["failures"]:
            echo(f"  {failure['n']:>8,}  {failure['reason']}: {failure['sample'] or ''} ({failure['task_id']})")


@click.command(epilog="Example: lienworker logs --follow")
@click.option("--follow", is_flag=True, help="Show what is added, until Ctrl-C.")
@click.option("--lines", default=50, show_default=True, type=click.IntRange(0), help="How many of the last lines.")
def logs(follow: bool, lines: int) -> None:
    """Show what the stack in the background, or the last `run`, has said.

    A stack in the foreground says it on its terminal, and one under systemd in the journal.
    """
    log = _newest_log(open_folder(load_settings()))
    with log.open("rb") as content:
        for line in deque(content, maxlen=lines):
            _say(line)
        while follow:
            line = content.readline()
            if line:
                _say(line)
                continue
            time.sleep(_LOOK_SECONDS)
            if log.stat().st_size < content.tell():  # a new one took its place
                content.seek(0)


def _newest_log(folder: DataFolder) -> Path:
    found = [path for name in ("stack.log", "run.log") if (path := folder.logs / name).exists()]
    if not found:
        raise click.ClickException(f"Nothing has written a log in {folder.logs} yet: `lienworker up --detach` does.")
    return max(found, key=lambda path: path.stat().st_mtime)


def _say(line: bytes) -> None:
    echo(line.decode("utf-8", "replace"), nl=False)
