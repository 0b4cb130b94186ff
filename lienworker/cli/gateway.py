"""gateway: a Gateway of our own to try things on, and a check of the real one."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lienworker.cli.common import json_option, load_settings, open_folder
from lienworker.cli.output import echo, print_json

if TYPE_CHECKING:
    from lienworker.hubs.gateway.outcomes import Refused, Unavailable
    from lienworker.settings import Settings


_DEMO_PARCELS = 60


@click.group(epilog="Example: lienworker gateway check")
def gateway() -> None:
    """Check the Gateway, or run the reference Gateway."""


@gateway.command(epilog="Example: lienworker gateway serve --port 8900 --token secret --tasks tasks.jsonl")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8900, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--token", default="reference-token", show_default=True, help="The worker token that it wants.")
@click.option(
    "--tasks", "tasks_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Tasks to hand out."
)
@click.option("--demo", "demo_url", metavar="URL", help="Hand out the demo county's parcels; its site is there.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where to put raw files.")
def serve(host: str, port: int, token: str, tasks_file: Path | None, demo_url: str | None, folder: Path | None) -> None:
    """Run the reference Gateway: it behaves as the real one does, warts included.

    It keeps what it gets and takes faults by command, under /_control/ (from this machine only).
    """
    from lienworker.testing.gateway import read_tasks
    from lienworker.testing.gateway import serve as serve_gateway

    tasks = [*(read_tasks(tasks_file) if tasks_file else ()), *(_demo_tasks(demo_url) if demo_url else ())]
    serve_gateway(host, port, token, folder, tasks, on_ready=lambda url: echo(f"Reference Gateway on {url}"))


def _demo_tasks(url: str) -> list[dict[str, object]]:
    from lienworker.testing.county.site import DemoSite

    county = DemoSite()
    county.url = url.rstrip("/")
    return county.tasks(_DEMO_PARCELS)


@gateway.command(epilog="Example: GATEWAY_URL=https://gateway.example GATEWAY_TOKEN=… lienworker gateway check")
@json_option
def check(as_json: bool) -> None:
    """Say whether the Gateway answers and takes our token. Nothing is taken from it. Exit 1 if not."""
    from yarl import URL

    from lienworker.errors import SettingsError
    from lienworker.platforms import registry_with

    settings = load_settings()
    if settings.standalone or settings.gateway_sync == "disabled":
        raise SettingsError("STANDALONE", "is set (or GATEWAY_SYNC=disabled): not one call goes to the Gateway.")
    if not settings.gateway_url or not settings.gateway_token:
        raise SettingsError("GATEWAY_URL", "is not set (with GATEWAY_TOKEN): there is no Gateway to check.")
    worker_id = settings.worker_id or _worker_id(settings)
    facts = asyncio.run(_examine(settings.gateway_url, settings.gateway_token, worker_id))
    names = registry_with(settings.platforms_folder).names()
    facts |= {"address": str(URL(settings.gateway_url).with_user(None)), "worker_id": worker_id, "would_ask_for": names}
    if as_json:
        print_json(facts)
    else:
        for name in ("address", "worker_id", "answers", "token", "clock"):
            echo(f"{name:>10}  {facts[name]}")
        echo(f"{'asks for':>10}  {', '.join(facts['would_ask_for'])}")
    sys.exit(0 if facts["is_well"] else 1)


def _worker_id(settings: Settings) -> str:
    """The name that this data folder has at the Gateway; a check makes neither."""
    from lienworker.data_folder import DataFolder

    folder = DataFolder(settings.data_dir)
    return open_folder(settings).worker_id() if folder.database.exists() else "lienworker-check"


async def _examine(url: str, token: str, worker_id: str) -> dict[str, Any]:
    from lienworker.hubs.gateway.client import GatewayClient
    from lienworker.hubs.gateway.outcomes import Accepted, Kind, Unavailable

    async with GatewayClient(url, token, worker_id) as client:
        health = await client.health()
        if isinstance(health, Unavailable) and health.kind is Kind.DOWN:
            untried = dict.fromkeys(("token", "clock"), "not tried")
            return {"answers": _why_down(health.words), **untried, "is_well": False}
        accepted = await client.check_token()
    return {
        "answers": "yes (that proves nothing about delivery)" if isinstance(health, Accepted) else _words(health),
        "token": "accepted" if isinstance(accepted, Accepted) else _words(accepted),
        "clock": _clock(client.date),
        "is_well": isinstance(accepted, Accepted),
    }


def _words(failed: Refused | Unavailable) -> str:
    return f"{failed.words} (request {failed.request_id})"


def _why_down(words: str) -> str:
    from lienworker.queries.formatting import why_not_connected

    return f"no: {why_not_connected(words) or 'it cannot be reached'}"


def _clock(date: str | None) -> str:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        said = parsedate_to_datetime(date or "")
    except ValueError:
        return "the Gateway does not say its time"
    seconds = (datetime.now(UTC) - (said if said.tzinfo else said.replace(tzinfo=UTC))).total_seconds()
    return "the same" if abs(seconds) < 5 else f"ours is {abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"
