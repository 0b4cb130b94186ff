"""import: files of parcels into the data folder."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lienworker.cli.common import (
    Deadline,
    load_settings,
    make_folder,
    refuse_unknown_platform,
    warn_of_unknown_settings,
)
from lienworker.cli.output import echo
from lienworker.text_safety import plural

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder
    from lienworker.intake.rows import Reject
    from lienworker.settings import Settings
    from lienworker.steps.import_file import How, Importer, Tally
    from lienworker.steps.import_pages import PageImporter
    from lienworker.store.tasks import NewTask

F = TypeVar("F", bound=Callable[..., Any])
_SHOWN_REJECTS = 10
_SHOWN_ROWS = 3
_SHOWN_SOURCES = 10

_OPTIONS = [
    click.option("--platform", help="Platform of rows that do not name one."),
    click.option("--state", help="State of rows that do not name one."),
    click.option("--county", help="County of rows that do not name one."),
    click.option("--queue", type=click.Choice(["urgent", "default"]), help="Queue of rows that do not name one."),
    click.option("--priority", type=click.IntRange(1, 4), metavar="1-4", help="Priority of rows without one."),
    click.option("--format", type=click.Choice(["csv", "json", "jsonl", "txt"]), help="Format, not by name."),
    click.option("--encoding", help="Of the text (default: UTF-8)."),
    click.option("--sheet", help="Of a workbook, if it has several lists."),
    click.option("--header-row", type=click.IntRange(1, 1000), metavar="ROW", help="Row of the header."),
    click.option("--batch-size", default=100, show_default=True, type=click.IntRange(1, 100_000), help="Per commit."),
    click.option("--map", "maps", multiple=True, metavar="FIELD=COLUMN", help='Such as parcel_id="Parcel ID"; repeat.'),
    click.option("--refresh", is_flag=True, help="Scrape known parcels again."),
    click.option("--by", "due_by", type=Deadline(), help='Deadline, such as "2026-06-03 10:00 UTC".'),
    click.option("--auction", help="Name of what the deadline is for."),
    click.option("--drop-after", is_flag=True, help="Drop what is not fetched by the deadline."),
    click.option("--strict", is_flag=True, help="Stop at the first bad row."),
]


def intake_options(function: F) -> F:
    """The options of every command that reads a file of parcels."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def how_of(options: dict[str, Any], settings: Settings) -> How:
    from lienworker.intake import Defaults, Layout
    from lienworker.intake.fields import check_fields, parse_choice
    from lienworker.steps.import_file import How

    defaults = Defaults(*(options[name] for name in ("platform", "state", "county", "queue", "priority")))
    chosen = check_fields(dict(map(parse_choice, options["maps"])))
    layout = Layout(*(options[name] for name in ("format", "encoding", "sheet", "header_row")))
    due_by, drop_after = options["due_by"], options["drop_after"]
    if (options["auction"] or drop_after) and due_by is None:
        raise click.UsageError("--auction and --drop-after belong to --by.")
    drop_after = drop_after or settings.past_deadline == "expire"
    reading = (defaults, layout, options["batch_size"], options["refresh"], options["strict"], chosen)
    return How(*reading, due_by, options["auction"], drop_after)


@click.command("import", epilog="Example: lienworker import parcels.csv --queue urgent --dry-run")
@click.argument("file")
@intake_options
@click.option("--dry-run", is_flag=True, help="Read and check, but touch nothing.")
def import_(file: str, dry_run: bool, **options: Any) -> None:
    """Import parcels from FILE: CSV, Excel, ODS, PDF, JSON, JSONL or TXT, also zipped; - is standard input. Or pages
    that you saved: HAR, WARC, MHTML, HTML, or a folder of them.

    A row needs a url, or platform, state, county and parcel_id; the last three are enough for a county that `lienworker
    sources` knows. Bad rows go to a rejects file with line and reason and
    do not stop the rest. The same file again adds nothing. Exit 1 if rows were rejected.
    """
    from lienworker.intake.saved import is_saved

    settings = load_settings()
    warn_of_unknown_settings()
    how = how_of(options, settings)
    try_out = _try_pages if is_saved(file) else _try_out
    tally = try_out(settings, file, how) if dry_run else import_file(settings, file, how).tally
    sys.exit(1 if tally.rejected else 0)


@click.group(epilog="Example: lienworker bulk import parcels.csv")
def bulk() -> None:
    """The same as `lienworker import`, under its longer name."""


bulk.add_command(import_)


def import_file(settings: Settings, file: str, how: How, stop: object = None) -> Importer | PageImporter:
    """Import a list, or saved pages, with a word about the outcome; `stop` ends it between two transactions."""
    from lienworker.intake import RejectsFile
    from lienworker.maintenance.disk_limits import watch_import
    from lienworker.steps.import_file import Importer

    folder = make_folder(settings)
    check_room = watch_import(folder, settings)
    importer = _page_importer(settings, folder, file, how) or _importer(settings, file, how)
    rejects = RejectsFile.of_import(folder.rejects, importer.name)

    def look(_tally: Tally) -> None:
        if stop:
            raise click.Abort
        check_room()

    importer.run(rejects, look)
    if isinstance(importer, Importer):
        _say_sources(importer)
    echo(importer.tally.in_words(importer.unit), err=True)
    if rejects.count:
        echo(rejects.in_words(), err=True)
    _warn(importer)
    return importer


def _say_sources(importer: Importer) -> None:
    """Which known source was taken for rows that named only their county and their parcel."""
    for words, n in importer.looked_up.most_common(_SHOWN_SOURCES):
        echo(f"Looked up {plural(n, 'row')} of {words}", err=True)
    if (left := len(importer.looked_up) - _SHOWN_SOURCES) > 0:
        echo(f"and others in {plural(left, 'more source')}; `lienworker sources list` says which.", err=True)


def _warn(importer: Importer | PageImporter) -> None:
    """Say what cannot be delivered as it is, and the two ways to put it right."""
    if words := importer.tally.warning():
        echo(f"Warning: {words}", err=True)
        again = f"`lienworker tasks fill --import {importer.import_id} --state STATE --county COUNTY`"
        echo(f"Name them with --state and --county (the same import again does it), or later: {again}.", err=True)


def _try_pages(settings: Settings, file: str, how: How) -> Tally:
    """Count the saved pages of a file, and show what would be rejected and the first of the others."""
    from pathlib import Path

    from lienworker.intake.rows import Reject
    from lienworker.intake.saved import read_saved
    from lienworker.platforms import registry_with
    from lienworker.steps.import_file import Tally
    from lienworker.steps.import_pages import task_of

    registry = registry_with(settings.platforms_folder)
    refuse_unknown_platform(registry, how.defaults.platform)
    tally = Tally()
    for item in read_saved(Path(file), int(settings.max_page_mb * 1_000_000)):
        tally.rows += 1
        if isinstance(item, Reject):
            tally.rejected += 1
            if tally.rejected <= _SHOWN_REJECTS:
                echo(f"page {item.line}: {item.reason}: {item.detail}", err=True)
        elif tally.rows - tally.rejected <= _SHOWN_ROWS:
            echo(f"Page: {_shown(task_of(registry, item, how.defaults))}", err=True)
    usable = f"{plural(tally.rows, 'page')}, {tally.rejected:,} of them rejected"
    echo(f"{usable} (dry run: nothing was touched)", err=True)
    return tally


def _try_out(settings: Settings, file: str, how: How) -> Tally:
    from lienworker.data_folder import DataFolder
    from lienworker.db.database import connect
    from lienworker.hostnames import host_of
    from lienworker.outbox.rows import rank_of
    from lienworker.store.tasks import NewTask, known_ids
    from lienworker.trust import refuse_untrusted

    database = DataFolder(settings.data_dir).database
    is_known: Callable[[list[str]], set[str]] = lambda _ids: set()  # noqa: E731
    refuse_untrusted(settings.data_dir)
    if database.exists() and database.stat().st_size:
        connect(database)
        is_known = known_ids
    rejected, rows = count(), count()
    new: Counter[tuple[str, int]] = Counter()

    def note(item: NewTask | Reject) -> None:
        if isinstance(item, NewTask):
            if how.refresh or not is_known([item.task_id]):
                new[host_of(item.url), rank_of(item.queue, item.priority)] += 1
            if next(rows) < _SHOWN_ROWS:
                echo(f"Row: {_shown(item)}", err=True)
        elif next(rejected) < _SHOWN_REJECTS:
            echo(f"line {item.line}: {item.reason}: {item.detail}", err=True)

    _show_mapping(file, how)
    importer = _importer(settings, file, how)
    tally = importer.try_out(note, is_known)
    _say_sources(importer)
    echo(tally.in_words() + " (dry run: nothing was touched)", err=True)
    if words := tally.warning():
        echo(f"Warning: {words} Name them with --state and --county.", err=True)
    _say_how_long(settings, new, importer, is_open=is_known is known_ids)
    return tally


def _say_how_long(settings: Settings, new: Counter[tuple[str, int]], importer: Importer, *, is_open: bool) -> None:
    """Say how long the rows would take, at the present delays and behind what waits already."""
    from lienworker.queries.forecast.facts import Work, forecast_with
    from lienworker.queries.forecast.words import before_start

    work = [Work(host, rank, n, importer.politeness_of(host)) for (host, rank), n in new.items()]
    if work:
        echo(before_start(forecast_with(settings, work, is_open=is_open), sum(new.values())), err=True)


def _shown(task: NewTask) -> str:
    """A row as it would be imported."""
    facts = {"platform": task.platform, "state": task.state, "county": task.county, "parcel_id": task.parcel_id}
    facts |= {"url": task.url, **task.target}
    return ", ".join(f"{name} = {value!r}" for name, value in facts.items() if value)


def _show_mapping(file: str, how: How) -> None:
    """Which column is taken for what. Standard input can be read only once, so it is not looked at before."""
    from lienworker.intake.fields import resolve_mapping
    from lienworker.intake.read import header_of

    header = None if file == "-" else header_of(file, how.layout, how.mapping)
    if header is None:
        return
    taken = resolve_mapping(header, how.mapping, file)
    echo("Columns: " + (", ".join(f"{name} = {column!r}" for name, column in taken.items()) or "none"), err=True)
    rest = [column for column in header if column not in taken.values()]
    if rest:
        echo(f"Kept with the task: {', '.join(map(repr, rest))}", err=True)


def _importer(settings: Settings, file: str, how: How) -> Importer:
    from lienworker.data_folder import DataFolder
    from lienworker.platforms import registry_with
    from lienworker.steps.import_file import Importer
    from lienworker.steps.parcel_sources import KnownSources

    registry = registry_with(settings.platforms_folder)
    refuse_unknown_platform(registry, how.defaults.platform)
    sources = KnownSources(DataFolder(settings.data_dir), registry)
    return Importer(registry, file, "standard input" if file == "-" else file, how, sources)


def _page_importer(settings: Settings, folder: DataFolder, file: str, how: How) -> PageImporter | None:
    """The importer of saved pages; None where the file is a list of parcels."""
    from pathlib import Path

    from lienworker.intake.saved import is_saved
    from lienworker.platforms import registry_with
    from lienworker.steps.import_pages import PageImporter

    if not is_saved(file):
        return None
    registry = registry_with(settings.platforms_folder)
    refuse_unknown_platform(registry, how.defaults.platform)
    return PageImporter(folder, registry, Path(file), how, int(settings.max_page_mb * 1_000_000))
