"""The reference pages docs/settings.md and docs/commands.md, made from the program itself.

`python -m lienworker.cli.reference docs` writes them; a test says when they are out of date.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click

from lienworker.cli import cli
from lienworker.settings import Settings

_SETTINGS_HEAD = """# Settings

Settings come from the environment, and from a file `.env` in the current folder for those that the environment does
not set. An empty value counts as unset. A wrong value stops the program with one sentence that names the variable.
This page is made from the program (`make docs`).

| Variable | Default | What it does |
|---|---|---|
"""
_COMMANDS_HEAD = """# Commands

Every command with its help, as `lienworker COMMAND --help` prints it. `python -m lienworker` is the same program.
This page is made from the program (`make docs`).

Exit codes: 0 all is well; 1 the work is done, but some of it failed, or trouble was found; 2 the command or a setting
cannot be used; 3 the local storage cannot be used; 4 the database is damaged; 70 a bug of ours; 75 another process is
at work on the data folder; 130 stopped by Ctrl-C.
"""


def settings_page() -> str:
    rows = (
        f"| `{item.metadata['env']}` | {_shown(item.default)} | {item.metadata['doc']} |\n" for item in fields(Settings)
    )
    return _SETTINGS_HEAD + "".join(rows)


def _shown(default: object) -> str:
    if default is None or default == ():
        return "(unset)"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if default == math.inf:
        return "`forever`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def commands_page() -> str:
    parts = [f"\n## {name}\n\n```text\n{text}\n```\n" for name, text in _helps(cli, "lienworker")]
    return _COMMANDS_HEAD + "".join(parts)


def _helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Each command's name and help, groups before their members."""
    names = cli.context_settings["help_option_names"]
    context = click.Context(command, info_name=name, terminal_width=100, max_content_width=100, help_option_names=names)
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    yield name, "\n".join(lines)
    if isinstance(command, click.Group):
        for member in command.list_commands(context):
            found = command.get_command(context, member)
            assert found is not None
            yield from _helps(found, f"{name} {member}")


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "settings.md").write_text(settings_page(), encoding="utf-8")
    (folder / "commands.md").write_text(commands_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
