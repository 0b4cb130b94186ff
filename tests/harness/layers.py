"""A server that stands in for every ArcGIS layer of the OpenAddresses data, and that data as a clone of it.

Each site of the data has a loopback address of its own (127.1.x.y), so pacing by host is what it is in life; paths and
columns are those of the data. Layers are as strict as real ones: an unknown column, a text compared with a number and
a query without its end are errors, sent with status 200.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

DATA = Path(__file__).parents[3] / "shared" / "sources" / "openaddresses-parcels.json"
_WHERE = re.compile(r"(?P<column>[\w.#$]+)=(?:'(?P<text>(?:[^']|'')*)'|(?P<number>\d+))")
_OBJECT_IDS = {"OBJECTID", "FID", "OID", "ESRI_OID", "PARCELOID"}
#: Every so many layers have numbers for ids.
_NUMBERS_EACH = 7


def real_entries() -> list[dict[str, Any]]:
    """The parcel layers of OpenAddresses; skips aloud where the data is not there."""
    if not DATA.is_file():
        pytest.skip("the OpenAddresses data (../shared/sources) is not here: where to look was not tried on it")
    entries: list[dict[str, Any]] = json.loads(DATA.read_text())["parcels"]
    return entries


@dataclass
class Layer:
    """What one layer has: a column of ids, of text or of numbers."""

    column: str
    is_number: bool

    def describe(self) -> dict[str, Any]:
        kind = "esriFieldTypeInteger" if self.is_number else "esriFieldTypeString"
        columns = {"OBJECTID": "esriFieldTypeOID", self.column: kind, "OWNER_NAME": "esriFieldTypeString"}
        fields = [{"name": name, "type": about} for name, about in columns.items()]
        return {"type": "Feature Layer", "capabilities": "Map,Query,Data", "fields": fields}

    def query(self, where: str) -> dict[str, Any]:
        found = _WHERE.fullmatch(where)
        if not found or found["column"] != self.column or bool(found["number"]) != self.is_number:
            return {"error": {"code": 400, "message": f"Unable to complete operation: {where}"}}
        parcel_id = found["number"] or found["text"].replace("''", "'")
        value: Any = int(parcel_id) if self.is_number else parcel_id
        attributes = {"OBJECTID": 1, self.column: value, "OWNER_NAME": "OTTER IDA", "SITUS_ADDR": "1 ACORN LN"}
        return {"geometryType": "esriGeometryPolygon", "features": [{"attributes": attributes}]}


@dataclass
class EveryLayer:
    """All layers by site and path, and what was asked of each."""

    layers: dict[tuple[str, str], Layer] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """The loopback address of each real host."""
    port: int = 0
    asked: list[str] = field(default_factory=list)

    def host_for(self, real: str) -> str:
        n = len(self.addresses)
        return self.addresses.setdefault(real, f"127.1.{n // 250}.{n % 250 + 1}")

    def add(self, entry: Mapping[str, Any]) -> None:
        address = urlsplit(entry["url"])
        pid = entry["conform"]["pid"]
        column = "PARCEL_ID" if pid.upper() in _OBJECT_IDS else pid
        is_number = len(self.layers) % _NUMBERS_EACH == 3
        path = address.path.rstrip("/").lower()
        self.layers.setdefault((self.host_for(address.netloc), path), Layer(column, is_number))

    def moved(self, url: str) -> str:
        """An address of the data, at its stand-in."""
        address = urlsplit(url)
        return address._replace(scheme="http", netloc=f"{self.host_for(address.netloc)}:{self.port}").geturl()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        host, path = request.host.partition(":")[0], request.path.rstrip("/").lower()
        self.asked.append(f"{host}{request.path_qs}")
        if (layer := self.layers.get((host, path))) and request.query.get("f") == "json":
            return web.json_response(layer.describe())
        if layer := self.layers.get((host, path.removesuffix("/query"))):
            return web.json_response(layer.query(request.query.get("where", "")))
        return web.Response(status=404, text="no such layer")


@contextmanager
def every_layer(entries: Iterable[Mapping[str, Any]]) -> Iterator[EveryLayer]:
    """Serve the layers of these entries."""
    site = EveryLayer()
    for entry in entries:
        if entry["protocol"] == "ESRI":
            site.add(entry)
    loop = asyncio.new_event_loop()
    runner = loop.run_until_complete(_start(site))
    thread = threading.Thread(target=loop.run_forever, name="every-layer", daemon=True)
    thread.start()
    try:
        yield site
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(site: EveryLayer) -> web.AppRunner:
    runner = web.AppRunner(site.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    for address in site.addresses.values():
        await web.TCPSite(runner, address, site.port).start()
        site.port = runner.addresses[0][1]
    return runner


def write_clone(folder: Path, entries: Iterable[Mapping[str, Any]], site: EveryLayer | None = None) -> Path:
    """Write entries as OpenAddresses keeps them, a source for each place; layers are at their stand-ins if given."""
    sources: dict[str, dict[str, Any]] = {}
    for entry in entries:
        source = sources.setdefault(entry["path"], _source(entry))
        url = site.moved(entry["url"]) if site and entry["protocol"] == "ESRI" else entry["url"]
        more = {name: entry[name] for name in ("website", "request", "skip", "compression") if name in entry}
        layer = {"name": entry["layer_name"], "data": url, "protocol": entry["protocol"], "conform": entry["conform"]}
        source["layers"]["parcels"].append({**layer, **more, "license": entry.get("data_license", {})})
    for path, source in sources.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(source))
    return folder


def _source(entry: Mapping[str, Any]) -> dict[str, Any]:
    coverage = {"country": "us", "state": entry["state"].lower(), "US Census": {"geoid": entry["geoid"]}}
    coverage |= {name: entry[name] for name in ("county", "city") if entry.get(name)}
    return {"coverage": coverage, "schema": 2, "layers": {"addresses": [], "parcels": []}}
