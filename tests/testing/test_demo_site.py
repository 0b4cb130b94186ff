"""The demo county's site: complete in its log, honest in its failures, fast enough to measure others by."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import aiohttp
import pytest

from lienworker.testing.county.site import ODD, demo_site


def get(url: str) -> tuple[int, str]:
    try:
        with urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_each_parcel_is_served_and_each_request_logged() -> None:
    with demo_site() as site:
        rows = site.parcels(3)
        for row in rows:
            status, body = get(row["url"])
            assert status == 200
            assert row["parcel_id"] in body
        assert {row["platform"] for row in rows} == {"demo"}
        assert site.hits == {f"/parcel/{row['parcel_id']}": 1 for row in rows}
        assert [path for path, _ in site.log] == [f"/parcel/{row['parcel_id']}" for row in rows]
        assert [when for _, when in site.log] == sorted(when for _, when in site.log)


def test_the_odd_parcels_fail_as_announced() -> None:
    with demo_site(slow_seconds=0.2) as site:
        urls = {name: f"{site.url}/parcel/{wanted}" for name, wanted in ODD.items()}
        assert get(urls["missing"])[0] == 404
        assert "human" in get(urls["captcha"])[1]
        started = time.monotonic()
        assert get(urls["slow"])[0] == 200
        assert time.monotonic() - started >= 0.2
        assert [get(urls["busy"])[0], get(urls["busy"])[0]] == [503, 200]
        assert len(site.odd_parcels()) == len(ODD)


def test_the_busy_one_says_when_to_come_back() -> None:
    with demo_site() as site, pytest.raises(HTTPError) as error:
        urlopen(f"{site.url}/parcel/{ODD['busy']}")
    assert error.value.headers["Retry-After"] == "1"


def test_it_has_an_index_and_a_robots_file() -> None:
    with demo_site() as site:
        assert "/parcel/" in get(site.url + "/")[1]
        assert "User-agent" in get(site.url + "/robots.txt")[1]
        assert get(site.url + "/nowhere")[0] == 404


def test_two_sites_do_not_share_a_log() -> None:
    with demo_site() as one, demo_site() as other:
        get(one.url + "/")
        assert (len(one.log), len(other.log)) == (1, 0)


def test_hundreds_of_requests_a_second() -> None:
    async def fetch_all(urls: list[str]) -> None:
        connector = aiohttp.TCPConnector(limit=32)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def fetch(url: str) -> None:
                async with session.get(url) as answer:
                    await answer.read()

            await asyncio.gather(*map(fetch, urls))

    with demo_site() as site:
        urls = [row["url"] for row in site.parcels(400)]
        started = time.process_time()  # of both sides, and of nobody else on this machine
        asyncio.run(fetch_all(urls))
        assert time.process_time() - started < 4
        assert sum(site.hits.values()) == 400


@pytest.mark.parametrize("module", [["county.site"], ["sites", "auction"]])
def test_run_by_hand_a_site_prints_its_address_and_stops_when_told(module: list[str], tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    root = Path(__file__).resolve().parents[2]
    site = subprocess.Popen(
        [sys.executable, "-m", f"lienworker.testing.{module[0]}", *module[1:], "--port-file", str(port_file)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    try:
        assert site.stdout is not None
        url = site.stdout.readline().strip()
        assert url == f"http://127.0.0.1:{port_file.read_text().strip()}"
        assert get(url + "/robots.txt")[0] == 200
        site.send_signal(signal.SIGTERM)
        assert site.wait(60) == 0
    finally:
        site.kill()
        site.wait()
