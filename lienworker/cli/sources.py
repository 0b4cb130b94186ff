"""sources: where parcels are to be found, by state and county."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import json_option, load_settings, make_folder, open_folder, print_rows, print_total, shown
from lienworker.cli.output import echo, print_json
from lienworker.text_safety import plural

if TYPE_CHECKING:
    from lienworker.steps.parcel_sources import KnownSource, KnownSources
    from lienworker.store.parcel_sources import ParcelSource, Tried

_SHOWN_REJECTS = 10
_LONGEST_LINE = 500
_COLUMNS = ("state", "county", "fips", "kind", "platform", "url", "origin", "tried")


@click.group(epilog='Example: lienworker sources show "FL Dixie"')
def sources() -> None:
    """Where to look for parcels, by state and county."""


@sources.command(epilog="Example: lienworker sources add openaddresses-master.zip")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def add(path: Path) -> None:
    """Learn sources from PATH: a clone or a zip archive of OpenAddresses, one of its files, or a TOML file of yours.

    Exit 1 if something in it could not be used.
    """
    from lienworker.intake.parcel_sources import read_sources, tells_everything
    from lienworker.intake.rows import Reject
    from lienworker.store.parcel_sources import ParcelSource, add_sources

    folder = make_folder(load_settings())
    told = list(read_sources(path))
    rejects = [item for item in told if isinstance(item, Reject)]
    found = [item for item in told if isinstance(item, ParcelSource)]
    added = add_sources(folder, found, whole=tells_everything(path))
    for reject in rejects[:_SHOWN_REJECTS]:
        echo(f"{shown(reject.raw, _LONGEST_LINE)}: {shown(reject.detail, _LONGEST_LINE)}", err=True)
    counties = len({(source.state, source.county) for source in found if source.county})
    origins = ", ".join(f"{n:,} from {origin}" for origin, n in added.items()) or "no sources"
    left_out = f"; {len(rejects):,} left out" if rejects else ""
    echo(f"{origins}: {plural(counties, 'place')} in {len({source.state for source in found})} states{left_out}.")
    sys.exit(1 if rejects or not found else 0)


kind_option = click.option("--kind", type=click.Choice(["layer", "page", "auction", "file"]), help="Only these.")


@sources.command("list", epilog="Example: lienworker sources list --state FL")
@click.option("--state", help="Only this state.")
@kind_option
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@json_option
def list_(state: str | None, kind: str | None, limit: int, as_json: bool) -> None:
    """List known sources, the best first within each county."""
    known = [
        each
        for each in _known().all()
        if (state is None or each.source.state == state.upper()) and kind in (None, each.source.kind)
    ]
    rows = [_row(each) for each in known[:limit]]
    print_rows(
        rows, _COLUMNS, as_json=as_json, nothing="No sources are known; `lienworker sources add PATH` adds some."
    )
    if not as_json:
        print_total(len(rows), limit, "source", lambda: len(known))


@sources.command(epilog='Example: lienworker sources show "FL Dixie"')
@click.argument("place")
@json_option
def show(place: str, as_json: bool) -> None:
    """Show every known way to the parcels of PLACE ("FL Dixie", or its FIPS code), and which one is taken."""
    state, county = _place(place)
    here = _known()
    found = here.at(state, county)
    if as_json:
        taken = here.choose(state, county).source if county else None
        print_json({"taken": taken.url if taken else None, "sources": [_row(each) for each in found]})
        return
    if not found:
        raise click.ClickException(f"No sources are known for {place}; `lienworker sources add PATH` adds some.")
    for each in found:
        _print_source(each)
    if county:
        choice = here.choose(state, county)
        echo(f"Taken: {choice.words}" if choice.source else f"None is taken. {choice.words}.")


@sources.command(epilog='Example: lienworker sources check "FL Dixie"')
@click.argument("places", metavar="[PLACE]...", nargs=-1)
@kind_option
@click.option("--untried", is_flag=True, help="Only those that were never tried here.")
@click.option("--limit", type=click.IntRange(1), help="How many at most.")
def check(places: tuple[str, ...], kind: str | None, untried: bool, limit: int | None) -> None:
    """Ask each known source of PLACE, or all of them, one thing, politely, and store how it went.

    A layer is asked what it is: its column of parcel ids is learned. Exit 1 if one does not work.
    """
    from lienworker.operator.check_sources import check_sources
    from lienworker.platforms import registry_with

    settings = load_settings()
    folder = open_folder(settings)
    known = _known()
    asked = [each for place in places for each in known.at(*_place(place))] if places else known.all()
    wanted = [
        each.source for each in asked if kind in (None, each.source.kind) and not (untried and each.tried is not None)
    ][:limit]
    outcomes: list[bool] = []

    def note(source: ParcelSource, tried: Tried) -> None:
        outcomes.append(tried.worked)
        said = "works" if tried.worked else "does not work"
        echo(f"{shown(source.place)}: {source.kind} {shown(source.url, 120)} {said}: {shown(tried.detail, 200)}")

    check_sources(settings, folder, registry_with(settings.platforms_folder), wanted, note)
    echo(f"{plural(len(outcomes), 'source')} asked, {sum(outcomes):,} work.", err=True)
    sys.exit(0 if all(outcomes) else 1)


def _known() -> KnownSources:
    from lienworker.data_folder import DataFolder
    from lienworker.platforms import registry_with
    from lienworker.steps.parcel_sources import KnownSources

    settings = load_settings()
    return KnownSources(DataFolder(settings.data_dir), registry_with(settings.platforms_folder))


def _place(text: str) -> tuple[str, str | None]:
    from lienworker.places import split_place

    place = split_place(text)
    if place is None:
        raise click.BadParameter(f'{text!r} is no place; write "FL Dixie", or the five digits of its FIPS code.')
    return place


def _row(known: KnownSource) -> dict[str, Any]:
    """A source with everything that is known of it; the settings are those that it would be asked by."""
    from dataclasses import asdict

    tried = known.tried
    return {
        **asdict(known.source),
        "settings": dict(known.settings),
        "tried": f"{'works' if tried.worked else 'failed'} {tried.at[:10]}" if tried else None,
        "outcome": asdict(tried) if tried else None,
    }


def _print_source(known: KnownSource) -> None:
    from lienworker.steps.parcel_sources import how_to_read

    source = known.source
    facts = {
        "for": source.city or ("" if source.county else "the whole state"),
        "FIPS": source.fips,
        "platform": source.platform,
        "settings": ", ".join(f"{name} = {value}" for name, value in known.settings.items() if value != source.url),
        "known from": f"{source.origin}: {source.reference}",
        "website": source.website,
        "license": source.license,
        "doubt": source.doubt,
        "to read it": how_to_read(source) if source.kind == "file" else "",
        "tried": known.history,
    }
    echo(f"{source.kind} {shown(source.url, _LONGEST_LINE)}")
    for name, value in facts.items():
        if value:
            echo(f"  {name}: {shown(value, _LONGEST_LINE)}")
