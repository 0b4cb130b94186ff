"""What all commands share: settings, the store, tables and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lienworker.cli.output import echo, print_json
from lienworker.text_safety import plural, visible, without_passwords

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder
    from lienworker.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


if TYPE_CHECKING:
    _ParamType = click.ParamType[int]
else:
    _ParamType = click.ParamType  # not generic in click's older versions


class _Moment(_ParamType):
    """A day or a moment, as RFC 3339, in milliseconds; a moment without a zone is UTC."""

    name = "time"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-01-31 or 2026-01-31T14:05:00Z", parameter, context)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return round(moment.timestamp() * 1000)


def since_option(what: str) -> Callable[[F], F]:
    """`--since`: a day or a time, as this program prints it."""
    words = f"Only {what} from then on: a day such as 2026-01-31, or a time (UTC)."
    return click.option("--since", "since_ms", type=_Moment(), help=words)


def import_option(what: str) -> Callable[[F], F]:
    """`--import`: what one file brought, by the number that `lienworker imports list` shows."""
    return click.option("--import", "import_id", type=int, metavar="N", help=f"Only {what} of this import.")


def list_options(function: F) -> F:
    """`--limit` and `--reverse`, as every list has them."""
    reverse = click.option("--reverse", is_flag=True, help="Oldest first.")
    limit = click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
    return limit(reverse(function))


def print_total(shown_rows: int, limit: int, noun: str, count: Callable[[], int]) -> None:
    """End a list with how many there are; what was not cut need not be counted again."""
    total = count() if shown_rows >= limit else shown_rows
    if total > shown_rows:
        echo(f"{shown_rows:,} of {plural(total, noun)}; --limit {total} shows all.", err=True)
    elif total:
        echo(f"{plural(total, noun)}.", err=True)


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
    from lienworker.db.database import open_store
    from lienworker.outbox.outcomes import configure

    configure(settings.mode)
    return open_store(settings.data_dir)


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool, nothing: str) -> None:
    """A listing: JSON with everything, or a table of the chosen columns."""
    rows = list(rows)
    if as_json:
        print_json(rows)
    elif not rows:
        echo(nothing)
    else:
        print_table(columns, [[row.get(column) for column in columns] for row in rows])


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their content, cut at 60 characters."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(header, *cells, strict=True)]
    for line in (header, *cells):
        echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def shown(cell: Any, longest: int = 60) -> str:
    """A cell as text that cannot move the cursor or show a password: scraped text is never trusted."""
    text = "-" if cell is None or cell == "" else str(cell)
    text = visible(without_passwords(text))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint to put behind a sentence; empty where nothing is like the word."""
    near = get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
