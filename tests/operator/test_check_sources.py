"""One polite request to each source: as robots.txt allows, no file downloaded, and the outcome kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from lienworker.data_folder import DataFolder
from lienworker.db.database import open_store
from lienworker.operator.check_sources import check_sources
from lienworker.platforms import default_registry
from lienworker.settings import Settings
from lienworker.store.parcel_sources import Kind, ParcelSource, Tried, tried_sources
from lienworker.testing.serving import serving


class OneSite:
    """Answers by its paths, and remembers what it was asked."""

    url = ""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        if request.path == "/robots.txt":
            return web.Response(text="User-agent: *\nDisallow: /closed/")
        if request.path == "/old/roll.zip":
            raise web.HTTPFound("/roll.zip")
        if request.path == "/refusing/FeatureServer/0":
            return web.json_response({"error": {"code": 499, "message": "Token Required"}})
        fields = [{"name": "PIN", "type": "esriFieldTypeString"}]
        return web.json_response({"type": "Feature Layer", "fields": fields})


@pytest.fixture
def site() -> Iterator[OneSite]:
    here = OneSite()
    with serving(here):
        yield here


def check(tmp_path: Path, site: OneSite, kind: Kind, path: str) -> Tried:
    folder = open_store(tmp_path / "data")
    settings = replace(Settings(data_dir=folder.root), allow_private_hosts=("127.0.0.1",), host_delay=0.0)
    source = ParcelSource("FL", "Dixie", kind, f"{site.url}{path}", "mine", "mine.toml", platform="arcgis")
    seen: list[Tried] = []
    check_sources(settings, folder, default_registry(), [source], lambda _, tried: seen.append(tried))
    assert tried_sources(DataFolder(folder.root)) == {source.key: seen[0]}
    return seen[0]


def test_a_layer_tells_its_column(tmp_path: Path, site: OneSite) -> None:
    tried = check(tmp_path, site, "layer", "/open/FeatureServer/0")

    assert tried.worked
    assert tried.learned == {"field": "PIN", "field_type": "text"}
    assert site.asked == ["GET /robots.txt", "GET /open/FeatureServer/0"]


def test_what_robots_may_not_ask_for_is_not_asked_for(tmp_path: Path, site: OneSite) -> None:
    tried = check(tmp_path, site, "layer", "/closed/FeatureServer/0")

    assert not tried.worked
    assert tried.detail.startswith("robots_denied")
    assert site.asked == ["GET /robots.txt"]


def test_a_refusal_inside_a_reply_is_a_failure(tmp_path: Path, site: OneSite) -> None:
    tried = check(tmp_path, site, "layer", "/refusing/FeatureServer/0")

    assert (tried.worked, tried.detail) == (False, "refused: the service answered: Token Required")


def test_a_file_is_not_downloaded_not_even_behind_a_redirect(tmp_path: Path, site: OneSite) -> None:
    assert check(tmp_path, site, "file", "/old/roll.zip").worked
    assert site.asked == ["GET /robots.txt", "HEAD /old/roll.zip", "HEAD /roll.zip"]
