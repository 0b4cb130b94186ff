"""harvest and harvests: whole counties from one source, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import (
    json_option,
    list_options,
    load_settings,
    make_folder,
    open_folder,
    print_rows,
    print_total,
    warn_of_unknown_settings,
)
from lienworker.cli.output import echo, print_json

if TYPE_CHECKING:
    from lienworker.operator.begin_harvest import Prospect, Wish

_HARVESTS = (
    "id",
    "status",
    "state",
    "county",
    "read",
    "announced",
    "added",
    "refreshed",
    "unchanged",
    "rejected",
    "url",
)


@click.command(
    epilog="Example: lienworker harvest https://gis.example/arcgis/rest/services/Land/FeatureServer/0 --state FL"
)
@click.argument("source")
@click.option("--state", required=True, help="Of all its parcels, such as FL.")
@click.option("--county", help="Of all its parcels, unless a column says it.")
@click.option("--where", default="", help="Only rows that this condition holds for, in the source's own words.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many rows.")
@click.option("--page-size", default=2_000, show_default=True, type=click.IntRange(1, 2_000), help="Rows in a page.")
@click.option("--map", "maps", multiple=True, metavar="FIELD=COLUMN", help="Such as parcel_id=PIN_NO; repeat.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What opens the source, in a file.",
)
@click.option("--encoding", help="Of a file (default: UTF-8).")
@click.option("--dry-run", is_flag=True, help="Show the mapping and ten parcels as they would be, and store nothing.")
def harvest(dry_run: bool, **options: Any) -> None:
    """Read all parcels of SOURCE, page by page: an ArcGIS layer, a Socrata resource, or a roll in a CSV file.

    The source is asked what it is, and which column is taken for what is shown. Then the stack reads it: a running one
    at once, else the next. `lienworker harvests list` shows how far it is.
    """
    from lienworker.operator.begin_harvest import begin, look_at

    settings = load_settings()
    warn_of_unknown_settings()
    wish = _wish_of(options)
    if not dry_run:
        make_folder(settings)
    prospect, parcels = look_at(settings, wish, dry_run=dry_run)
    _show_mapping(prospect)
    if dry_run:
        print_json(parcels)
        echo("Dry run: nothing was stored.", err=True)
        return
    number = begin(settings, prospect, wish)
    echo(f"Harvest {number} begins: {_expected(prospect)}.", err=True)
    echo("`lienworker up` reads it, `lienworker harvests list` shows how far it is.", err=True)


def _wish_of(options: dict[str, Any]) -> Wish:
    from lienworker.errors import InputError
    from lienworker.intake.fields import check_county, check_state, parse_choice
    from lienworker.intake.rows import BadRowError
    from lienworker.operator.begin_harvest import Wish, token_in

    try:
        state = check_state(options["state"])
        county = check_county(options["county"]) if options["county"] else ""
    except BadRowError as problem:
        raise InputError(f"{problem.detail}.") from None
    file = options["token_file"]
    return Wish(
        source=options["source"],
        state=state,
        county=county,
        where=options["where"],
        limit=options["limit"],
        page_size=options["page_size"],
        chosen=tuple(map(parse_choice, options["maps"])),
        token=token_in(file) if file else None,
        encoding=options["encoding"],
    )


def _show_mapping(prospect: Prospect) -> None:
    """Say which column is taken for what."""
    taken: dict[str, list[str]] = {}
    for name, column in prospect.uses.described():
        taken.setdefault(name, []).append(column)
    words = ", ".join(f"{name} = {' + '.join(columns)}" for name, columns in taken.items())
    echo(f"Columns: {words}", err=True)
    if rest := prospect.uses.rest:
        echo(f"Kept under fields: {', '.join(rest)}", err=True)


def _expected(prospect: Prospect) -> str:
    expected = prospect.plan.expected
    return "its rows are counted as they are read" if expected is None else f"{expected:,} parcels are announced"


@click.group(epilog="Example: lienworker harvests list")
def harvests() -> None:
    """Look at the sources that are harvested."""


@harvests.command("list", epilog="Example: lienworker harvests list --limit 10")
@list_options
@json_option
def list_(limit: int, reverse: bool, as_json: bool) -> None:
    """List harvests, newest first: how far each is, what became of its rows, and what a person should know."""
    from lienworker.store.harvests import count_harvests, list_harvests

    open_folder(load_settings())
    rows = list_harvests(limit, oldest_first=reverse)
    print_rows(rows, _HARVESTS, as_json=as_json, nothing="No harvests.")
    if as_json:
        return
    print_total(len(rows), limit, "harvest", count_harvests)
    for row in rows:
        for note in row["notes"]:
            echo(f"Harvest {row['id']}: {note}")
        if row["status"] == "failed":
            echo(
                f"Harvest {row['id']} stopped: {row['last_error']} `lienworker tasks retry {row['page_task']}` goes on."
            )
