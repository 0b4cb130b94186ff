"""Manual pages with the commands' own help: `python -m lienworker.cli.manual FOLDER`, or `make man`.

One page for the program and one for each of its commands, with the members of a group as sections. `click-man` does not
escape what troff obeys, and loses the lines of examples.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from lienworker import __version__
from lienworker import cli as program


def write_pages(folder: Path) -> list[Path]:
    """Write all pages into the folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for name, text in pages().items() if (path := folder / f"{name}.1").write_text(text, "utf-8")]


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    top = _context(program.cli, "lienworker")
    names = [f"lienworker-{name}" for name in program.cli.list_commands(top)]
    members = (_context(command, name, top) for name, command in program.cli.commands.items())
    own = {context.command_path.replace(" ", "-"): _page(context, ["lienworker"]) for context in members}
    return {"lienworker": _page(top, names), **own}


def _page(context: click.Context, see_also: list[str]) -> str:
    name = context.command_path.replace(" ", "-")
    sections = {
        "NAME": f"{name} - {context.command.get_short_help_str(100)}",
        "SYNOPSIS": context.get_usage().removeprefix("Usage: "),
        "DESCRIPTION": context.get_help().partition("\n\n")[2],
        **{member.command_path: member.get_help() for member in _members(context)},
        "EXIT STATUS": re.sub(r"(?<=[;.]) ", "\n", _exit_codes()),
        "SEE ALSO": "\n".join(f"{other}(1)" for other in see_also),
    }
    head = f'.TH "{name.upper()}" "1" "" "lienworker {__version__}" "lienworker manual"\n'
    return head + "".join(f".SH {title}\n.nf\n{_safe(text.strip())}\n.fi\n" for title, text in sections.items())


def _exit_codes() -> str:
    """Return what the package says of them."""
    return " ".join((program.__doc__ or "").split("\n\n")[1].removeprefix("Exit codes: ").split())


def _members(context: click.Context) -> Iterator[click.Context]:
    """Yield the members of a group and of the groups within; those of the program have pages of their own."""
    if isinstance(context.command, click.Group) and context.parent:
        for name, command in sorted(context.command.commands.items()):
            member = _context(command, name, context)
            yield member
            yield from _members(member)


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return command.context_class(command, parent, name, terminal_width=78, **program.cli.context_settings)


def _safe(text: str) -> str:
    """Return text that troff takes as it is."""
    return re.sub(r"^(?=[.'])", r"\\&", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
