"""run, up and demo: the stack in the foreground."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import load_settings, make_folder, typed_here, warn_of_unknown_settings
from lienworker.cli.intake import how_of, import_file, intake_options
from lienworker.cli.output import echo
from lienworker.cli.progress import Progress
from lienworker.text_safety import plural

if TYPE_CHECKING:
    from lienworker.settings import Settings
    from lienworker.stack.one_shot import Interrupts
    from lienworker.stack.supervisor import Supervisor


@click.command(epilog="Example: lienworker run parcels.csv --platform qpublic --state FL --county Dixie")
@click.argument("file")
@intake_options
def run(file: str, **options: Any) -> None:
    """Import FILE, scrape it to the end, and print a summary.

    Starts everything that it needs and stops it again. Beside a running `lienworker up` it hands the file over and
    watches it. Stopped or killed, the same command goes on where it was. Exit 0: all completed; 1: some failed.
    """
    settings = load_settings()
    warn_of_unknown_settings()
    sys.exit(run_file(settings, file, options))


def run_file(settings: Settings, file: str, options: dict[str, Any], *, is_kept: bool = True) -> int:
    """The whole of `lienworker run`; return the exit code. Nobody is sent to a folder that is not kept."""
    from lienworker.data_folder import rotated
    from lienworker.errors import BusyError
    from lienworker.stack.one_shot import interrupts
    from lienworker.stack.supervisor import running_stack

    folder = make_folder(settings)
    with interrupts() as stop, contextlib.ExitStack() as stack:
        log = stack.enter_context(rotated(folder.logs / "run.log").open("ab"))
        try:
            # Whoever sits before it waits for a dead host less long than a stack does that nobody looks at.
            patient = min(settings.host_give_up, 60 * settings.run_give_up)
            own = replace(settings, host_give_up=patient)
            supervisor: Supervisor | None = stack.enter_context(running_stack(own, log))
            settings = own
        except BusyError:
            echo("A stack runs on this data folder: it gets the file, and I watch.", err=True)
            supervisor = None
        if supervisor:
            stop.at_once = lambda: _kill(supervisor)
        import_id = _import_and_watch(settings, file, options, stop, supervisor)
        return 130 if import_id is None else print_summary(import_id, settings, is_kept=is_kept)


def _import_and_watch(
    settings: Settings, file: str, options: dict[str, Any], stop: Interrupts, supervisor: Supervisor | None
) -> int | None:
    """Return the number of the import when all of it has ended; None when it was stopped."""
    from lienworker.queries.forecast.facts import forecast_of_import
    from lienworker.queries.forecast.words import for_progress
    from lienworker.stack.one_shot import watch_import

    importer = import_file(settings, file, how_of(options, settings), stop)
    assert importer.import_id is not None
    progress = Progress()
    tend, endure = (supervisor.tend, supervisor.endure) if supervisor else (lambda: None, _give_up)

    def show(counts: dict[str, int]) -> None:
        ended = counts["completed"] + counts["failed"] + counts["expired"]
        ends = for_progress(forecast_of_import(settings, importer.import_id or 0))
        progress.show(ended, sum(counts.values()), counts["failed"] + counts["expired"], ends)

    finished = watch_import(importer.import_id, stop, tend, endure, show)
    progress.close()
    if not finished:
        echo("Stopping. Nothing is lost: the same command goes on from here.", err=True)
        return None
    return importer.import_id


def _give_up(problem: Exception) -> None:
    """Whoever only watches another stack has nothing to wait for."""
    raise problem


def print_summary(import_id: int, settings: Settings, *, is_kept: bool) -> int:
    """What came of an import; 0 if all completed, else 1."""
    from lienworker.store.counts import failures, import_counts

    counts = import_counts(import_id)
    failed = counts["failed"] + counts["expired"]
    where = f"; results are in {settings.data_dir}" if is_kept else "."
    echo(f"{counts['completed']:,} completed, {failed:,} failed{where}")
    for reason, n, sample in failures(import_id):
        echo(f"  {n:>6,}  {reason}: {sample}")
    if failed and is_kept:
        here = typed_here(settings)
        echo(f"Look closer with `{here}lienworker tasks list --import {import_id} --status failed`,")
        echo(f"try again with `{here}lienworker tasks retry --import {import_id}`.")
    left = counts["pending"] + counts["processing"]
    if left:
        _say_what_is_kept_back(left)
    return 1 if failed or left else 0


def _say_what_is_kept_back(left: int) -> None:
    from lienworker.outbox.pauses import paused_counties
    from lienworker.store.history import paused_places

    if places := paused_places():
        echo(f"{left:,} are kept back, since their pages have changed:")
        for place in places:
            echo(f"  {place['words']}")
        echo("Fix the parser and `lienworker reparse`, or take them as they are: `lienworker platforms accept --all`.")
    for state, county, since in paused_counties():
        echo(f"{county} {state} is paused since {since}: `lienworker resume --county {state}/{county}` goes on.")


def _kill(supervisor: Supervisor) -> None:
    supervisor.kill()
    os._exit(130)


def in_mode(settings: Settings, mode: str | None) -> Settings:
    """The settings with the mode that the command line asks for."""
    from lienworker.errors import SettingsError

    if mode is None:
        return settings
    if mode == "standalone":
        return replace(settings, standalone=True)
    if not settings.gateway_url or not settings.gateway_token:
        raise SettingsError("GATEWAY_URL", "is not set (with GATEWAY_TOKEN), but the mode is to be ondemand.")
    return replace(settings, standalone=False, gateway_sync="enabled")


_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def _watchable(folder: Path | None) -> Path | None:
    from importlib.util import find_spec

    from lienworker.errors import OperatorError

    if folder and not find_spec("watchdog"):
        raise OperatorError("--watch needs the package watchdog: pip install 'dramatiq[watch]'.")
    return folder


def _stopping_words(mode: str) -> str:
    if mode == "standalone":
        return "Stopping. Nothing is lost. (Ctrl-C again: at once, and nothing is lost either.)"
    return (
        "Stopping: no more work is taken, what is in hand is stored. (Ctrl-C again: within 5 s; tasks in a reply of the"
        " Gateway that comes later are lost.)"
    )


@click.command(epilog="Example: LIENWORKER_DATA_DIR=/srv/liens lienworker up")
@click.option("--mode", type=click.Choice(["standalone", "ondemand"]), help="Not by the settings.")
@click.option("--only", type=click.Choice(["workers", "schedule"]), help="One part, as a service; needs REDIS_URL.")
@click.option("--watch", type=_FOLDER, help="Start workers again when Python files there change; for development.")
@click.option("--detach", is_flag=True, help="In the background; `lienworker logs` shows its log, `stop` ends it.")
def up(mode: str | None, only: str | None, watch: Path | None, detach: bool) -> None:
    """Run the whole stack in the foreground until Ctrl-C.

    Redis (a private one, unless REDIS_URL is set), workers, schedule and monitor. Parts that die are started again.

    Ctrl-C takes no more work and stores what is in hand; for a reply of the Gateway it may wait half a minute. A second
    Ctrl-C waits 5 seconds at most: tasks that the Gateway hands out in a reply that comes later are lost.
    """
    from lienworker.logs import setup_logging
    from lienworker.stack.one_shot import interrupts
    from lienworker.stack.parts import Choice
    from lienworker.stack.supervisor import running_stack

    settings = in_mode(load_settings(), mode)
    warn_of_unknown_settings()
    if detach:
        _detach(settings, mode)
        return
    setup_logging(settings, "supervisor")
    choice = Choice(with_web=True, only=only, watch=_watchable(watch))
    with interrupts() as stop, running_stack(settings, choice=choice) as supervisor:
        stop.at_once = lambda: _kill(supervisor)
        what = only or f"{plural(settings.process_count, 'worker')} of {settings.threads} threads"
        echo(
            f"lienworker is up ({settings.mode}) on {settings.data_dir}: {what}. Ctrl-C stops it.",
            err=True,
        )
        while not stop:
            supervisor.tend()
            time.sleep(0.2)
        echo(_stopping_words(settings.mode), err=True)


def _detach(settings: Settings, mode: str | None) -> None:
    """Start the same in a session of its own, and wait until its workers live or it has ended."""
    import subprocess  # ourselves, as an argument list  # nosec B404

    from lienworker.data_folder import is_stack_running, rotated
    from lienworker.outbox.leases import living

    folder = make_folder(settings)
    if is_stack_running(folder):
        raise click.ClickException("A stack runs on this folder already: `lienworker status` shows it.")
    log = rotated(folder.logs / "stack.log")
    command = [sys.executable, "-P", "-m", "lienworker", "up", *(["--mode", mode] if mode else [])]
    with log.open("ab") as out:
        began = out.tell()
        started = subprocess.Popen(  # nosec B603
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    while not (is_stack_running(folder) and living(folder, "worker")):
        if started.poll() is not None:
            with log.open("rb") as said:
                said.seek(began)
                echo(said.read().decode("utf-8", "replace"), err=True, nl=False)
            sys.exit(started.returncode or 1)
        time.sleep(0.1)
    echo(f"lienworker is up ({settings.mode}) on {settings.data_dir}. `lienworker logs --follow` shows what it says,")
    echo("`lienworker status --watch` how far it is, and `lienworker stop` ends it.")


@click.command(epilog="Example: lienworker demo --parcels 200 --keep demo-data")
@click.option("--parcels", default=60, show_default=True, type=click.IntRange(1, 100_000), help="How many to scrape.")
@click.option("--keep", type=click.Path(path_type=Path), help="Use this data folder, and leave it there.")
def demo(parcels: int, keep: Path | None) -> None:
    """Scrape the bundled demo county, which runs on this machine.

    A few of its parcels are broken on purpose, to show how failures look. Exit 0 if all came out as it should.
    """
    from lienworker.cli.demonstration import demonstrate

    sys.exit(demonstrate(load_settings(), parcels, keep, run_file, lambda words: echo(words, err=True)))
