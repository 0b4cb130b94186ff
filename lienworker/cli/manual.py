"""Manual pages, made from the commands' own help: `python -m lienworker.cli.manual FOLDER`, or `make man`.

One page for the program and one for each of its commands, with the members of a group as sections.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from lienworker import __version__
from lienworker.cli import cli

_EXIT_CODES = {
    "0": "All is well.",
    "1": "The work is done, but some of it failed, or trouble was found.",
    "2": "The command or a setting cannot be used.",
    "3": "The local storage cannot be used.",
    "4": "The database is damaged.",
    "70": "A bug.",
    "75": "Another process is at work on the data folder.",
    "130": "Stopped by Ctrl-C.",
}


def write_pages(folder: Path) -> list[Path]:
    """Writes all pages there, and says which."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in pages().items():
        path = folder / f"{name}.1"
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def pages() -> dict[str, str]:
    """The text of each page by its name."""
    made = {"lienworker": _page("lienworker", cli, cli.commands)}
    for name, command in sorted(cli.commands.items()):
        made[f"lienworker-{name}"] = _page(f"lienworker {name}", command, {})
    return made


def _page(name: str, command: click.Command, see_also: Mapping[str, click.Command]) -> str:
    dashed = name.replace(" ", "-")
    lines = [
        f'.TH "{dashed.upper()}" "1" "" "lienworker {__version__}" "lienworker manual"',
        ".SH NAME",
        f"{_safe(dashed)} \\- {_safe(_summary(command))}",
        ".SH SYNOPSIS",
        *_synopsis(name, command),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
        *_options(name, command, "SH"),
        *(line for member, found in _members(name, command) for line in _section(member, found, see_also)),
        ".SH EXIT STATUS",
        *(line for code, words in _EXIT_CODES.items() for line in (".TP", f".B {code}", _safe(words))),
        *_see_also(dashed, see_also),
    ]
    return "\n".join(lines) + "\n"


def _members(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The members of a group and of the groups within."""
    if isinstance(command, click.Group):
        for member, found in sorted(command.commands.items()):
            yield f"{name} {member}", found
            if command is not cli:
                yield from _members(f"{name} {member}", found)


def _section(name: str, command: click.Command, see_also: Mapping[str, click.Command]) -> Iterator[str]:
    """A member of a group; of a command that has its own page only what it is for."""
    yield f'.SS "{_safe(name)}"'
    if see_also:
        yield _safe(_summary(command))
        return
    yield from _synopsis(name, command)
    yield from _paragraphs(command.help or "")
    yield from _options(name, command, "PP")


def _summary(command: click.Command) -> str:
    return (command.help or "").strip().split("\n\n")[0].replace("\n", " ")


def _synopsis(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f".B {_safe(name)}"
    yield _safe(" ".join(command.collect_usage_pieces(context)))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.strip().split("\n\n"):
        as_it_is = paragraph.lstrip().startswith("\b")
        yield ".PP"
        yield from [".nf"] if as_it_is else []
        yield from (_safe(line.strip() if not as_it_is else line) for line in paragraph.strip("\b\n").splitlines())
        yield from [".fi"] if as_it_is else []


def _options(name: str, command: click.Command, heading: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    records = [record for option in command.get_params(context) if (record := option.get_help_record(context))]
    if heading == "SH":
        yield ".SH OPTIONS"
    for flags, words in records:
        yield from (".TP", f".B {_safe(flags)}", _safe(words))


def _see_also(own: str, others: Mapping[str, click.Command]) -> Iterator[str]:
    names = [f"lienworker-{name}" for name in sorted(others)] or ["lienworker"]
    yield ".SH SEE ALSO"
    yield ", ".join(f"\\fB{_safe(name)}\\fR(1)" for name in names if name != own)


def _safe(text: str) -> str:
    """Text that troff takes as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
