"""The one way in which commands speak to a person.

What they say has a stranger's words in it: titles, names, errors, file names. None of these may move the cursor, change
the direction of the text, or show the password of an address.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import click

from lienworker.text_safety import redacted, visible, visible_json, without_passwords

#: Our own lines and columns.
_LAYOUT = "\n\t"


def echo(message: object = "", *, err: bool = False, nl: bool = True, color: str | None = None) -> None:
    """Print a message with control characters spelled out and without the passwords of addresses."""
    text = visible(without_passwords(str(message)), keep=_LAYOUT)
    click.echo(colored(text, color, bold=True) if color else text, err=err, nl=nl)


def colored(text: str, color: str, *, bold: bool | None = None) -> str:
    """Return the text in a color, unless NO_COLOR is set. Only for text that is harmless already."""
    return text if os.environ.get("NO_COLOR") or not text else click.style(text, color, bold=bold)


def confirm(question: str) -> None:
    """Ask; end the command where the answer is no. Where nobody can answer, say how to go without."""
    asked = visible(without_passwords(question))
    try:
        click.confirm(asked, abort=True, err=True)
    except click.Abort as stopped:
        if stopped.__context__ is None or sys.stdin.isatty():  # somebody said no, or pressed Ctrl-C
            raise
        raise click.UsageError("Nobody is there to answer (no terminal): --yes does it without asking.") from None


def print_json(value: Any) -> None:
    click.echo(_json(value))


def print_json_list(values: Iterable[Any]) -> None:
    """Print what `print_json(list(values))` would, with one of them in hand at a time."""
    start = "["
    for value in values:
        click.echo(start + "\n  " + _json(value).replace("\n", "\n  "), nl=False)
        start = ","
    click.echo("[]" if start == "[" else "\n]")


def _json(value: Any) -> str:
    return visible_json(json.dumps(redacted(value), ensure_ascii=False, indent=2, default=str))


def standard_output() -> TextIO:
    """Where an export goes that names no file: untouched into a pipe, harmless on a terminal."""
    return _Harmless(sys.stdout) if sys.stdout.isatty() else sys.stdout  # type: ignore[return-value]


class _Harmless:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        self._out.write(visible(text, keep=_LAYOUT))
        return len(text)
