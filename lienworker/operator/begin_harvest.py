"""Begin a harvest: ask the source what it is, say what its columns are taken for, and store its first page's row."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from lienworker.db.database import open_store
from lienworker.errors import InputError, PageError
from lienworker.fetching import Fetched, Fetcher, FetchFailed, FetchRequest
from lienworker.fetching.turns import TurnError
from lienworker.intake.pieces import header_of_table, pieces_of
from lienworker.intake.rows import Layout
from lienworker.intake.source import open_blocks
from lienworker.platforms import Record
from lienworker.platforms.harvest import KINDS, Cursor, Plan, Request, Uses, arcgis, socrata, uses_of
from lienworker.platforms.harvest.arcgis import is_layer, layer_of
from lienworker.platforms.harvest.socrata import is_resource, resource_of
from lienworker.platforms.harvest.table import describe_table
from lienworker.settings import Settings
from lienworker.steps.harvest import begin_harvest
from lienworker.steps.harvest_parcels import PageReader, Parcel
from lienworker.steps.harvest_table import TableHarvest
from lienworker.steps.pacer import HostPacer
from lienworker.steps.runtime import make_fetcher
from lienworker.store.harvests import HarvestRecord, unfinished_harvest

#: Parcels that a dry run shows.
SHOWN = 10
_DESCRIBED = {"arcgis": arcgis.describe, "socrata": socrata.describe}
#: Bytes of a file by which it is known again.
_BEGINNING = 1 << 20
#: Characters of a token; those of ArcGIS have some two hundred.
_LONGEST_TOKEN = 4_096


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for."""

    source: str
    state: str
    county: str = ""
    where: str = ""
    limit: int | None = None
    page_size: int = 2_000
    chosen: tuple[tuple[str, str], ...] = ()
    token: str | None = field(default=None, repr=False)
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Prospect:
    """A source that has said what it is."""

    plan: Plan
    harvest: HarvestRecord
    uses: Uses


class Asking(Protocol):
    """Asks an address and returns its JSON."""

    async def __call__(self, request: Request) -> Any: ...


def token_in(file: Path) -> str:
    """Return the token that a file holds."""
    with open_blocks(file, str(file), Layout()) as blocks:
        token = next(blocks, b"")[: _LONGEST_TOKEN + 1].decode("utf-8", "replace").strip()
    if not token or len(token) > _LONGEST_TOKEN or len(token.split()) > 1:
        raise InputError(f"{file} holds no token: it is one word of at most {_LONGEST_TOKEN:,} characters.")
    return token


def look_at(settings: Settings, wish: Wish, *, dry_run: bool) -> tuple[Prospect, list[Record]]:
    """Ask the source what it is; in a dry run for its first parcels, too, and nothing is stored."""
    bare = Plan(
        "", wish.source, "", (), chosen=dict(wish.chosen), where=wish.where, limit=wish.limit, size=wish.page_size
    )
    if "://" not in wish.source:
        return _look_at_table(wish, bare)
    bare, secret = _kind_of(wish, bare)
    return asyncio.run(_look(settings, wish, bare, secret, dry_run=dry_run))


def _kind_of(wish: Wish, bare: Plan) -> tuple[Plan, str | None]:
    """Return what is known of a source by its address alone, and what opens it."""
    if is_layer(wish.source):
        url, token = layer_of(wish.source)
        return replace(bare, kind="arcgis", url=url), wish.token or token
    if is_resource(wish.source):
        return replace(bare, kind="socrata", url=resource_of(wish.source)), wish.token
    known = "a layer of an ArcGIS server, a resource of a Socrata portal, or a file"
    raise InputError(f"{wish.source} is no source that can be harvested: name {known}.")


def _look_at_table(wish: Wish, bare: Plan) -> tuple[Prospect, list[Record]]:
    if wish.where:
        raise InputError("--where is for layers: a file is read as it is.")
    plan = describe_table(header_of_table(wish.source, wish.encoding), replace(bare, url=_name_of_file(wish.source)))
    prospect = _prospect(wish, plan, None)
    first = next(pieces_of(wish.source, wish.encoding, SHOWN), None)
    return prospect, shown_parcels(prospect.harvest, plan, first.to_bytes()) if first else []


def _name_of_file(path: str) -> str:
    """Return a name by which a file is known again: what it is called, how large it is, and how it begins."""
    with open(path, "rb") as file:
        mark = hashlib.blake2b(file.read(_BEGINNING), digest_size=8).hexdigest()
        size = file.seek(0, 2)
    return f"roll:{quote(Path(path).name)}?size={size}&mark={mark}"


async def _look(
    settings: Settings, wish: Wish, bare: Plan, secret: str | None, *, dry_run: bool
) -> tuple[Prospect, list[Record]]:
    pacer = None if dry_run else HostPacer(settings.host_delay)
    fetcher = await make_fetcher(settings, pacer)
    try:
        asking = _Asking(settings, fetcher, is_paced=pacer is not None)
        plan = await _answered(asking, _DESCRIBED[bare.kind](bare, secret))
        prospect = _prospect(wish, plan, secret)
        parcels = await _first_parcels(asking, prospect, secret) if dry_run else []
        return prospect, parcels
    finally:
        await fetcher.close()
        if pacer:
            await asyncio.to_thread(pacer.close)


class _Asking:
    """Sends requests one after the other, as the site's pace allows."""

    def __init__(self, settings: Settings, fetcher: Fetcher, *, is_paced: bool) -> None:
        self._settings = settings
        self._fetcher = fetcher
        self._is_paced = is_paced
        self._is_first = True

    async def __call__(self, request: Request) -> Any:
        if not self._is_first and not self._is_paced:
            await asyncio.sleep(self._settings.host_delay)
        self._is_first = False
        asked = FetchRequest(request.url, proxy=self._settings.proxy, headers=request.headers)
        try:
            outcome = await self._fetcher.fetch(asked)
        except TurnError as problem:
            raise InputError(f"The source cannot be asked now: {problem}.") from None
        if isinstance(outcome, Fetched):
            return _loaded(outcome.body)
        detail = outcome.detail if isinstance(outcome, FetchFailed) else "it sent nothing"
        raise InputError(f"The source does not answer: {detail}")


def _loaded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("The source does not answer as one of its kind does: its answer is no JSON.") from None


async def _answered(ask: Asking, dialog: Generator[Request, Any, Plan]) -> Plan:
    """Carry a description's requests out."""
    try:
        request = next(dialog)
        while True:
            request = dialog.send(await ask(request))
    except StopIteration as end:
        plan: Plan = end.value
        return plan
    except PageError as problem:
        raise InputError(f"The source cannot be harvested: {problem.detail}.") from None


def _prospect(wish: Wish, plan: Plan, secret: str | None) -> Prospect:
    uses = uses_of(plan.columns, plan.chosen, plan.url)
    if not uses.takes("parcel_id"):
        there = ", ".join(map(repr, plan.columns[:40]))
        raise InputError(
            f"No column is known as the parcel's id: name it with --map parcel_id=COLUMN. There are {there}."
        )
    if not wish.county and not uses.takes("county"):
        raise InputError("No column says the county: name it with --county.")
    county = wish.county
    harvest = HarvestRecord(0, plan.kind, plan.url, plan.platform, wish.state, county, plan.to_json(), secret)
    return Prospect(plan, harvest, uses)


async def _first_parcels(ask: Asking, prospect: Prospect, secret: str | None) -> list[Record]:
    """Return the first parcels as they would be."""
    plan = replace(prospect.plan, limit=SHOWN, ranges=prospect.plan.ranges[:1])
    kind, cursor = KINDS[plan.kind], Cursor(size=SHOWN)
    body = json.dumps(await ask(kind.request(plan, cursor, secret))).encode()
    return shown_parcels(prospect.harvest, plan, body)


def shown_parcels(harvest: HarvestRecord, plan: Plan, body: bytes) -> list[Record]:
    """Return the parcels of a page as they would be stored, and why a row would not be."""
    reader = PageReader(harvest, plan, datetime.now(UTC).date())
    page = KINDS[plan.kind].read(plan, Cursor(size=SHOWN), body)
    found = [reader.parcel(n, row) for n, row in enumerate(page.rows[:SHOWN])]
    return [item.data if isinstance(item, Parcel) else {"rejected": item.reason} for item in found]


def begin(
    settings: Settings, prospect: Prospect, wish: Wish, progress: Callable[[int], None] = lambda rows: None
) -> int:
    """Store the harvest with the row of its first page, or with all pages of a file; return its number."""
    folder = open_store(settings.data_dir)
    new = prospect.harvest
    if new.kind == "table":
        return TableHarvest(folder, Path(wish.source), wish.encoding, new, prospect.plan).run(progress)
    running = unfinished_harvest(new.url, new.state, new.county)
    if running is not None:
        raise InputError(f"Harvest {running} of this source is not over: `lienworker harvests list` shows it.")
    return begin_harvest(new, prospect.plan)
