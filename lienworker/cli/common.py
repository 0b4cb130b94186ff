"""What all commands share: settings, the store, tables and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from lienworker.cli.output import echo, print_json
from lienworker.text_safety import plural, visible, without_passwords

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder
    from lienworker.platforms import Registry
    from lienworker.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


#: No deadline is farther off.
_FARTHEST = timedelta(days=5 * 365)


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


class Deadline(_ParamType):
    """A moment to come, with its zone: by name, as an offset, or Z; in milliseconds."""

    name = "time"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        moment = self._moment(str(value).strip(), parameter, context)
        now = datetime.now(UTC)
        if not now < moment < now + _FARTHEST:
            self.fail(f"{value!r} is not within the next five years", parameter, context)
        return round(moment.timestamp() * 1000)

    def _moment(self, text: str, parameter: click.Parameter | None, context: click.Context | None) -> datetime:
        when, _, zone = text.rpartition(" ")
        try:
            if when and zone[:1].isalpha():
                wall = datetime.fromisoformat(when)
                moment = wall.replace(tzinfo=ZoneInfo(zone))
                shown = moment.astimezone(UTC).astimezone(moment.tzinfo).replace(tzinfo=None)
                if wall.tzinfo is None and shown == wall:
                    return moment
                self.fail(f"{text!r} is no time there: the clocks skip that hour", parameter, context)
            moment = datetime.fromisoformat(text)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            self.fail(f'{text!r} is no time; write "2026-06-03 10:00 America/New_York"', parameter, context)
        if moment.tzinfo is None:
            self.fail(f'{text!r} has no zone; write "{text} America/New_York", or UTC', parameter, context)
        return moment


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
    """Open the data folder, which must be there: who only looks makes none, least of all in the wrong place."""
    from lienworker.data_folder import DataFolder
    from lienworker.errors import InputError

    if not _is_there(DataFolder(settings.data_dir)):
        raise InputError(
            f"There is no data folder at {settings.data_dir}. Go to where it is, or set LIENWORKER_DATA_DIR;"
            " `lienworker init` makes a new one."
        )
    return make_folder(settings)


def _is_there(folder: DataFolder) -> bool:
    """What a repair left unfinished is there, too, and so is what cannot be read: who opens it says why."""
    try:
        return any(place.exists() for place in (folder.database, folder.salvaged, folder.holders))
    except OSError:
        return True


def make_folder(settings: Settings) -> DataFolder:
    """Open the data folder, or make it."""
    from lienworker.db.database import open_store
    from lienworker.outbox.outcomes import configure

    configure(settings.mode)
    return open_store(settings.data_dir)


def refuse_unknown_platform(registry: Registry, name: str | None) -> None:
    """A platform that a person names must be there: no row is worth a try with one that is not."""
    from lienworker.errors import InputError

    if name is not None and name.lower() not in registry.names():
        raise InputError(f"There is no platform {name!r}.{did_you_mean(name, registry.names())}")


def named_task(name: str) -> str:
    """Return the id of the task that a person means: by its id, its beginning, a parcel id or an address."""
    from lienworker.queries.lists import tasks_called

    found = tasks_called(name)
    if not found:
        raise click.ClickException(f"There is no task {name!r}. `lienworker tasks list` shows what there is.")
    if len(found) > 1:
        some = ", ".join(found[:5])
        raise click.ClickException(f"{name!r} may be {len(found)} tasks or more: {some}. Name one of them.")
    return found[0]


def typed_here(settings: Settings) -> str:
    """Return what to put before a command so that it means this data folder, where the settings name another."""
    import shlex

    if load_settings().data_dir == settings.data_dir:
        return ""
    return f"LIENWORKER_DATA_DIR={shlex.quote(str(settings.data_dir))} "


def warn_of_unknown_settings() -> None:
    """Name settings that nobody reads: most are misspelled, and what they were to do does not happen."""
    from lienworker.settings import unknown_settings

    for words in unknown_settings():
        echo(f"Warning: {words}", err=True)


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
