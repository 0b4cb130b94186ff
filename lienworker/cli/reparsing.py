"""reparse: stored pages through today's parsers."""

from __future__ import annotations

import click

from lienworker.cli.common import did_you_mean, json_option, load_settings, open_folder, plural, since_option
from lienworker.cli.output import echo, print_json
from lienworker.cli.progress import Progress


@click.command(epilog="Example: lienworker reparse --platform qpublic --county Dixie --dry-run")
@click.option("--platform", help="Only pages of this platform.")
@click.option("--county", help="Only pages of this county.")
@since_option("pages fetched")
@click.option("--dry-run", is_flag=True, help="Say what would change, and touch nothing.")
@json_option
def reparse(platform: str | None, county: str | None, since_ms: int | None, dry_run: bool, as_json: bool) -> None:
    """Parse stored pages again with today's parsers. Nothing is fetched.

    Results that change are stored and go out again; the others stay as they are. Each reparse is a run, which
    `lienworker analyze --compare` sets against another. A county that the drift guard paused goes on if its pages
    are whole again.
    """
    from lienworker.db.clock import rfc3339
    from lienworker.errors import InputError
    from lienworker.operator.reparse import Reparse
    from lienworker.platforms import registry_with
    from lienworker.store.runs import PageFilter

    settings = load_settings()
    folder = open_folder(settings)
    registry = registry_with(settings.platforms_folder)
    if platform is not None and platform not in registry.names():
        raise InputError(f"There is no platform {platform!r}.{did_you_mean(platform, registry.names())}")
    since = rfc3339(since_ms) if since_ms is not None else None
    work = Reparse(folder, registry, PageFilter(platform, county, since), dry_run=dry_run)
    progress = Progress("pages")
    tally = work.work(lambda done, total: progress.show(done, total, 0))
    progress.close()
    if as_json:
        print_json({"run": work.run_id, **tally.counts(), "healed": tally.healed, "dry_run": dry_run})
        return
    if not tally.pages:
        echo("No stored page fits: there is nothing to parse again.")
        return
    name = "Dry run: nothing was touched" if work.run_id is None else f"Run {work.run_id}"
    would = " would change" if dry_run else " changed"
    echo(
        f"{name}. {plural(tally.pages, 'page')}: {tally.changed:,}{would}, {tally.unchanged:,} as before,"
        f" {tally.failed:,} without a record."
    )
    for place in tally.healed:
        echo(f"{place} goes on: its pages are whole again.")
