"""status and doctor: how it is, and whether all is well."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import json_option, load_settings, open_folder, print_table
from lienworker.cli.output import confirm, echo, print_json

#: Rows of each table, where there is room.
_MOST_ROWS = 8
#: Lines that stand around the tables: the headline, counts, titles and the pace; and how many tables there may be.
_OTHER_LINES, _TABLES = 14, 5

if TYPE_CHECKING:
    from lienworker.settings import Settings

_REPAIR_ROUNDS = 3


@click.command(epilog="Example: lienworker status --watch")
@click.option("--watch", is_flag=True, help="Keep showing it, with rates, until Ctrl-C.")
@json_option
def status(watch: bool, as_json: bool) -> None:
    """Show the state of the data folder on one screen."""
    from lienworker.queries.overview import overview
    from lienworker.store.damage import confirmed_damage

    settings = load_settings()
    folder = open_folder(settings)
    confirmed_damage(folder)  # a note that is wrong is removed, and said so
    while True:
        facts = overview(settings, folder)
        if as_json:
            print_json(facts)
        else:
            if watch:
                click.clear()
            _print_status(facts, _rows_that_fit() if watch else _MOST_ROWS)
            echo("\n" + _pace_in_words(facts))
        if not watch:
            return
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            return


def _pace_in_words(facts: dict[str, Any]) -> str:
    """Rate, progress and time left, as the monitor's overview has them."""
    from lienworker.queries.formatting import share

    every = sum(facts["tasks"].values())
    parts = [f"{facts['rate']:.1f} tasks end a second"]
    parts += [f"{share((every - facts['left']) / every)} of {every:,} have ended"] if every else []
    parts += [words for name in ("words", "longest") if (words := facts["forecast"][name])]
    size = [f"the data folder takes {facts['data_mb']:,} MB"] if facts["data_mb"] is not None else []
    return ", ".join([*parts, *size, f"{facts['disk_free_mb']:,} MB free on the disk"])


def _rows_that_fit() -> int:
    """How many rows each table may have, so that the headline stays on the screen."""
    lines = shutil.get_terminal_size((80, 24)).lines - _OTHER_LINES
    return max(0, min(_MOST_ROWS, lines // _TABLES - 2))


def _and_more(n: int, most: int) -> None:
    if n > most:
        echo(f"  and {n - most:,} more")


def _print_status(facts: dict[str, Any], most: int) -> None:
    from lienworker.queries.formatting import cut
    from lienworker.queries.hosts import HEADS, in_table

    colors = {"good": "green", "busy": "blue", "warn": "yellow", "bad": "red"}
    named = f"{facts['name']}: " if facts["name"] else ""
    echo(f"{named}{facts['mode']}, {facts['data_dir']}: ", nl=False)
    echo(f"{facts['health']['words']}\n", color=colors[facts["health"]["level"]])
    for place in facts["drift"]:
        echo(f"{place['words']}: `lienworker reparse` after a fix, or `lienworker platforms accept --all`.\n")
    for name in ("tasks", "uploads"):
        echo(f"{name:>7}  " + "  ".join(f"{state} {n:,}" for state, n in facts[name].items()))
    for queue, counts in facts["queues"].items():
        echo(f"{queue:>7}  " + "  ".join(f"{topic} {n:,}" for topic, n in counts.items()))
    for line in _heartbeat_lines(facts):
        echo(line)
    if facts["failures"]:
        echo("\nFailed:")
        for failure in facts["failures"][:most]:
            echo(f"  {failure['n']:>8,}  {failure['reason']}: {cut(failure['sample'], 60)}")
        _and_more(len(facts["failures"]), most)
    if facts["hosts"]:
        echo("\nHosts with work:")
        _print_some(HEADS, in_table(facts["hosts"]), most)
    _print_backlog(facts["backlog"], most)
    if facts["workers"]:
        echo("\nWorkers:")
        about = ("kind", "pid", "slots", "seen_at")
        _print_some(about, [[row[name] for name in about] for row in facts["workers"]], most)


def _print_some(header: Sequence[str], rows: Sequence[Sequence[Any]], most: int) -> None:
    """The first rows of a table; of one that does not fit at all, only how many there are."""
    if most:
        print_table(header, rows[:most])
    _and_more(len(rows), most)


def _heartbeat_lines(facts: dict[str, Any]) -> list[str]:
    """What the last heartbeat came to, and what the Gateway asked for: as far as that can be printed."""
    from lienworker.queries.formatting import ago, cut, in_our_words

    beat = facts["heartbeat"]
    if facts["mode"] != "ondemand" or not beat["outcome"]:
        return []
    said = [f"   beat  {ago(beat['at'])}: {cut(in_our_words(beat['outcome']), 100)}"]
    said += [f"  asked  {ago(beat['commands_at'])}: {cut(beat['commands'], 100)}"] if beat["commands"] else []
    return ["".join(one if one.isprintable() else " " for one in line) for line in said]


def _print_backlog(backlog: dict[str, Any], most: int) -> None:
    """Who waits how long; what is old stands on the right."""
    from lienworker.queries.waiting import heads, in_lines

    for title, rows in (("host or step", backlog["rows"]), ("county", backlog["counties"])):
        if rows:
            echo("\nBacklog by age:")
            _print_some((title, "all", *heads()), list(in_lines(rows, len(rows))), most)


@click.command(epilog="Example: lienworker health workers")
@click.argument("part", type=click.Choice(["workers", "schedule", "web"]))
def health(part: str) -> None:
    """Say whether one part of the stack gives a sign of life, for health checks. Exit 1 if not."""
    from lienworker.stack.signs import SIGNS

    settings = load_settings()
    is_well, words = SIGNS[part](settings, open_folder(settings))
    echo(words)
    sys.exit(0 if is_well else 1)


@click.command(epilog="Example: lienworker doctor --repair")
@json_option
@click.option("--deep", is_flag=True, help="Read every raw page, not only the newest.")
@click.option("--repair", is_flag=True, help="Put right what can be, after saying what that is.")
@click.option("--refetch", is_flag=True, help="With --repair: fetch pages again whose raw file is lost.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
def doctor(as_json: bool, deep: bool, repair: bool, refetch: bool, yes: bool) -> None:
    """Check environment, settings, database integrity and the outbox balance. Exit 1 on trouble.

    --repair needs the folder for itself: stop the stack first. What cannot be rebuilt goes to quarantine/. Exit 1 also
    if rows of the database were lost: it says how many.
    """
    from lienworker.repair.doctor import examine
    from lienworker.repair.report import tells_of_losses
    from lienworker.stack.redis_server import find_server

    if (refetch or yes) and not repair:
        raise click.UsageError("--refetch and --yes belong to --repair.")
    settings = load_settings()
    repaired = repair_folder(settings, deep, refetch, yes) if repair else []
    has_lost = any(map(tells_of_losses, repaired))
    findings = list(examine(settings, lambda: find_server().in_words(), deep=deep))
    if as_json:
        shown = [{"check": found.check, "is_well": found.is_well, "words": found.words} for found in findings]
        print_json({"repaired": repaired, "findings": shown} if repair else shown)
    else:
        for finding in findings:
            echo(f"{'ok ' if finding.is_well else 'BAD'}  {finding.check}: {finding.words}")
    sys.exit(0 if all(finding.is_well for finding in findings) and not has_lost else 1)


def repair_folder(settings: Settings, deep: bool, refetch: bool, yes: bool) -> list[str]:
    """Say what would be done, ask, do it; return what was done."""
    from lienworker.repair.plan import alone_on, carry_out, other_problems, plan

    done = []
    with alone_on(settings) as folder:
        found = plan(folder, deep=deep, refetch=refetch)
        for item in found:
            echo(f"To repair: {item.in_full}.", err=True)
        if not found:
            echo("Nothing to repair.", err=True)
        elif not yes:
            confirm("Do it?")
        rounds = 0
        while found and rounds < _REPAIR_ROUNDS:  # what is fixed may show what else is wrong
            for item in found:
                said = carry_out(folder, item)
                done.append(said if item.check == "database" else item.in_full)
                echo(f"Repaired: {said}.", err=True)
            rounds += 1
            found = other_problems(folder, deep=deep, refetch=refetch)
    return done
