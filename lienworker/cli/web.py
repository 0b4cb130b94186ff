"""web: the monitor."""

from __future__ import annotations

import sys

import click

from lienworker.cli.common import load_settings, open_folder


@click.command(epilog="Example: lienworker web --port 5555 --read-only")
@click.option("--host", help="Where to listen, instead of LIENWORKER_WEB_HOST.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port, instead of LIENWORKER_WEB_PORT.")
@click.option("--read-only", is_flag=True, help="Hide and refuse every action.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name of this server, as behind a proxy.")
def web(host: str | None, port: int | None, read_only: bool, allow_host: tuple[str, ...]) -> None:
    """Show the monitor in a browser: see everything, act on it.

    Listens on this machine only, unless told otherwise. Any other address needs LIENWORKER_WEB_TOKEN; where none is
    set, one is made and shown with the address to open.
    """
    import asyncio

    from lienworker.errors import OperatorError
    from lienworker.logs import setup_logging
    from lienworker.web.app import serve
    from lienworker.web.guard import Guard
    from lienworker.web.pages import Place

    settings = load_settings()
    setup_logging(settings.log_level)
    listen, number = host or settings.web_host, port or settings.web_port or 5555
    token, address = _token(listen, number, settings.web_token)
    guard = Guard(listen, token, frozenset(name.lower() for name in allow_host))
    place = Place(settings, open_folder(settings), read_only)
    click.echo(f"The monitor: {address}", err=True)
    try:
        asyncio.run(serve(place, guard, number))
    except OSError as problem:
        raise OperatorError(f"The monitor cannot listen on {listen} port {number}: {problem.strerror}.") from None
    sys.exit(0)


def _token(host: str, port: int, token: str | None) -> tuple[str | None, str]:
    """The token that visitors need, and the address to open. A made one is shown, a set one is not."""
    import secrets

    from lienworker.web.guard import is_loopback

    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/"
    if token or is_loopback(host):
        return token, address
    made = secrets.token_urlsafe(24)
    return made, f"{address}?token={made}"
