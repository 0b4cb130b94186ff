"""What an operator types. This package imports nothing heavy at the top: `lienworker --help` must be quick.

Exit codes: 0 all is well; 1 the work is done, but some of it failed, or trouble was found; 2 the command or a setting
cannot be used; 3 the local storage cannot be used; 4 the database is damaged; 70 a bug; 75 another process is at work
on the data folder, or no Redis answers; 130 stopped by Ctrl-C. Services start again after 3, 70 and 75, but never after
2 and 4.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import click

from lienworker import __version__
from lienworker.cli import (
    analyzing,
    flows,
    gateway,
    harvest,
    hosts,
    inspection,
    intake,
    looking,
    outbox,
    platforms,
    results,
    running,
    scraping,
    service,
    setting_up,
    sources,
    tasks,
    upkeep,
    web,
)
from lienworker.cli.common import did_you_mean
from lienworker.cli.output import echo
from lienworker.errors import STORAGE_FAULTS, BusyError, DamageError, LienworkerError, OperatorError, RedisAwayError

_DOCTOR = "`lienworker doctor` says more"
_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


#: Never suggested for a word that is something else: a person in a hurry types what is suggested.
_DANGEROUS = frozenset({"restore", "purge", "discard", "cancel"})


class Program(click.Group):
    """All commands, with the mistakes that any of them can meet."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise click.UsageError(f"There is no command {args[0]!r}.{self._hint(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def _hint(self, word: str) -> str:
        """The command of a group that goes by this name, else one that looks like it and does no harm."""
        members = ((name, group) for name, group in self.commands.items() if isinstance(group, click.Group))
        groups = [name for name, group in members if word in group.commands]
        if groups:
            return f" Did you mean `lienworker {groups[0]} {word}`?"
        return did_you_mean(word, self.commands.keys() - _DANGEROUS)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UnicodeEncodeError:
            raise click.UsageError("An argument or a setting holds bytes that are no text.") from None
        except OverflowError:
            raise click.UsageError("A number is too large.") from None


@click.group(cls=Program, context_settings=_HELP)
@click.version_option(__version__, "-V", "--version")
def cli() -> None:
    """Scrape county tax-lien parcels. Everything is kept in the data folder first.

    \b
    First steps:
      lienworker demo                 see it work on the bundled county
      lienworker run parcels.csv      scrape a file of parcels to the end
      lienworker results export --output results.csv
    """


platforms.platforms.add_command(flows.try_)
for command in (
    running.run, running.up, setting_up.stop, looking.logs, running.demo, setting_up.init, setting_up.config,
    intake.import_, harvest.harvest, harvest.harvests, looking.imports, looking.counties, intake.bulk, scraping.scrape,
    tasks.tasks, results.results,
    outbox.outbox, hosts.hosts, sources.sources, gateway.gateway, upkeep.pause, upkeep.resume, platforms.platforms,
    analyzing.reparse, web.web,
    analyzing.analyze, inspection.status, inspection.doctor, inspection.health, service.completion,
    upkeep.purge, upkeep.backup, upkeep.restore, service.service,
):  # fmt: skip
    cli.add_command(command)


def _show(problem: click.ClickException) -> None:
    """As click shows it, but harmless: its words repeat arguments and names of files."""
    words = io.StringIO()
    problem.show(words)
    echo(words.getvalue(), err=True, nl=False)


def _unexpected(problem: Exception) -> int:
    """A damaged or full storage, or a bug of ours; the trace is for whoever asks for it."""
    if os.environ.get("LIENWORKER_LOG_LEVEL") == "debug":
        raise problem
    if type(problem).__module__ in {"peewee", "sqlite3"}:
        is_damage = _is_damage(problem)
        remedy = "`lienworker doctor --repair` saves what can be saved" if is_damage else _DOCTOR
        echo(f"Error: the database cannot be used: {problem}. {remedy}.", err=True)
        return 4 if is_damage else 3
    if isinstance(problem, OSError) and problem.errno in STORAGE_FAULTS:
        where = f" ({problem.filename})" if problem.filename else ""
        echo(f"Error: the storage cannot be used: {problem.strerror}{where}. {_DOCTOR}.", err=True)
        return 3
    what = f"{type(problem).__name__}: {problem}"
    echo(f"Error: this should not happen: {what} (LIENWORKER_LOG_LEVEL=debug shows where)", err=True)
    return 70


def _expected(problem: LienworkerError) -> int:
    """One sentence, and the code that says whether the same again may help."""
    echo(f"Error: {problem}", err=True)
    if isinstance(problem, BusyError | RedisAwayError):
        return 75
    if isinstance(problem, OperatorError):
        return 2
    # What SQLite said is told in other words by then, but it is still behind them.
    return 4 if isinstance(problem, DamageError) or _is_damage(problem.__context__) else 3


def _is_damage(problem: BaseException | None) -> bool:
    from lienworker.db.database import is_damage

    return is_damage(problem)


def main() -> None:
    """The program: every expected trouble is one sentence and an exit code, never a trace."""
    try:
        code = cli(standalone_mode=False)
    except click.exceptions.Abort:
        echo("Stopped.", err=True)
        code = 130
    except click.ClickException as problem:
        _show(problem)
        code = problem.exit_code
    except LienworkerError as problem:
        code = _expected(problem)
    except BrokenPipeError:  # `… | head`: whoever read us has enough
        sys.stderr.close()
        code = 0
    except Exception as problem:
        code = _unexpected(problem)
    sys.exit(code if isinstance(code, int) else 0)
