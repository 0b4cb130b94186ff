"""A FeatureServer on loopback with as many parcels as asked for, and with every wart of the real ones, on demand.

Every owner and address is invented. Run it by hand with `python -m lienworker.testing.layers --count 100000`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from lienworker.testing.serving import HOST, serve_until_told, serving

LAYER = "/arcgis/rest/services/Parcels/FeatureServer/0"
_RANGE = re.compile(r"OBJECTID >= (\d+) AND OBJECTID <= (\d+)")
_FIELDS = (
    ("OBJECTID", "esriFieldTypeOID"), ("PARCEL_ID", "esriFieldTypeString"), ("OWN_NAME", "esriFieldTypeString"),
    ("OWN_ADDR1", "esriFieldTypeString"), ("OWN_CITY", "esriFieldTypeString"), ("OWN_STATE", "esriFieldTypeString"),
    ("OWN_ZIPCD", "esriFieldTypeString"), ("PHY_ADDR1", "esriFieldTypeString"), ("PHY_CITY", "esriFieldTypeString"),
    ("S_LEGAL", "esriFieldTypeString"), ("DOR_UC", "esriFieldTypeString"), ("JV", "esriFieldTypeDouble"),
    ("LND_VAL", "esriFieldTypeDouble"), ("ACRES", "esriFieldTypeDouble"), ("SALE_DATE", "esriFieldTypeDate"),
    ("SALE_PRC", "esriFieldTypeDouble"), ("NBRHD", "esriFieldTypeString"),
)  # fmt: skip
_NAMES = ("OTTER", "HERON", "JUNIPER", "MARTEN", "PELICAN", "SORREL", "TANAGER", "WILLOW")
_EARTH = 6378137.0


@dataclass
class FeatureServer:
    """One layer of parcels. What is set on it holds from the next request on."""

    count: int = 1000
    #: Rows in a page at most, as the layer says; and as it really gives, where that is less.
    max_records: int = 2000
    gives_at_most: int | None = None
    can_skip: bool = True
    token: str | None = None
    #: Requests for pages that get an error inside a 200, and requests that get a 500.
    errors: int = 0
    failures: int = 0
    slow: float = 0.0
    wkid: int = 4326
    #: Every so many parcels has no shape, no id, or the id of the one before.
    without_shape: int = 0
    without_id: int = 0
    twice: int = 0
    edited: int | None = None
    #: Changes what every owner is called.
    revision: int = 0
    #: Called with the number of each page before it is answered: to change things while they are read.
    before_page: Callable[[int], None] = lambda number: None
    url: str = ""
    pages: int = 0
    asked: list[str] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)

    @property
    def layer(self) -> str:
        return self.url + LAYER

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(LAYER, self._describe)
        app.router.add_get(f"{LAYER}/query", self._query)
        return app

    def delete(self, *ids: int) -> None:
        self.deleted.update(ids)

    def parcel_ids(self) -> set[str]:
        """The ids of all parcels that can be read."""
        return {parcel for number in self._ids() if (parcel := self._parcel_id(number))}

    def _ids(self) -> Sequence[int]:
        ids = range(1, self.count + 1)
        return [number for number in ids if number not in self.deleted] if self.deleted else ids

    def _parcel_id(self, number: int) -> str | None:
        if self.without_id and number % self.without_id == 0:
            return None
        return f"00-{number - (bool(self.twice) and number % self.twice == 0):07d}"

    async def _describe(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        about: dict[str, Any] = {
            "name": "Parcels",
            "geometryType": "esriGeometryPolygon",
            "objectIdField": "OBJECTID",
            "maxRecordCount": self.max_records,
            "advancedQueryCapabilities": {"supportsPagination": self.can_skip},
            "fields": [{"name": name, "type": kind} for name, kind in _FIELDS],
        }
        if self.edited is not None:
            about["editingInfo"] = {"lastEditDate": self.edited}
        return web.json_response(about)

    def _refused(self, request: web.Request) -> web.Response | None:
        given = request.headers.get("X-Esri-Authorization", "").removeprefix("Bearer ") or request.query.get("token")
        if self.token and given != self.token:
            return _error(498 if given else 499, "Invalid token." if given else "Token Required")
        return None

    async def _query(self, request: web.Request) -> web.Response:
        self.asked.append(str(request.rel_url))
        if refused := self._refused(request):
            return refused
        asked = request.query
        chosen = self._chosen(asked.get("where", ""))
        if chosen is None:
            return _error(400, "'where' clause is invalid")
        if asked.get("returnCountOnly") == "true":
            return web.json_response({"count": len(chosen)})
        if asked.get("returnIdsOnly") == "true":
            return web.json_response({"objectIdFieldName": "OBJECTID", "objectIds": [*chosen]})
        return await self._page(request, chosen)

    async def _page(self, request: web.Request, chosen: Sequence[int]) -> web.Response:
        self.pages += 1
        self.before_page(self.pages)
        await asyncio.sleep(self.slow)
        if self.failures > 0:
            self.failures -= 1
            return web.Response(status=500, text="Service unavailable")
        if self.errors > 0:
            self.errors -= 1
            return _error(500, "Error performing query operation")
        if "resultOffset" in request.query and not self.can_skip:
            return _error(400, "Pagination is not supported.")
        offset, most = int(request.query.get("resultOffset", 0)), int(request.query.get("resultRecordCount", 10**9))
        chosen = self._chosen(request.query.get("where", "")) or ()  # it may have been changed just now
        rows = chosen[offset : offset + min(most, self.max_records, self.gives_at_most or most)]
        is_cut = offset + len(rows) < len(chosen)
        return web.Response(text=self.page_text(rows, is_cut=is_cut), content_type="application/json")

    def _chosen(self, where: str) -> Sequence[int] | None:
        ids = self._ids()
        if found := _RANGE.search(where):
            low, high = map(int, found.groups())
            return ids[max(0, low - 1) : high] if isinstance(ids, range) else [n for n in ids if low <= n <= high]
        return ids if "1=1" in where else None

    def page_text(self, rows: Sequence[int], *, is_cut: bool) -> str:
        """Return the answer with these rows."""
        features = ",".join(map(self._feature, rows))
        return (
            f'{{"objectIdFieldName":"OBJECTID","geometryType":"esriGeometryPolygon","spatialReference":'
            f'{{"wkid":{self.wkid},"latestWkid":{self.wkid}}},"exceededTransferLimit":{json.dumps(is_cut)},'
            f'"features":[{features}]}}'
        )

    def _feature(self, n: int) -> str:
        owner = f"{_NAMES[n % 8]} {_NAMES[n // 8 % 8]}{f' {self.revision}' if self.revision else ''}"
        shape = "null" if self.without_shape and n % self.without_shape == 0 else f'{{"rings":[[{self._ring(n)}]]}}'
        parcel_id = self._parcel_id(n)
        return (
            f'{{"attributes":{{"OBJECTID":{n},"PARCEL_ID":{json.dumps(parcel_id)},"OWN_NAME":"{owner}",'
            f'"OWN_ADDR1":"{n % 900} FERN ST","OWN_CITY":"JUNIPER","OWN_STATE":"FL","OWN_ZIPCD":"3{n % 10000:04d}",'
            f'"PHY_ADDR1":"{n % 5000} COUNTY ROAD {n % 70}","PHY_CITY":"CROSS CITY","S_LEGAL":"LOT {n % 40}'
            f' BLK {n % 90} JUNIPER ESTATES UNIT {n % 12}","DOR_UC":"0{n % 90:02d}",'
            f'"JV":{n % 900000}.0,"LND_VAL":{n % 90000}.0,"ACRES":{n % 4000 / 100},'
            f'"SALE_DATE":{1_400_000_000_000 + n % 3000 * 86_400_000},'
            f'"SALE_PRC":{n % 700000}.0,"NBRHD":"N{n % 300}"}},"geometry":{shape}}}'
        )

    def _ring(self, n: int) -> str:
        west, south = -83.2 + n % 1000 * 0.0005, 29.5 + n // 1000 * 0.0004
        corners = ((0, 0), (0, 0.0003), (0.0004, 0.0003), (0.0004, 0), (0, 0))
        points = [self._projected(west + x, south + y) for x, y in corners]
        return ",".join(f"[{x:.9f},{y:.9f}]" for x, y in points)

    def _projected(self, x: float, y: float) -> tuple[float, float]:
        if self.wkid == 4326:
            return x, y
        return math.radians(x) * _EARTH, math.log(math.tan(math.pi / 4 + math.radians(y) / 2)) * _EARTH


def _error(code: int, message: str) -> web.Response:
    """Esri's errors come with status 200."""
    return web.json_response({"error": {"code": code, "message": message, "details": []}})


@contextmanager
def feature_server(**quirks: Any) -> Iterator[FeatureServer]:
    """Serve a layer in a thread of this process."""
    server = FeatureServer(**quirks)
    with serving(server):
        yield server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lienworker.testing.layers", description="A layer of parcels.")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--port-file", type=Path, help="write the port here once it answers")
    asked = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_until_told(FeatureServer(count=asked.count), HOST, asked.port, asked.port_file))


if __name__ == "__main__":
    main()
