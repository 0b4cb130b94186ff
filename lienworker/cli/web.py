"""web: the monitor."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lienworker.cli.common import load_settings, make_folder
from lienworker.cli.output import echo

if TYPE_CHECKING:
    from lienworker.data_folder import DataFolder
    from lienworker.settings import Settings
    from lienworker.web.guard import Guard

_PORT = 5555


@click.command(epilog="Example: lienworker web --port 5555 --read-only")
@click.option("--host", help="Where to listen, instead of LIENWORKER_WEB_HOST.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port, instead of LIENWORKER_WEB_PORT.")
@click.option("--read-only", is_flag=True, help="Hide and refuse every action; also LIENWORKER_WEB_READ_ONLY.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A further name of this server, as behind a proxy; also LIENWORKER_WEB_ALLOW_HOSTS.",
)
@click.option("--address", "only_address", is_flag=True, help="Print the link to open, with its token, and exit.")
@click.option("--metrics-token", "only_metrics", is_flag=True, help="Print Prometheus's token for /metrics, and exit.")
def web(
    host: str | None,
    port: int | None,
    read_only: bool,
    allow_host: tuple[str, ...],
    only_address: bool,
    only_metrics: bool,
) -> None:
    """Show the monitor in a browser: see everything, act on it.

    Listens on this machine only, unless told otherwise. Visitors need a token, which is made once and kept in the data
    folder: open the link that is shown on the terminal, or that --address prints.
    """
    from lienworker.logs import setup_logging

    settings = load_settings()
    setup_logging(settings, "web")
    listen, number = host or settings.web_host, port or settings.web_port or _PORT
    folder = make_folder(settings)
    guard = _guard(settings, folder, listen, number, allow_host)
    if only_address:
        echo(_link(guard, number))
    elif only_metrics:
        echo(guard.metrics_token)
    else:
        _serve(settings, folder, guard, number, read_only)


def _guard(settings: Settings, folder: DataFolder, host: str, port: int, allow_host: tuple[str, ...]) -> Guard:
    from lienworker.web.guard import Guard, is_loopback

    ticket, _ = folder.web_token()
    names = frozenset(name.lower() for name in (*allow_host, *settings.web_allow_hosts))
    # Where things lie is told to visitors from this machine only.
    command = _command(folder, host, port) if is_loopback(host) else "lienworker web --address"
    return Guard(host, ticket, settings.web_token, names, command)


def _serve(settings: Settings, folder: DataFolder, guard: Guard, port: int, read_only: bool) -> None:
    import asyncio

    from lienworker.errors import OperatorError
    from lienworker.web.app import serve
    from lienworker.web.pages import Place

    place = Place(settings, folder, read_only or settings.web_read_only)
    words = _where_it_is(guard, folder, port)
    try:
        asyncio.run(serve(place, guard, port, on_ready=lambda: echo(words, err=True)))
    except OSError as problem:
        raise OperatorError(f"The monitor cannot listen on {guard.host} port {port}: {problem.strerror}.") from None
    sys.exit(0)


def _where_it_is(guard: Guard, folder: DataFolder, port: int) -> str:
    """The link on a terminal. A log is kept, copied and sent around: it gets the command that prints the link."""
    elsewhere = f" (from other machines {_elsewhere(port)})" if _is_everywhere(guard.host) else ""
    if sys.stderr.isatty():
        return f"The monitor: {_link(guard, port)}{elsewhere}"
    address, command = _address(guard.host, port), _command(folder, guard.host, port)
    return f"The monitor: {address}{elsewhere}; the link with its token: {command}"


def _link(guard: Guard, port: int) -> str:
    from urllib.parse import quote

    return f"{_address(guard.host, port)}?token={quote(guard.ticket)}"


def _command(folder: DataFolder, host: str, port: int) -> str:
    """What prints the link, typed in any folder and with no settings."""
    words = [_program(), "web", "--address"]
    words += ["--host", host] if host != "127.0.0.1" else []
    words += ["--port", str(port)] if port != _PORT else []
    return f"LIENWORKER_DATA_DIR={shlex.quote(str(folder.root.absolute()))} {' '.join(map(shlex.quote, words))}"


def _program() -> str:
    """Our own name where a shell finds us by it, else the whole path."""
    from shutil import which

    ours = Path(sys.executable).with_name("lienworker")
    found = which("lienworker")
    if found and Path(found).resolve() == ours.resolve():
        return "lienworker"
    return str(ours)


def _is_everywhere(host: str) -> bool:
    return host in {"0.0.0.0", "::"}  # not what we listen on  # noqa: S104 # nosec B104


def _elsewhere(port: int) -> str:
    """The same with this machine's name."""
    import socket

    return _address(socket.gethostname(), port)


def _address(host: str, port: int) -> str:
    """Where to open it: a server on all addresses is on this machine's own, too."""
    if _is_everywhere(host):
        host = "::1" if host == "::" else "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
