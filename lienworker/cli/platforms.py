"""platforms: which there are, what they make of a page, why, how well, and the beginning of a new one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lienworker.cli.common import did_you_mean, json_option, load_settings, print_rows, print_table, shown
from lienworker.cli.output import echo, print_json

if TYPE_CHECKING:
    from lienworker.platforms import Page, Platform, Registry, Target
    from lienworker.platforms.catalog.score import Score
    from lienworker.platforms.catalog.skeleton import Start

F = TypeVar("F", bound=Callable[..., Any])
_SHOWN_PAIRS = 40
_TARGET = [
    click.option("--platform", help="Which platform's parser to use; detected if not given."),
    click.option("--state", help="The state of the page's parcel."),
    click.option("--county", help="The county of the page's parcel, where it matters."),
]
_url_option = click.option("--url", help="Where a saved page came from; its platform is often told by that.")


def _target_options(function: F) -> F:
    for option in reversed(_TARGET):
        function = option(function)
    return function


@click.group(epilog="Example: lienworker platforms parse page.html --json")
def platforms() -> None:
    """County platforms: list them, try them on a page, write one."""


@platforms.command("list", epilog="Example: lienworker platforms list --json")
@json_option
def list_(as_json: bool) -> None:
    """List the platforms: ours, installed ones, and those of LIENWORKER_PLATFORMS."""
    registry = _registry()
    columns = ("name", "version", "delay", "concurrency", "evidence", "reach", "from")
    print_rows([_about(registry, name) for name in registry.names()], columns, as_json=as_json, nothing="None.")
    for words in registry.broken:
        echo(words, err=True)


def _registry() -> Registry:
    from lienworker.platforms import registry_with

    return registry_with(load_settings().platforms_folder)


def _about(registry: Registry, name: str) -> dict[str, Any]:
    from lienworker.errors import PageError
    from lienworker.platforms.catalog.registry import reach_of

    facts: dict[str, Any] = {"name": name, "from": registry.place_of(name)}
    try:
        platform = registry.get(name)
    except PageError as problem:
        return {**facts, "version": "BROKEN", "problem": problem.detail}
    asked = {"delay": platform.delay, "concurrency": platform.concurrency}
    return {**facts, "version": platform.version, **asked, "evidence": platform.evidence, "reach": reach_of(platform)}


@platforms.command(epilog="Example: lienworker platforms parse page.html --platform qpublic --json")
@click.argument("source", metavar="FILE_OR_URL")
@_url_option
@_target_options
@json_option
def parse(source: str, url: str | None, as_json: bool, **where: str | None) -> None:
    """Parse a page and print its record. Nothing is stored.

    A stored raw page (.gz) is as good as a saved one. Exit 1 if the page gives no record.
    """
    from lienworker.platforms.core.doubts import doubts_of

    registry = _registry()
    page, target = _load(source, url), _target(url or source, where)
    parsed = _parse(registry, page, target)
    doubts = doubts_of(parsed.record, date.today())
    if as_json:
        about = {"platform": parsed.platform, "version": parsed.version, "record": parsed.record}
        print_json({**about, "doubts": [doubt._asdict() for doubt in doubts]})
        return
    echo(f"{parsed.platform} (version {parsed.version})")
    print_record(parsed.record)
    for doubt in doubts:
        echo(f"{'doubt':>20}  {doubt.check}: {doubt.field}: {shown(doubt.detail)}")


def print_record(record: dict[str, Any]) -> None:
    for name, value in record.items():
        _print_value(name, value)


def _print_value(name: str, value: Any) -> None:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        echo(f"{name:>20}  {len(value)}:")
        for item in value[:_SHOWN_PAIRS]:
            flat = {key: part for key, part in item.items() if not isinstance(part, dict | list)}
            echo(" " * 22 + "  ".join(f"{key} {shown(part)}" for key, part in flat.items()))
    elif isinstance(value, dict):
        echo(f"{name:>20}  {len(value)}:")
        for key, part in list(value.items())[:_SHOWN_PAIRS]:
            echo(" " * 22 + f"{shown(key)}: {shown(part)}")
    else:
        echo(f"{name:>20}  {shown(value)}")


@platforms.command(epilog="Example: lienworker platforms explain page.html --field owner_name")
@click.argument("source", metavar="FILE_URL_OR_TASK")
@click.option("--field", help="Only this field, also where it was not found.")
@_url_option
@_target_options
@json_option
def explain(source: str, field: str | None, url: str | None, as_json: bool, **where: str | None) -> None:
    """Say which rule found each field of a page, what it saw, and where. A task stands for its stored page.

    Of a page that gives no record: why, and what each rule saw of it. Exit 1 then.
    """
    from dataclasses import asdict

    from lienworker.platforms.catalog.explain import explain as clues_of
    from lienworker.platforms.catalog.explain import unused
    from lienworker.platforms.catalog.provenance import names_of, origins_of

    page, target = _load_stored(source, url) or _load(source, url), _target(url or source, where)
    platform, record = _read(_registry(), page, target)
    _check_field(field, record)
    clues = [asdict(clue) for clue in clues_of(platform, page, target, record, field)]
    pairs = [] if field else unused(platform, page, target)
    rest = [{"label": pair.label, "value": pair.value} for pair in pairs]
    if as_json:
        origins = [origin._asdict() for origin in origins_of(page, record, names_of(platform))]
        wanted = [origin for origin in origins if field is None or re.match(rf"{field}\b", origin["field"])]
        print_json({"platform": platform.name, "clues": clues, "origins": wanted, "unused": rest})
    else:
        echo(f"{platform.name} (version {platform.version})\n")
        _print_clues(clues, rest)
    sys.exit(0 if record else 1)


def _read(registry: Registry, page: Page, target: Target) -> tuple[Platform, dict[str, Any]]:
    """The page's platform and its record; an empty one, after the reason was said, where there is none."""
    from lienworker.errors import PageError

    for part in page.parts.values():
        part.under_limits = True  # rules are asked about the page one by one, here; whoever waits can stop it
    try:
        parsed = registry.parse(page, target)
    except PageError as problem:
        echo(f"No record: {problem.reason}: {problem.detail}.", err=True)
    else:
        return registry.get(parsed.platform), parsed.record
    try:
        return registry.choose(page, target), {}
    except PageError:
        sys.exit(1)  # there is no such platform, as was said


def _check_field(field: str | None, record: dict[str, Any]) -> None:
    from lienworker.platforms.core.base import CANONICAL

    known = {*CANONICAL, *record}
    if field is not None and field not in known:
        raise click.BadParameter(f"there is no field {field!r}.{did_you_mean(field, known)}", param_hint="--field")


def _print_clues(clues: list[dict[str, Any]], rest: list[dict[str, Any]]) -> None:
    print_table(("field", "value", "rule", "saw", "where"), [list(clue.values()) for clue in clues])
    if rest:
        echo("\nLabels that became no field of their own:")
        print_table(("label", "value"), [list(pair.values()) for pair in rest[:_SHOWN_PAIRS]])


@platforms.command(epilog="Example: lienworker platforms score my-pages --bar 0.98")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--platform", help="Read every page as this platform does; detected if not given.")
@click.option(
    "--bar", type=click.FloatRange(0, 1), default=0.99, show_default=True, help="The least recall that is good enough."
)
@json_option
def score(folder: Path, platform: str | None, bar: float, as_json: bool) -> None:
    """Compare the records of saved pages with what a reader sees in them.

    FOLDER has an expected.json: a list of {"file": "page.html", "place": "FL / Dixie", "expected": {"owner": "..."}}.
    Exit 1 if fewer of the values are found than the bar asks for, or if one is wrong.
    """
    from lienworker.platforms.catalog.score import WRONG, read_cases
    from lienworker.platforms.catalog.score import score as score_of

    found = score_of(_registry(), read_cases(folder), date.today(), platform)
    if as_json:
        print_json(_score_facts(found))
    else:
        _print_score(found)
    sys.exit(0 if found.recall >= bar and not found.count(WRONG) else 1)


def _score_facts(found: Score) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        **_figures(found),
        "platforms": {name: _figures(part) for name, part in found.by_platform().items()},
        "fields": {name: _figures(part) for name, part in found.by_field().items()},
        "lost": [asdict(finding) for finding in found.lost()],
        "doubts": {file: [doubt._asdict() for doubt in doubts] for file, doubts in found.doubts.items()},
        "refused": found.refused,
    }


def _figures(found: Score) -> dict[str, Any]:
    from lienworker.platforms.catalog.score import MISSING, WRONG

    shares = {"recall": round(found.recall, 4), "named": round(found.named, 4)}
    return {**shares, "values": len(found.findings), "missing": found.count(MISSING), "wrong": found.count(WRONG)}


def _print_score(found: Score) -> None:
    for title, groups in (("platform", found.by_platform()), ("field", found.by_field())):
        rows = [[name, *_figures(part).values()] for name, part in groups.items()]
        print_table((title, *_figures(found)), rows)
        echo("")
    if lost := found.lost():
        rows = [[item.outcome, item.file, item.field, item.expected, item.shown] for item in lost]
        print_table(("outcome", "file", "field", "expected", "shown"), rows)
        echo("")
    for file, reason in found.refused.items():
        echo(f"No record: {file}: {reason}.")
    for file, doubts in found.doubts.items():
        echo(
            f"Doubtful: {file}: " + "; ".join(f"{doubt.check} {doubt.field}: {shown(doubt.detail)}" for doubt in doubts)
        )
    figures = _figures(found)
    echo(f"Recall {figures['recall']} of {figures['values']} values, {figures['wrong']} wrong.")


@platforms.command(epilog="Example: lienworker platforms new sunny --folder my-platforms")
@click.argument("name")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=".", help="Where to; here.")
@click.option("--from", "source", metavar="FILE_URL_OR_TASK", help="Begin with this page of one parcel.")
@_url_option
@click.option("--flow", is_flag=True, help="A definition with the steps to a site's pages, instead of a module.")
@click.option("--base-url", metavar="URL", help="With --flow: where the site is.")
def new(name: str, folder: Path, source: str | None, url: str | None, flow: bool, base_url: str | None) -> None:
    """Begin a platform: a module, a page that it reads, and the test that it has to pass.

    With --from the page is yours, and the module has selectors for what `generic` finds on it. Check them: they read
    this page, and another may look different. With --flow: a definition for a site that wants a form, a disclaimer or
    a log-in before it shows a parcel.
    """
    from lienworker.platforms.catalog.skeleton import blank_start, check_name, write_skeleton

    registry = _registry()
    check_name(name, registry.names())
    if base_url and not flow:
        raise click.UsageError("--base-url belongs to --flow.")
    if flow:
        _begin_flow(name, folder, base_url)
        return
    start = _start_from(registry, name, source, url) if source else blank_start(name)
    files = write_skeleton(name, folder, start)
    echo("Written: " + ", ".join(map(str, files)))
    if source:
        n = len([select for select in (*start.fields.values(), *start.tables.values()) if select])
        echo(f"Proposed: {n} selectors. Without one: {', '.join(start.left) or 'nothing that was found'}.")
        echo("The page is as the county sent it: put invented people in it before you share it.")
    echo(f"Fill in the selectors of {files[0].name} until `pytest {files[2]}` passes;")
    echo("then set LIENWORKER_PLATFORMS to the folder.")


def _begin_flow(name: str, folder: Path, base_url: str | None) -> None:
    from lienworker.intake.urls import checked_url
    from lienworker.platforms.catalog.skeleton import write_flow

    file = write_flow(name, folder, checked_url(base_url).rstrip("/") if base_url else None)
    echo(f"Written: {file}")
    echo(f"Change its steps until `lienworker platforms try {file} --target parcel_id=...` shows the parcel;")
    echo("then set LIENWORKER_PLATFORMS to the folder.")


def _start_from(registry: Registry, name: str, source: str, url: str | None) -> Start:
    from lienworker.errors import PageError
    from lienworker.platforms.catalog.proposal import propose
    from lienworker.platforms.catalog.registry import FALLBACK
    from lienworker.platforms.catalog.skeleton import start_from

    page = _load_stored(source, url) or _load(source, url)
    try:
        return start_from(name, page, propose(page, registry.get(FALLBACK)))
    except PageError as problem:
        echo(f"No record: {problem.reason}: {problem.detail}.", err=True)
        sys.exit(1)


@platforms.command(epilog="Example: lienworker platforms accept --county Dixie")
@click.option("--platform", help="Only where this platform is paused.")
@click.option("--county", help="Only this county.")
@click.option("--all", "everything", is_flag=True, help="All that are paused.")
def accept(platform: str | None, county: str | None, everything: bool) -> None:
    """Let counties go on that the drift guard paused: their pages are right as they are now.

    What was held is fetched and sent, and what is usual there is learned anew. After a mended parser use
    `lienworker reparse` instead.
    """
    from lienworker.cli.common import open_folder
    from lienworker.steps.drift import accept_places

    if not (platform or county or everything):
        raise click.UsageError("Say which: --platform, --county or --all.")
    open_folder(load_settings())
    accepted = accept_places(platform, county)
    echo("\n".join(f"{place} goes on." for place in accepted) or "Nothing of that is paused.")


def _target(source: str, where: dict[str, str | None]) -> Target:
    from lienworker.platforms import Target

    url = source if "://" in source else None
    return Target(platform=where["platform"], state=where["state"], county=where["county"], url=url)


def _parse(registry: Registry, page: Page, target: Target) -> Any:
    from lienworker.errors import PageError
    from lienworker.platforms.catalog.guarded import parse_guarded

    try:
        return parse_guarded(registry, page, target)
    except PageError as problem:
        echo(f"No record: {problem.reason}: {problem.detail}.", err=True)
        sys.exit(1)


def _load(source: str, url: str | None) -> Page:
    from lienworker.operator.preview import page_from_file, page_from_url

    if "://" in source:
        return page_from_url(load_settings(), source)
    return page_from_file(Path(source), url or "")


def _load_stored(name: str, url: str | None) -> Page | None:
    """The stored page of the task that goes by this name, with its other parts: by id, parcel id or address."""
    from lienworker.cli.common import named_task, open_folder
    from lienworker.data_folder import DataFolder
    from lienworker.queries.lists import tasks_called
    from lienworker.steps.stored_page import stored_parts
    from lienworker.store.pages import latest_page, pages_of

    settings = load_settings()
    if Path(name).exists() or not DataFolder(settings.data_dir).database.exists():
        return None
    folder = open_folder(settings)
    stored = latest_page(named_task(name)) if tasks_called(name) else None
    if stored is None:
        return None
    page = stored_parts(folder.root, pages_of(stored.task_id, stored.generation))
    page.url = url or page.url
    return page
