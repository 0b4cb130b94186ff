"""analyze: what was collected, and what a change of parsers changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lienworker.cli.common import (
    json_option,
    load_settings,
    open_folder,
    print_table,
    refuse_unknown_platform,
    shown,
    since_option,
)
from lienworker.cli.output import echo, print_json
from lienworker.cli.progress import Progress
from lienworker.text_safety import plural


@click.command(epilog="Example: lienworker analyze --compare 3 4 --html report.html")
@click.argument("place", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--compare", nargs=2, type=int, metavar="RUN_A RUN_B", help="Set two runs of `reparse` side by side.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with charts there.")
@json_option
def analyze(place: Path | None, compare: tuple[int, int] | None, html: Path | None, as_json: bool) -> None:
    """Say what was collected: counts, failures by reason, field fill rates, timings.

    PLACE is a data folder (the current one if it is not given), a folder of result files such as data/pending, or an
    export (.csv, .json, .jsonl, also .gz). --html and --compare need a data folder; the page needs no network.
    """
    if place and not (place / "lienworker.db").is_file():
        _analyze_files(place, as_json, needs_folder=bool(compare or html))
        return
    _open(place)
    if compare:
        _compare(compare, html, as_json)
        return
    if html:
        from lienworker.queries.html_report import analysis_page

        _write(html, analysis_page())
    if as_json or not html:
        from lienworker.queries.analysis import analyze as figures

        facts = figures()
        print_json(facts) if as_json else _print_analysis(facts)


def _analyze_files(place: Path, as_json: bool, *, needs_folder: bool) -> None:
    from lienworker.errors import InputError
    from lienworker.queries.analysis import analyze_results
    from lienworker.queries.result_files import read_results

    if needs_folder:
        raise InputError(f"{place} is not a data folder (no lienworker.db is in it): --html and --compare need one.")
    facts = analyze_results(read_results(place))
    print_json(facts) if as_json else _print_analysis(facts)


def _open(folder: Path | None) -> None:
    settings = load_settings()
    open_folder(replace(settings, data_dir=folder.absolute()) if folder else settings)


def _write(path: Path, text: str) -> None:
    from lienworker.db.database import storable
    from lienworker.errors import InputError
    from lienworker.store.stale_files import users_file

    try:
        with users_file(path) as out:
            out.write(storable(text).encode())
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror}.") from None
    echo(f"Written: {path}", err=True)


def _compare(chosen: tuple[int, int], html: Path | None, as_json: bool) -> None:
    from lienworker.queries.comparison import compare
    from lienworker.queries.html_report import comparison_page

    found = compare(*chosen)
    if html:
        _write(html, comparison_page(found))
    if as_json:
        print_json(found)
    elif not html:
        _print_comparison(found)


def _print_comparison(found: dict[str, Any]) -> None:
    echo(
        f"{found['pages']:,} pages in both runs, {found['same']:,} of them the same;"
        f" {found['only_a']:,} only in run {found['a']['id']}, {found['only_b']:,} only in run {found['b']['id']}."
    )
    records = found["records"]
    echo(f"Records: {records['gained']:,} gained, {records['lost']:,} lost.")
    if not found["fields"]:
        return
    echo()
    columns = ("platform", "field", "gained", "lost", "changed")
    print_table(columns, [[item[name] for name in columns] for item in found["fields"]])
    for item in found["fields"]:
        echo(f"\n{item['platform']}: {item['field']}")
        for sample in item["samples"]:
            before, after = shown(sample["before"]), shown(sample["after"])
            echo(f"  {sample['kind']:<8} {shown(sample['parcel_id'])}: {before} -> {after}")


def _print_analysis(facts: dict[str, Any]) -> None:
    echo("Tasks: " + ", ".join(f"{n:,} {status}" for status, n in facts["tasks"].items()))
    for failure in facts["failures"]:
        echo(f"  {failure['n']:>8,}  {failure['reason']}: {(failure['sample'] or '')[:100]}")
    columns = ("platform", "state", "county", "tasks", "completed", "failed")
    echo("\nBy county:")
    print_table(columns, [[row[name] for name in columns] for row in facts["counties"][:30]])
    for platform, fields in facts["fields"].items():
        echo(f"\nFields of {platform} (share of results that have them):")
        for name, share in fields.items():
            echo(f"  {share:>6.1%}  {name}")
    echo("\nTimings:")
    for name, spread in facts["timings"].items():
        if spread:
            echo(f"  {name:<11} " + "  ".join(f"{key} {value:,}" for key, value in spread.items()))


# reparse: stored pages through today's parsers.


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
    from lienworker.operator.reparse import Reparse
    from lienworker.platforms import registry_with
    from lienworker.store.runs import PageFilter

    settings = load_settings()
    registry = registry_with(settings.platforms_folder)
    refuse_unknown_platform(registry, platform)
    folder = open_folder(settings)
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
