"""platforms try: walk a flow once, step by step, without storing anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import json_option, load_settings, shown, with_options
from lienworker.cli.output import echo, print_json

if TYPE_CHECKING:
    from lienworker.operator.flow_trace import FlowTrace
    from lienworker.platforms import Platform, Target
    from lienworker.settings import Settings

#: Words of a target that have a field of their own; all others are its extras.
_FIELDS = ("state", "county", "parcel_id", "url")
_LONGEST_LINE = 500
trace_option = click.option(
    "--trace", "in_full", is_flag=True, help="Show what each step sends, captures and keeps; save the page that failed."
)
save_option = click.option(
    "--save-to",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="With --trace: the folder for the page at the step that failed; here.",
)


@click.command("try", epilog="Example: lienworker platforms try sunny.toml --target parcel_id=00-12-003 --trace")
@click.argument("source", metavar="FLOW")
@click.option("--target", "words", multiple=True, metavar="NAME=VALUE", help="What the flow is told of the parcel.")
@with_options(trace_option, save_option)
@json_option
def try_(source: str, words: tuple[str, ...], in_full: bool, save_to: Path, as_json: bool) -> None:
    """Walk a flow once and print its record, each step as it goes. Nothing is stored.

    FLOW is a definition (a TOML or YAML file) or the name of a platform. Exit 1 if there is no record.
    """
    from lienworker.operator.flow_trace import FlowTrace
    from lienworker.operator.scrape_now import needs_of
    from lienworker.operator.try_flow import try_flow

    settings = load_settings()
    platform = _platform(settings, source)
    target = target_of(words, platform.name)
    flow = platform.flow_for(target)
    if flow is None:
        raise click.UsageError(f"{platform.name} has no flow: one GET reaches its pages (lienworker scrape URL).")
    if missing := needs_of(platform, target):
        raise click.UsageError(f"The flow needs {', '.join(missing)} as well: --target {missing[0]}=...")
    trace = FlowTrace(flow, tell, in_full=in_full)
    delay = settings.host_delay if platform.delay is None else max(platform.delay, settings.host_delay)
    tried = try_flow(settings, flow, target, delay, trace)
    if tried.problem:
        explain_failure(trace, tried.problem, save_to if in_full else None, platform.name)
        sys.exit(1)
    _print_record(platform, tried.parts, target, as_json=as_json)


def tell(line: str) -> None:
    """Show one line of a trace; what comes from a site cannot move the cursor."""
    echo(shown(line, _LONGEST_LINE), err=True)


def explain_failure(trace: FlowTrace, problem: str, save_to: Path | None, name: str) -> None:
    tell(f"No record: {trace.without_secrets(problem)}")
    if save_to is not None and (place := trace.save(save_to, name)):
        echo(f"The page at {trace.label} is in {place}", err=True)


def target_of(words: tuple[str, ...], platform: str | None) -> Target:
    """Return the target that `NAME=VALUE` words describe."""
    from lienworker.platforms import Target

    said: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"{word!r} is not NAME=VALUE.", param_hint="--target")
        said[name] = value
    known = {name: said.pop(name, None) for name in _FIELDS}
    return Target(platform=platform, **known, extra=said)


def _platform(settings: Settings, source: str) -> Platform:
    from lienworker.errors import InputError, PageError
    from lienworker.platforms import registry_with
    from lienworker.platforms.catalog.folder import load_file

    try:
        if Path(source).is_file():
            return load_file(Path(source))
        return registry_with(settings.platforms_folder).get(source)
    except ValueError as problem:
        raise InputError(f"{source} cannot be used: {problem}") from None
    except PageError as problem:
        raise InputError(f"{source!r} is no file, and {problem.detail}") from None


def _print_record(platform: Platform, parts: dict[str, Any], target: Target, *, as_json: bool) -> None:
    from lienworker.cli.platforms import print_record
    from lienworker.errors import PageError
    from lienworker.platforms.core.base import in_order
    from lienworker.platforms.core.clean import compact

    try:
        record = in_order(compact(platform.parse_parts(parts, target)))
    except PageError as problem:
        echo(f"No record: {problem.reason}: {problem.detail}.", err=True)
        sys.exit(1)
    if as_json:
        print_json({"platform": platform.name, "parts": list(parts), "record": record})
        return
    echo(f"{platform.name}: {', '.join(parts)}")
    print_record(record)
