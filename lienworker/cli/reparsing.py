"""reparse: stored pages through today's parsers."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from lienworker.cli.common import json_option, load_settings, open_folder, plural, print_json
from lienworker.cli.progress import Progress


def since_option(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """A day or a moment, as RFC 3339; a moment without a zone is UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no date; write it as 2026-01-31") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


@click.command(epilog="Example: lienworker reparse --platform qpublic --county Dixie --dry-run")
@click.option("--platform", help="Only pages of this platform.")
@click.option("--county", help="Only pages of this county.")
@click.option("--since", callback=since_option, help="Only pages fetched since this day, such as 2026-01-31.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and touch nothing.")
@json_option
def reparse(platform: str | None, county: str | None, since: str | None, dry_run: bool, as_json: bool) -> None:
    """Parse stored pages again with today's parsers. Nothing is fetched.

    Results that change are stored and go out again; the others stay as they are. Each reparse is a run, which
    `lienworker analyze --compare` sets against another. A county that the drift guard paused goes on if its pages
    are whole again.
    """
    from lienworker.actors.reparse import Reparse
    from lienworker.platforms import registry_with
    from lienworker.store.runs import PageFilter

    settings = load_settings()
    folder = open_folder(settings)
    work = Reparse(
        folder, registry_with(settings.platforms_folder), PageFilter(platform, county, since), dry_run=dry_run
    )
    progress = Progress("pages")
    tally = work.work(lambda done, total: progress.show(done, total, 0))
    progress.close()
    if as_json:
        print_json({"run": work.run_id, **tally.counts(), "healed": tally.healed, "dry_run": dry_run})
        return
    name = "Dry run: nothing was touched" if work.run_id is None else f"Run {work.run_id}"
    would = " would change" if dry_run else " changed"
    click.echo(
        f"{name}. {plural(tally.pages, 'page')}: {tally.changed:,}{would}, {tally.unchanged:,} as before,"
        f" {tally.failed:,} without a record."
    )
    for place in tally.healed:
        click.echo(f"{place} goes on: its pages are whole again.")
