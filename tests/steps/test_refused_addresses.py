"""An address that we refuse ourselves costs its host nothing: no request was sent, so no turn is used up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.db.database import all_rows, execute, write
from lienworker.outbox.registration import register_in_transaction
from lienworker.store.tasks import NewTask
from lienworker.testing.county.site import DemoSite, demo_site
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk, desk

#: Seconds between two requests: a run that waited for a single turn would not end within the test's time.
_DELAY = "3600"


@pytest.fixture
def site() -> Iterator[DemoSite]:
    with demo_site() as running:
        yield running


def _fetch(here: Desk, *urls: str) -> dict[str, int]:
    with write("test"):
        register_in_transaction([NewTask("cli", url) for url in urls])
    here.fetch_and_scrape()
    return Counter(reason or "" for (reason,) in all_rows("SELECT reason FROM tasks"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_refused_private_hosts_wait_for_no_turn_and_are_told_the_setting(
    tmp_path: Path, gateway: ReferenceGateway, host: str
) -> None:
    allowed = {"LIENWORKER_ALLOW_PRIVATE_HOSTS": "", "LIENWORKER_HOST_DELAY": _DELAY}
    with desk(tmp_path / "data", gateway, **allowed) as here:
        assert _fetch(here, *(f"http://{host}:9/{n}" for n in range(5))) == {"private_address": 5}
        (words,) = {row[0] for row in all_rows("SELECT last_error FROM tasks")}
    assert f"LIENWORKER_ALLOW_PRIVATE_HOSTS={host} allows it" in words


def test_pages_that_robots_txt_denies_take_no_turn_once_it_is_known(
    tmp_path: Path, gateway: ReferenceGateway, site: DemoSite
) -> None:
    with desk(tmp_path / "data", gateway, LIENWORKER_HOST_DELAY=_DELAY) as here:
        assert _fetch(here, f"{site.url}/admin/1") == {"robots_denied": 1}
        assert _fetch(here, f"{site.url}/admin/2") == {"robots_denied": 1, "": 1}, "robots.txt itself has its turn"
        with write("test"):
            execute("UPDATE hosts SET next_allowed_at = 0")
        assert _fetch(here, f"{site.url}/admin/3", f"{site.url}/admin/4") == {"robots_denied": 4}
    assert site.hits == {"/robots.txt": 1}


def test_a_turn_stays_used_where_a_request_was_sent(tmp_path: Path, gateway: ReferenceGateway, site: DemoSite) -> None:
    with desk(tmp_path / "data", gateway, LIENWORKER_HOST_DELAY=_DELAY, LIENWORKER_ROBOTS="ignore") as here:
        urls = [row["url"] for row in site.odd_parcels()[:1] * 2]
        assert _fetch(here, urls[0], urls[1] + "?again") == {"http_404": 1, "": 1}
