"""purge, backup and restore: looking after a data folder."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lienworker.cli.common import load_settings, make_folder, open_folder
from lienworker.cli.output import confirm, echo
from lienworker.cli.progress import Progress
from lienworker.text_safety import plural

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder
    from lienworker.maintenance.retention import Keep
    from lienworker.maintenance.sweeps import Purged
    from lienworker.operator.hosts import County
    from lienworker.settings import Settings


#: How long a backup waits for a purge, which a running stack does every hour, s.
_PATIENCE = 300.0
_HOURS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "": 1.0}


class Days(click.types.FloatParamType):
    """30, 30d, 12h or 4w, as days."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, context: click.Context | None) -> float:
        found = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)\s*([hdw]?)", str(value).strip().lower())
        if found is None:
            self.fail(f"{value!r} is no age: use days (30 or 30d), hours (12h) or weeks (4w).", param, context)
        return float(found[1]) * _HOURS[found[2]]


@click.command(epilog="Example: lienworker purge --older-than 7d --only raw --dry-run")
@click.option("--older-than", type=Days(), help="Tasks, raw pages and steps over this age (30, 12h, 4w), not as set.")
@click.option(
    "--only",
    "what",
    multiple=True,
    type=click.Choice(["tasks", "raw", "steps", "history"]),
    help="Only this; may be given several times.",
)
@click.option(
    "--archived", is_flag=True, help="Also results that no Gateway has, if `results archive` has packed them."
)
@click.option("--vacuum", is_flag=True, help="Write the database anew afterwards, as small as it can be. Needs a stop.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and touch nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(
    older_than: float | None, what: tuple[str, ...], archived: bool, vacuum: bool, dry_run: bool, yes: bool
) -> None:
    """Let go of what is old and delivered: tasks with their results, raw pages, finished steps.

    How long each is kept is set by `LIENWORKER_KEEP_…`; a running stack does the same once an hour. What is not
    delivered (waiting, held, parked) is never purged, nor its raw page. Works beside a running stack, except --vacuum.
    """
    from lienworker.maintenance.retention import WHAT, plan

    settings = load_settings()
    folder = open_folder(settings)
    keep = _keep(settings, older_than, archived).only(what or WHAT)
    if vacuum and not dry_run:
        _refuse_beside_a_stack(folder)
    found = plan(keep, folder)
    _say("To be purged" if found.rows else "Nothing is old enough to be purged", found)
    if found.archived:
        echo(f"  No Gateway has {plural(found.archived, 'result')} of these: only the archive keeps what they said.")
    if dry_run:
        return
    if found.rows and not yes:
        confirm("Purge?")
    _purge(keep, folder)
    if vacuum:
        _vacuum(folder)


def _keep(settings: Settings, older_than: float | None, archived: bool) -> Keep:
    from lienworker.maintenance.retention import Keep

    keep = Keep.of(settings)
    if older_than is not None:
        keep = replace(keep, raw=older_than, steps=older_than, tasks=older_than)
    if archived and math.isinf(keep.archived):
        keep = replace(keep, archived=keep.tasks)
    return keep


def _say(head: str, found: Purged) -> None:
    echo(f"{head}{':' if found.rows or found.files else '.'}")
    lines = (
        (found.tasks, "task", f" with {plural(found.results, 'result')}"),
        (max(found.pages, found.files), "raw page", f", {found.size / 1_000_000:,.1f} MB"),
        (found.steps, "finished step", ""),
        (found.history, "line", " of audit and imports"),
    )
    for n, noun, rest in lines:
        if n:
            echo(f"  {plural(n, noun)}{rest}")


def _purge(keep: Keep, folder: DataFolder) -> None:
    from lienworker.maintenance.disk_limits import measure, remember_size
    from lienworker.maintenance.pending_deletes import count_pending_deletes
    from lienworker.maintenance.retention import Pace
    from lienworker.maintenance.retention import purge as let_go

    pace = Pace()
    done = let_go(keep, folder, pace)
    remember_size(measure(folder))
    if done.rows or done.files:
        _say("Purged", done)
    if left := count_pending_deletes():
        echo(f"  {plural(left, 'raw file')} that came minutes ago will be removed by the next purge.")
    echo(f"Other writers waited {1000 * pace.longest:.0f} ms at most.", err=True)


def _refuse_beside_a_stack(folder: DataFolder) -> None:
    from lienworker.data_folder import is_stack_running
    from lienworker.errors import BusyError
    from lienworker.outbox.leases import anybody_alive

    if is_stack_running(folder) or anybody_alive(folder):
        raise BusyError(f"Workers run on {folder.root}: stop them first, or leave out --vacuum.")


def _vacuum(folder: DataFolder) -> None:
    from lienworker.maintenance.vacuum import vacuum

    before, after = vacuum(folder)
    echo(f"The database took {before / 1_000_000:,.1f} MB and takes {after / 1_000_000:,.1f} MB now.")


@click.command(epilog="Example: lienworker backup /mnt/backups/liens-2026-11-16.tar")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Write everything that is needed to go on into FILE, a tar (.tar.gz or .tgz: compressed).

    Works while the stack runs: the database is copied as it is at one moment, then the raw pages that it names. The
    archive is read back and checked before it gets its name. Settings and tokens are no part of it. Exit 1 if raw pages
    were missing.
    """
    from lienworker.maintenance.backup import write_backup
    from lienworker.maintenance.retention import alone

    folder = open_folder(load_settings())
    began = time.monotonic()
    progress = Progress("files")
    with alone(folder, _PATIENCE):
        made = write_backup(folder, file.absolute(), lambda done, total: progress.show(done, total, 0))
    progress.close()
    seconds = time.monotonic() - began
    echo(f"{plural(made.files, 'file')}, {made.size / 1_000_000:,.1f} MB in {seconds:.1f} s: {made.path}, checked.")
    if made.missing:
        echo(f"{plural(len(made.missing), 'raw page')} missing, such as {made.missing[0]}; see `lienworker doctor`.")
        sys.exit(1)


@click.command(epilog="Example: LIENWORKER_DATA_DIR=/srv/liens lienworker restore liens-2026-11-16.tar")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Move what is in the data folder aside first.")
@click.option("--moved", is_flag=True, help="Nothing happened since the backup: uploads go on at once, none is held.")
def restore(file: Path, force: bool, moved: bool) -> None:
    """Put the backup FILE into the data folder, which must be empty.

    All of it is checked before any of it takes its place. What was still to be sent to the Gateway is held, since the
    Gateway may have newer results by now: `lienworker outbox release --reason restored` lets it go.
    """
    from lienworker.maintenance.restore import restore_files, settle_in
    from lienworker.store.pending import rebuild

    settings = load_settings()
    restored = restore_files(file.absolute(), settings.data_dir, force=force)
    folder = make_folder(settings)
    held = settle_in(file.name, hold_uploads=not moved)
    made, _ = rebuild(folder)
    echo(
        f"{plural(restored.files, 'file')} restored to {folder.root}, as of {restored.about['made_at']}; "
        f"{plural(made, 'pending file')} made again."
    )
    if restored.old:
        echo(f"What was there before is in {restored.old}.")
    if held:
        echo(
            f"{plural(held, 'upload')} held: the Gateway may have newer results since the backup. If not, let them go: "
            "lienworker outbox release --reason restored"
        )


# pause and resume: by hand, for as long as wanted, through restarts.


_LANES = ("intake", "fetch", "upload")


def _chosen(intake: bool, fetch: bool, upload: bool) -> list[str]:
    named = [lane for lane, wanted in zip(_LANES, (intake, fetch, upload), strict=True) if wanted]
    return named or list(_LANES)


def _set(lanes: list[str], *, paused: bool) -> None:
    from lienworker.outbox.pauses import set_pause_by_hand

    open_folder(load_settings())
    set_pause_by_hand(lanes, paused=paused)


_intake = click.option("--intake", is_flag=True, help="Taking new work.")
_fetch = click.option("--fetch", is_flag=True, help="Fetching pages.")
_upload = click.option("--upload", is_flag=True, help="Sending to the Gateway.")
_county = click.option("--county", metavar="STATE/COUNTY", help="Fetching this county, and no lane; such as FL/Dixie.")


@click.command(epilog="Example: lienworker pause --county FL/Dixie")
@_intake
@_fetch
@_upload
@_county
def pause(intake: bool, fetch: bool, upload: bool, county: str | None) -> None:
    """Pause all lanes, or those that are named, or one county. Lasts through restarts.

    One site is paused by `lienworker hosts pause`.
    """
    if county is not None:
        _refuse_lanes_beside_a_county(intake or fetch or upload)
        from lienworker.operator.hosts import pause_county

        named, n = _on_county(county, pause_county)
        echo(f"Paused: {named}; {plural(n, 'page')} held. `lienworker resume --county {named}` goes on.")
        return
    lanes = _chosen(intake, fetch, upload)
    _set(lanes, paused=True)
    echo(f"Paused: {', '.join(lanes)}. `lienworker resume` goes on.")


@click.command(epilog="Example: lienworker resume")
@_intake
@_fetch
@_upload
@_county
def resume(intake: bool, fetch: bool, upload: bool, county: str | None) -> None:
    """Resume all lanes, or those that are named, also where the Gateway paused them; or one county."""
    if county is not None:
        _refuse_lanes_beside_a_county(intake or fetch or upload)
        from lienworker.operator.hosts import resume_county

        named, n = _on_county(county, resume_county)
        echo(f"Resumed: {named}; {plural(n, 'page')} released.")
        return
    lanes = _chosen(intake, fetch, upload)
    _set(lanes, paused=False)
    echo(f"Resumed: {', '.join(lanes)}.")


def _refuse_lanes_beside_a_county(has_lanes: bool) -> None:
    if has_lanes:
        raise click.UsageError("--county goes without lanes: it is its fetches that are paused.")


def _on_county(words: str, act: Callable[[County], int]) -> tuple[County, int]:
    from lienworker.operator.hosts import county_named

    open_folder(load_settings())
    county = county_named(words)
    return county, act(county)
