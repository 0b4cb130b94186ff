"""A Socrata portal on loopback with one resource of parcels, and with its warts on demand. Every owner is invented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from lienworker.testing.serving import serving

ID = "abcd-1234"
_COLUMNS = ("pin", "owner_name", "site_address", "the_geom", ":@computed_region")
_NAMES = ("OTTER", "HERON", "JUNIPER", "MARTEN")


@dataclass
class Portal:
    """One resource. What is set on it holds from the next request on."""

    count: int = 500
    token: str | None = None
    #: Requests for pages that are refused with an error in JSON.
    errors: int = 0
    updated: int = 1
    url: str = ""
    asked: list[str] = field(default_factory=list)

    @property
    def resource(self) -> str:
        return f"{self.url}/resource/{ID}.json"

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(f"/api/views/{ID}.json", self._describe)
        app.router.add_get(f"/resource/{ID}.json", self._rows)
        return app

    def pins(self) -> set[str]:
        return {f"10-{number:05d}" for number in range(self.count)}

    def _refused(self, request: web.Request) -> web.Response | None:
        if self.token and request.headers.get("X-App-Token") != self.token:
            return web.json_response({"error": True, "code": "permission_denied", "message": "no token"}, status=403)
        return None

    async def _describe(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        columns = [{"fieldName": name} for name in _COLUMNS]
        return web.json_response({"columns": columns, "rowsUpdatedAt": self.updated})

    async def _rows(self, request: web.Request) -> web.Response:
        self.asked.append(str(request.rel_url))
        if refused := self._refused(request):
            return refused
        if request.query.get("$select") == "count(*)":
            return web.json_response([{"count": str(self.count)}])
        if self.errors > 0:
            self.errors -= 1
            return web.json_response({"error": True, "message": "query timed out"}, status=400)
        if request.query.get("$order") != ":id":
            return web.json_response({"error": True, "message": "rows come in no order"}, status=400)
        offset, limit = int(request.query.get("$offset", 0)), int(request.query.get("$limit", 1000))
        return web.json_response([self._row(n) for n in range(self.count)[offset : offset + limit]])

    def _row(self, n: int) -> dict[str, Any]:
        west, south = -87.7 + n % 100 * 0.001, 41.8 + n // 100 * 0.001
        ring = [[west, south], [west + 0.0005, south], [west + 0.0005, south + 0.0005], [west, south]]
        return {
            "pin": f"10-{n:05d}",
            "owner_name": f"{_NAMES[n % 4]} {n}",
            "site_address": f"{n} WILLOW AVE",
            "the_geom": {"type": "MultiPolygon", "coordinates": [[ring]]},
            ":@computed_region": "7",
        }


@contextmanager
def portal(**quirks: Any) -> Iterator[Portal]:
    """Serve a resource in a thread of this process."""
    server = Portal(**quirks)
    with serving(server):
        yield server
