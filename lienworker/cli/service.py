"""service: run the stack under systemd."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import with_options
from lienworker.cli.output import confirm, echo

if TYPE_CHECKING:
    from lienworker.stack.units import Service, Step


_options: Callable[[Any], Any] = with_options(
    click.option("--user/--system", "for_user", default=None, help="For you alone, or for the machine (as root)."),
    click.option(
        "--root", type=click.Path(path_type=Path), default=Path("/"), help="An image's files; starts nothing."
    ),
    click.option("--dry-run", is_flag=True, help="Only say what would be done, with every file."),
    click.option("--yes", is_flag=True, help="Do not ask."),
)


@click.group(epilog="Example: lienworker service install --system --dry-run")
def service() -> None:
    """Run the stack as a systemd service."""


@service.command(epilog="Example: sudo /opt/lienworker/bin/lienworker service install --system")
@click.option("--parts", is_flag=True, help="A unit each for workers, schedule and monitor; needs REDIS_URL.")
@click.option("--program", type=click.Path(path_type=Path), help="The lienworker to run, if not this one.")
@_options
def install(parts: bool, program: Path | None, for_user: bool | None, root: Path, dry_run: bool, yes: bool) -> None:
    """Install and start hardened units. Says first what it will do, and asks."""
    from lienworker.stack.units import install_steps

    wanted = _service(program, for_user, root, in_parts=parts)
    _go(install_steps(wanted), dry_run=dry_run, yes=yes)
    if not dry_run:
        echo(_next_step(wanted))


def _next_step(installed: Service) -> str:
    control = " ".join(installed.control)
    if installed.lacks_redis:
        return (
            f"Installed, but not started: REDIS_URL is missing. Put it into {installed.settings_file}; "
            f"then `{control} start {installed.main_unit}`."
        )
    return f"Done. Settings go into {installed.settings_file}; then `{control} restart {installed.main_unit}`."


@service.command(epilog="Example: lienworker service uninstall --user")
@_options
def uninstall(for_user: bool | None, root: Path, dry_run: bool, yes: bool) -> None:
    """Stop and remove our units. Data, settings and user stay."""
    from lienworker.stack.units import uninstall_steps

    _go(uninstall_steps(_service(None, for_user, root, in_parts=False)), dry_run=dry_run, yes=yes)
    if not dry_run:
        echo("Done. The data folder and the settings are still there.")


def _service(program: Path | None, for_user: bool | None, root: Path, *, in_parts: bool) -> Service:
    from lienworker.errors import OperatorError
    from lienworker.stack.units import Service

    is_system = os.geteuid() == 0 if for_user is None else not for_user
    if is_system and os.geteuid() != 0 and root == Path("/"):
        raise OperatorError("Units for the whole machine need root: use sudo, or --user.")
    try:
        root.exists()
    except OSError as problem:
        raise OperatorError(f"--root cannot be used: {problem.strerror}.") from None
    here = program or Path(sys.argv[0]).absolute()
    if here.name == "__main__.py":
        here = Path(sys.executable).with_name("lienworker")
    return Service(here, is_system, in_parts, root)


def _go(steps: list[Step], *, dry_run: bool, yes: bool) -> None:
    echo("This would be done:" if dry_run else "This will be done:")
    for step in steps:
        echo(f"  {step.words}")
    if dry_run:
        for step in steps:
            if step.text is not None:
                echo(f"\n--- {step.path}\n{step.text}", nl=False)
        return
    if not yes:
        confirm("Go on?")
    for step in steps:
        step.do()


# completion: the words of our commands for the shell's tab key.


@click.command(epilog='Example: eval "$(lienworker completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes the tab key complete our commands.

    \b
    bash, in ~/.bashrc:                    eval "$(lienworker completion bash)"
    zsh, in ~/.zshrc:                      eval "$(lienworker completion zsh)"
    fish, in ~/.config/fish/config.fish:   lienworker completion fish | source
    """
    from click.shell_completion import get_completion_class

    from lienworker.cli import cli

    found = get_completion_class(shell)
    assert found is not None
    echo(found(cli, {}, "lienworker", "_LIENWORKER_COMPLETE").source())
