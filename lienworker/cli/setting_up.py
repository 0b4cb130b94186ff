"""init, config and stop: a data folder with its settings, what they are, and the end of a stack."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import json_option, load_settings, make_folder, open_folder, print_rows
from lienworker.cli.output import echo

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder

_LOOK_SECONDS = 0.1


@click.command(epilog="Example: lienworker init")
def init() -> None:
    """Make a data folder, and a commented .env with every setting in the current folder. What is there stays."""
    settings = load_settings()
    folder = make_folder(settings)
    echo(f"The data folder: {folder.root}")
    place = Path.cwd() / ".env"
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        echo(f"Left as it is: {place}")
        return
    with open(handle, "w", encoding="utf-8") as out:
        out.write(_commented())
    echo(f"Settings to fill in: {place}")


def _commented() -> str:
    from textwrap import fill

    from lienworker.settings import described_settings

    head = "# Settings of lienworker, read from the folder in which it is started. Take a # away to set one.\n"
    parts = [
        fill(setting.doc, 100, initial_indent="# ", subsequent_indent="# ") + f"\n#{setting.name}={setting.default}\n"
        for setting in described_settings()
    ]
    return "\n".join([head, *parts])


@click.group(epilog="Example: lienworker config show")
def config() -> None:
    """Look at the settings."""


@config.command(epilog="Example: lienworker config show --json")
@click.option("--set", "only_set", is_flag=True, help="Only those that are not at their defaults.")
@json_option
def show(only_set: bool, as_json: bool) -> None:
    """Every setting, its value, and where it comes from. Secrets are not shown."""
    from lienworker.settings import described_settings, unknown_settings

    load_settings()  # a wrong one is said in one sentence
    rows: list[dict[str, Any]] = [
        {"setting": item.name, "value": item.shown, "from": item.source}
        for item in described_settings()
        if not only_set or item.source != "default"
    ]
    print_rows(rows, ("setting", "value", "from"), as_json=as_json, nothing="All settings are at their defaults.")
    for words in unknown_settings():
        echo(f"Warning: {words}", err=True)


@click.command(epilog="Example: lienworker stop")
@click.option("--wait", default=60, show_default=True, type=click.IntRange(1), help="Seconds to wait for its end.")
def stop(wait: int) -> None:
    """Stop the stack that runs on this data folder, and wait until it has ended. Exit 1 if none runs."""
    from lienworker.data_folder import is_stack_running
    from lienworker.stack.supervisor import pid_of_stack

    folder = open_folder(load_settings())
    if not is_stack_running(folder):
        echo("No stack runs on this folder.")
        sys.exit(1)
    pid = pid_of_stack(folder)
    if pid is None:
        raise click.ClickException("A stack runs in parts or in another container: stop it where it was started.")
    os.kill(pid, signal.SIGTERM)
    _wait_for_end(folder, wait)
    echo("Stopped. Nothing is lost.")


def _wait_for_end(folder: DataFolder, seconds: int) -> None:
    from lienworker.data_folder import is_stack_running

    deadline = time.monotonic() + seconds
    while is_stack_running(folder):
        if time.monotonic() > deadline:
            raise click.ClickException(f"The stack has not ended within {seconds} s; `lienworker stop` again kills it.")
        time.sleep(_LOOK_SECONDS)
