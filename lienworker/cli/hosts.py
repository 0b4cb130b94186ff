"""hosts: what an operator says of the sites that are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lienworker.cli.common import json_option, load_settings, open_folder, print_table
from lienworker.cli.output import confirm, echo, print_json
from lienworker.text_safety import plural


@click.group(epilog="Example: lienworker hosts list")
def hosts() -> None:
    """Look at the sites that are asked, and say how often, or not at all."""


@hosts.command("list", epilog="Example: lienworker hosts list --all")
@click.option("--all", "every", is_flag=True, help="Also hosts that nothing waits for.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@json_option
def list_hosts(every: bool, limit: int, as_json: bool) -> None:
    """List hosts with work, those with problems first; each delay with whose word it is."""
    from lienworker.queries.hosts import HEADS, in_table
    from lienworker.queries.hosts import hosts as all_hosts

    settings = load_settings()
    open_folder(settings)
    rows = all_hosts(settings, limit, busy=not every)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(HEADS, in_table(rows))
    else:
        echo("No such hosts." if every else "Nothing waits for any host. --all shows those that are known.")


@hosts.command("show", epilog="Example: lienworker hosts show county.example")
@click.argument("host")
@json_option
def show_host(host: str, as_json: bool) -> None:
    """Show one host: how often it is asked, who says so, and what keeps it back."""
    found = _known(host)
    if as_json:
        print_json(found)
        return
    for name, words in _described(found):
        echo(f"{name:>12}  {words}")


def _described(found: dict[str, Any]) -> list[tuple[str, str]]:
    from lienworker.queries.hosts import pace_in_words, state_in_words

    said = ", ".join(f"{who} {seconds:g} s" for who, seconds in found["said"].items())
    facts = [
        ("host", found["host"]),
        ("waiting", f"{found['waiting']:,} to be fetched"),
        ("delay", f"{pace_in_words(found)}; asked for by {said}"),
        ("open", f"{plural(found['concurrency'], 'request')} at most ({found['concurrency_from']})"),
        ("served", f"{found['served']:,} pages; {found['failed']:,} tries failed"),
    ]
    facts += [("requests", f"{found['requests']:.1f} for a parcel")] if found["requests"] else []
    facts += [("robots.txt", "the operator's delay counts before its own")] if found["over_robots"] else []
    return [*facts, ("state", state_in_words(found) or "may be asked")]


def _known(host: str) -> dict[str, Any]:
    from lienworker.operator.hosts import site_named
    from lienworker.queries.hosts import host_named

    settings = load_settings()
    open_folder(settings)
    found = host_named(host, settings) or host_named(site_named(host), settings)
    if found is None:
        raise click.ClickException(f"There is no host {host!r}. `lienworker hosts list --all` shows what there is.")
    return found


@hosts.command("set", epilog="Example: lienworker hosts set county.example --delay 2 --concurrency 1")
@click.argument("host")
@click.option("--delay", type=click.FloatRange(0, 3600), help="Seconds between two requests.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Open requests at a time, at most.")
@click.option("--over-robots", is_flag=True, help="The delay counts even where robots.txt asks for more. Asks first.")
@click.option("--default", "is_default", is_flag=True, help="Take back what was said here.")
@click.option("--yes", is_flag=True, help="With --over-robots: do not ask.")
def set_host(
    host: str, delay: float | None, concurrency: int | None, over_robots: bool, is_default: bool, yes: bool
) -> None:
    """Say how often a host is asked. Counts before the platform's word, and from the next request on.

    What the site's robots.txt asks for stays the least, unless --over-robots says otherwise.
    """
    from lienworker.operator import hosts as operator

    if is_default == (delay is not None or concurrency is not None):
        raise click.UsageError("Say --delay, --concurrency or both; or --default alone.")
    if over_robots and delay is None:
        raise click.UsageError("--over-robots belongs to --delay.")
    open_folder(load_settings())
    site = operator.site_named(host)
    if over_robots and not yes:
        confirm(f"Ask {site} every {delay:g} s, whatever its robots.txt says?")
    if is_default:
        operator.unset_host(site)
    else:
        operator.set_host(site, delay, concurrency, over_robots=over_robots if delay is not None else None)
    _say_pace(site, delay)


def _say_pace(site: str, delay: float | None) -> None:
    from lienworker.queries.hosts import pace_in_words

    found = _known(site)
    most_open = plural(found["concurrency"], "request")
    echo(f"{site} is asked every {pace_in_words(found)}, {most_open} at a time at most.")
    if delay is not None and found["delay_from"] == "robots.txt":
        echo(f"Its robots.txt asks for {found['delay']:g} s, and that counts; --over-robots says otherwise.", err=True)


def _on_host(act: Callable[[str], None], host: str) -> str:
    from lienworker.operator.hosts import site_named

    open_folder(load_settings())
    site = site_named(host)
    act(site)
    return site


@hosts.command("pause", epilog="Example: lienworker hosts pause county.example")
@click.argument("host")
def pause_host(host: str) -> None:
    """Ask a host for nothing more until it is resumed. Lasts through restarts; what waits keeps waiting."""
    from lienworker.operator import hosts as operator

    site = _on_host(operator.pause_host, host)
    echo(f"Paused: {site}. `lienworker hosts resume {site}` goes on.")


@hosts.command("resume", epilog="Example: lienworker hosts resume county.example")
@click.argument("host")
def resume_host(host: str) -> None:
    """Ask a paused host again; one that is left alone for its failures is asked at once."""
    from lienworker.operator import hosts as operator

    echo(f"Resumed: {_on_host(operator.resume_host, host)}.")


@hosts.command("forget", epilog="Example: lienworker hosts forget county.example")
@click.argument("host")
def forget_host(host: str) -> None:
    """Forget what was learned of a host, and what was said here: failures, robots.txt's delay, pauses."""
    from lienworker.operator import hosts as operator

    _known(host)
    echo(f"Forgotten: {_on_host(operator.forget_host, host)}.")
