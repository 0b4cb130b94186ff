"""web: the monitor."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lienworker.cli.common import load_settings, open_folder

if TYPE_CHECKING:
    from lienworker.settings import Settings
    from lienworker.store.folder import DataFolder


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
@click.option("--address", "only_address", is_flag=True, help="Print the address to open, with its token, and exit.")
def web(host: str | None, port: int | None, read_only: bool, allow_host: tuple[str, ...], only_address: bool) -> None:
    """Show the monitor in a browser: see everything, act on it.

    Listens on this machine only, unless told otherwise. Any other address needs a token: LIENWORKER_WEB_TOKEN, or one
    that is made once, shown then with the address to open, and kept in the data folder.
    """
    import asyncio
    from urllib.parse import quote

    from lienworker.errors import OperatorError
    from lienworker.logs import setup_logging
    from lienworker.web.app import serve
    from lienworker.web.guard import Guard
    from lienworker.web.pages import Place

    settings = load_settings()
    setup_logging(settings, "web")
    listen, number = host or settings.web_host, port or settings.web_port or 5555
    folder = open_folder(settings)
    token, is_new = _token(listen, settings, folder)
    address = _address(listen, number)
    with_token = f"{address}?token={quote(token)}" if token else address
    if only_address:
        click.echo(with_token)
        return
    guard = Guard(listen, token, frozenset(name.lower() for name in (*allow_host, *settings.web_allow_hosts)))
    place = Place(settings, folder, read_only or settings.web_read_only)
    shown = with_token if is_new else address
    kept = f" (its token is in {folder.web_token_file})" if token and not settings.web_token else ""
    elsewhere = f"(from other machines {_elsewhere(number)})" if _is_everywhere(listen) else ""
    words = f"The monitor: {shown} {elsewhere}{kept}".rstrip()
    try:
        asyncio.run(serve(place, guard, number, on_ready=lambda: click.echo(words, err=True)))
    except OSError as problem:
        made = f" Its token is made: {with_token}" if is_new else ""
        raise OperatorError(f"The monitor cannot listen on {listen} port {number}: {problem.strerror}.{made}") from None
    sys.exit(0)


def _token(host: str, settings: Settings, folder: DataFolder) -> tuple[str | None, bool]:
    """The token that visitors need, and whether it is new: a made one is shown once, a set one never."""
    from lienworker.web.guard import is_loopback

    if settings.web_token or is_loopback(host):
        return settings.web_token, False
    return folder.web_token()


def _is_everywhere(host: str) -> bool:
    return host in {"0.0.0.0", "::"}  # not what we listen on  # noqa: S104 # nosec B104


def _elsewhere(port: int) -> str:
    """The same with this machine's name; whoever comes without the token is asked for it."""
    import socket

    return _address(socket.gethostname(), port)


def _address(host: str, port: int) -> str:
    """Where to open it: a server on all addresses is on this machine's own, too."""
    if _is_everywhere(host):
        host = "::1" if host == "::" else "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
