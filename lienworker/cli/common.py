"""What all commands share: settings, the store, tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lienworker.settings import Settings
    from lienworker.store.folder import DataFolder

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator, for commands that share them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def load_settings() -> Settings:
    from lienworker.settings import Settings

    return Settings.from_environment()


def open_folder(settings: Settings) -> DataFolder:
    from lienworker.outbox.deliveries import configure
    from lienworker.store.database import open_store

    configure(settings.mode)
    return open_store(settings.data_dir)


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool, nothing: str) -> None:
    """A listing: JSON with everything, or a table of the chosen columns."""
    rows = list(rows)
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo(nothing)
    else:
        print_table(columns, [[row.get(column) for column in columns] for row in rows])


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their content, cut at 60 characters."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(header, *cells, strict=True)]
    for line in (header, *cells):
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def shown(cell: Any) -> str:
    """A cell as text that cannot move the cursor: scraped text is never trusted."""
    text = "-" if cell is None or cell == "" else str(cell)
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= 60 else text[:59] + "…"


def plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
