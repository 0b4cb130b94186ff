"""A resource of an open-data portal, read by offsets in the order of its row ids."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lienworker.db.database import all_rows, one_row
from lienworker.operator.begin_harvest import Wish, begin, look_at
from lienworker.testing.portals import Portal, portal
from tests.harness.in_process import Desk
from tests.steps.test_harvest import counts, read_to_the_end


@pytest.fixture
def city() -> Iterator[Portal]:
    with portal(count=500) as server:
        yield server


def harvest(here: Desk, city: Portal, **wish: object) -> dict[str, object]:
    wanted = Wish(f"{city.url}/City/Parcels/abcd-1234", "IL", "Cook", page_size=200, **wish)  # type: ignore[arg-type]
    prospect, _ = look_at(here.runtime.settings, wanted, dry_run=False)
    begin(here.runtime.settings, prospect, wanted)
    return read_to_the_end(here)


def test_a_resource_is_read_to_its_end_with_its_shapes(here: Desk, city: Portal) -> None:
    done = harvest(here, city)
    assert (counts(done), done["pages"], done["notes"]) == ((500, 500, 0, 0, 0), 4, [])  # three pages, and the check
    assert {pin for (pin,) in all_rows("SELECT parcel_id FROM results WHERE NOT stays_here")} == city.pins()
    record = json.loads(one_row("SELECT data FROM results WHERE parcel_id = '10-00007'")[0])
    assert record["geometry"]["type"] == "MultiPolygon"
    assert record["centroid"][0] == pytest.approx(-87.6926667)
    assert "the_geom" not in record.get("fields", {})


def test_an_error_of_the_portal_stops_it_and_an_update_is_noticed(here: Desk, city: Portal) -> None:
    city.updated = 1
    assert harvest(here, city, limit=200)["notes"] == []
    city.errors = 100
    failed = harvest(here, city)
    assert failed["status"] == "failed"


def test_an_app_token_opens_it_and_is_in_no_row(here: Desk, city: Portal) -> None:
    city.token = "portal-secret"
    assert counts(harvest(here, city, token="portal-secret")) == (500, 500, 0, 0, 0)
    for table in ("tasks", "pages", "outbox", "results", "harvests"):
        assert "portal-secret" not in str(all_rows(f"SELECT * FROM {table}"))
