"""pause and resume: by hand, for as long as wanted, through restarts."""

from __future__ import annotations

import click

from lienworker.cli.common import load_settings, open_folder
from lienworker.cli.output import echo

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


@click.command(epilog="Example: lienworker pause --fetch")
@_intake
@_fetch
@_upload
def pause(intake: bool, fetch: bool, upload: bool) -> None:
    """Pause all lanes, or those that are named. Lasts through restarts."""
    lanes = _chosen(intake, fetch, upload)
    _set(lanes, paused=True)
    echo(f"Paused: {', '.join(lanes)}. `lienworker resume` goes on.")


@click.command(epilog="Example: lienworker resume")
@_intake
@_fetch
@_upload
def resume(intake: bool, fetch: bool, upload: bool) -> None:
    """Resume all lanes, or those that are named, also where the Gateway paused them."""
    lanes = _chosen(intake, fetch, upload)
    _set(lanes, paused=False)
    echo(f"Resumed: {', '.join(lanes)}.")
