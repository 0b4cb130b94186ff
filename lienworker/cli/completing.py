"""completion: the words of our commands for the shell's tab key."""

from __future__ import annotations

import click

from lienworker.cli.output import echo


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
