"""A layer of parcels, from its description to the Gateway: one raw file a page, one result a parcel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.maintenance.backup import write_backup
from lienworker.operator.begin_harvest import Wish, begin, look_at
from lienworker.operator.reparse import Reparse
from lienworker.operator.rows import discard_rows
from lienworker.steps.harvest_parcels import parcel_task_id
from lienworker.store.harvests import harvest as harvest_record
from lienworker.store.harvests import list_harvests
from lienworker.store.runs import PageFilter
from lienworker.testing.layers import FeatureServer, feature_server
from tests.harness.in_process import Desk, assert_raw_before_result


@pytest.fixture
def layer() -> Iterator[FeatureServer]:
    with feature_server(count=1200, max_records=500) as server:
        yield server


def start(here: Desk, layer: FeatureServer, **wish: Any) -> int:
    """Begins a harvest of the layer."""
    wanted = Wish(layer.layer, "FL", "Dixie", **wish)
    prospect, _ = look_at(here.runtime.settings, wanted, dry_run=False)
    return begin(here.runtime.settings, prospect, wanted)


def read_to_the_end(here: Desk) -> dict[str, Any]:
    for _ in range(30):
        here.everything_is_due()
        here.fetch_and_scrape()
        found = list_harvests(1)[0]
        if found["status"] != "running":
            return found
    raise TimeoutError(found)


def harvest(here: Desk, layer: FeatureServer, **wish: Any) -> dict[str, Any]:
    start(here, layer, **wish)
    return read_to_the_end(here)


def counts(found: dict[str, Any]) -> tuple[int, ...]:
    return tuple(found[name] for name in ("read", "added", "refreshed", "unchanged", "rejected"))


def stored_ids() -> set[str]:
    return {parcel_id for (parcel_id,) in all_rows("SELECT parcel_id FROM results WHERE NOT stays_here")}


def test_every_parcel_is_a_result_of_its_own_and_every_page_one_raw_file(here: Desk, layer: FeatureServer) -> None:
    done = harvest(here, layer)
    assert (done["status"], done["notes"], done["pages"]) == ("done", [], 3)
    assert counts(done) == (1200, 1200, 0, 0, 0)
    assert layer.pages == 3
    assert stored_ids() == layer.parcel_ids()
    assert one_row("SELECT count(*), count(DISTINCT path) FROM pages") == (3, 3)
    assert here.states("upload_raw") == {"waiting": 3}
    named = all_rows("SELECT source_task, min(source_index), max(source_index), count(*) FROM results GROUP BY 1")
    assert named[1:] == [(f"harvest-1-page-{n}", 0, last, last + 1) for n, last in ((1, 499), (2, 499), (3, 199))]
    assert not list(here.runtime.folder.pending.iterdir())
    here.books_are_right()


def test_parcels_are_delivered_once_their_page_was_acknowledged(here: Desk, layer: FeatureServer) -> None:
    harvest(here, layer)
    assert one_row("SELECT count(*) FROM outbox WHERE topic = 'upload_result' AND due_at < 9e14") == (0,)
    here.upload_until()
    results = here.gateway.state.results
    assert {key[0] for key in results} == layer.parcel_ids()
    assert len(here.gateway.state.raw_uploads) == 3
    assert_raw_before_result(here.gateway)
    item = results["00-0000501", "arcgis", "FL", "Dixie"]
    (raw,) = item.data["_raw"]
    assert raw["index"] == 0
    assert raw["name"] in {file.name for file in here.gateway.state.raw_uploads}
    here.books_are_right()


def test_a_record_is_canonical_and_has_its_shape(here: Desk, layer: FeatureServer) -> None:
    harvest(here, layer, limit=1)
    record = json.loads(one_row("SELECT data FROM results WHERE parcel_id IS NOT NULL")[0])
    assert record["owner_address"] == "1 FERN ST JUNIPER FL 30001"
    assert record["sales"] == [{"date": "2014-05-14", "price": 1.0}]
    assert record["fields"] == {"OBJECTID": "1", "NBRHD": "N1"}
    assert record["geometry"]["type"] == "Polygon"
    assert record["centroid"] == [-83.1993, 29.50015]


def test_a_harvest_again_is_a_refresh(here: Desk, layer: FeatureServer) -> None:
    harvest(here, layer)
    here.upload_until()
    assert counts(harvest(here, layer)) == (1200, 0, 0, 1200, 0)
    assert here.waiting() == 0
    layer.revision = 2
    assert counts(harvest(here, layer, limit=700)) == (700, 0, 700, 0, 0)
    here.upload_until()
    versions = here.gateway.state.history["00-0000001", "arcgis", "FL", "Dixie"]
    assert [version.row.data["owner_name"] for version in versions] == ["HERON OTTER", "HERON OTTER 2"]
    assert one_row("SELECT count(*) FROM results WHERE confirmed_at IS NOT NULL") == (500,)
    here.books_are_right()


def test_a_limit_and_a_choice_of_columns_are_kept(here: Desk, layer: FeatureServer) -> None:
    done = harvest(here, layer, limit=750, chosen=(("property_use", "NBRHD"),))
    assert (counts(done), done["notes"]) == ((750, 750, 0, 0, 0), [])
    record = json.loads(one_row("SELECT data FROM results WHERE parcel_id = '00-0000001'")[0])
    assert (record["property_use"], record["fields"]["DOR_UC"]) == ("N1", "001")


def test_a_layer_that_cannot_skip_is_read_by_ranges_of_ids(here: Desk, layer: FeatureServer) -> None:
    layer.can_skip = False
    layer.delete(*range(100, 400))
    done = harvest(here, layer)
    assert (counts(done), done["pages"], done["notes"]) == ((900, 900, 0, 0, 0), 2, [])
    assert stored_ids() == layer.parcel_ids()


def test_a_range_that_the_service_cuts_off_is_asked_for_in_pieces(here: Desk, layer: FeatureServer) -> None:
    layer.can_skip, layer.gives_at_most = False, 200
    assert counts(harvest(here, layer)) == (1200, 1200, 0, 0, 0)
    assert stored_ids() == layer.parcel_ids()


def test_a_service_that_gives_less_than_asked_for_is_read_to_its_end(here: Desk, layer: FeatureServer) -> None:
    layer.gives_at_most = 130
    done = harvest(here, layer)
    assert (counts(done), done["notes"]) == ((1200, 1200, 0, 0, 0), [])


def test_an_error_inside_a_200_is_tried_again(here: Desk, layer: FeatureServer) -> None:
    layer.errors = 2
    assert counts(harvest(here, layer)) == (1200, 1200, 0, 0, 0)
    assert layer.pages == 5
    tries = all_rows("SELECT reason, count(*) FROM attempts GROUP BY 1")
    assert tries == [("source_error", 2)]


def test_a_page_that_fails_stops_the_harvest_until_it_is_retried(here: Desk, layer: FeatureServer) -> None:
    from lienworker.operator.tasks import retry_tasks

    start(here, layer)
    layer.errors = 100
    failed = read_to_the_end(here)
    assert (failed["status"], failed["reason"]) == ("failed", "source_error")
    layer.errors = 0
    retry_tasks([failed["page_task"]], "test")
    assert counts(read_to_the_end(here)) == (1200, 1200, 0, 0, 0)


def test_a_token_opens_a_layer_and_is_kept_nowhere(here: Desk, layer: FeatureServer) -> None:
    layer.token = "juniper-secret"
    start(here, layer, token="juniper-secret")
    assert one_row("SELECT secret FROM harvests") == ("juniper-secret",)
    assert counts(read_to_the_end(here)) == (1200, 1200, 0, 0, 0)
    assert one_row("SELECT secret FROM harvests") == (None,)
    for table in ("tasks", "pages", "outbox", "results", "harvests", "attempts"):
        assert "juniper-secret" not in str(all_rows(f"SELECT * FROM {table}"))


def test_a_backup_has_no_token(here: Desk, layer: FeatureServer, tmp_path: Path) -> None:
    layer.token = "juniper-secret"
    start(here, layer, token="juniper-secret")
    saved = write_backup(here.runtime.folder, tmp_path / "backup.tar", lambda done, of: None)
    assert b"juniper-secret" not in saved.path.read_bytes()
    assert "juniper-secret" not in repr(harvest_record(1))


def test_a_token_that_is_no_longer_good_fails_at_once(here: Desk, layer: FeatureServer) -> None:
    layer.token = "good"
    start(here, layer, token="good")
    layer.token = "another"
    failed = read_to_the_end(here)
    assert (failed["status"], failed["reason"]) == ("failed", "login_required")
    assert len(layer.asked) == 2  # the count, and one page


def test_a_layer_that_loses_rows_while_it_is_read_is_said_to_have_changed(here: Desk, layer: FeatureServer) -> None:
    layer.before_page = lambda number: layer.delete(1, 2) if number == 2 else None
    done = harvest(here, layer)
    assert done["read"] == 1198
    assert "announced 1,200 parcels and gave 1,198" in done["notes"][0]


def test_a_layer_that_gains_rows_in_front_is_said_to_have_changed(here: Desk, layer: FeatureServer) -> None:
    layer.delete(1, 2)

    def add(number: int) -> None:
        if number == 2:
            layer.deleted.clear()

    layer.before_page = add
    done = harvest(here, layer)
    assert "Rows came twice" in done["notes"][0]
    assert stored_ids() == layer.parcel_ids() - {"00-0000001", "00-0000002"}


def test_an_edit_that_changes_no_number_is_noticed_too(here: Desk, layer: FeatureServer) -> None:
    layer.edited = 1
    assert harvest(here, layer)["notes"] == []

    def edit(number: int) -> None:
        layer.edited = 2

    layer.before_page = edit
    assert "edited while it was read" in harvest(here, layer)["notes"][0]


def test_shapes_in_meters_become_degrees_and_others_are_left_out(here: Desk, layer: FeatureServer) -> None:
    layer.wkid, layer.without_shape = 3857, 2
    harvest(here, layer, limit=2)
    first, second = all_rows("SELECT data FROM results WHERE parcel_id IS NOT NULL ORDER BY parcel_id")
    assert json.loads(first[0])["centroid"] == [-83.1993, 29.50015]
    assert "geometry" not in json.loads(second[0])
    layer.wkid = 2236
    done = harvest(here, layer, limit=1)
    assert "spatial reference 2236" in done["notes"][0]


def test_rows_without_an_id_are_rejected_and_said(here: Desk, layer: FeatureServer) -> None:
    layer.without_id = 100
    done = harvest(here, layer)
    assert (counts(done), done["notes"]) == ((1200, 1188, 0, 0, 12), ["Rows were rejected: it has no parcel id."])


def test_a_parcel_that_comes_twice_is_stored_as_a_refresh(here: Desk, layer: FeatureServer) -> None:
    layer.twice = 100
    assert counts(harvest(here, layer)) == (1200, 1188, 12, 0, 0)
    here.upload_until()
    assert len(here.gateway.state.results) == 1188
    assert here.gateway.state.results["00-0000099", "arcgis", "FL", "Dixie"].data["fields"]["OBJECTID"] == "100"


def test_a_page_with_too_much_in_it_is_asked_for_in_pieces(
    here: Desk, layer: FeatureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lienworker.platforms.harvest.plan.MOST_BYTES", 150_000)
    assert counts(harvest(here, layer)) == (1200, 1200, 0, 0, 0)
    assert max(len(text) for (text,) in all_rows("SELECT url FROM pages")) < 400


def test_reparse_goes_by_page_and_delivers_only_what_changed(here: Desk, layer: FeatureServer) -> None:
    harvest(here, layer)
    here.upload_until()
    asked = len(layer.asked)
    with write("test"):  # as if the tables of names had learned what NBRHD is
        execute("UPDATE harvests SET plan = json_set(plan, '$.chosen.tax_status', 'NBRHD')")
        execute("UPDATE results SET data = json_set(data, '$.tax_status', 'N7') WHERE parcel_id = '00-0000007'")
    tally = Reparse(here.runtime.folder, here.runtime.registry, PageFilter()).work()
    assert (tally.pages, tally.changed, tally.failed) == (1200, 1200, 0)
    here.upload_until()
    assert here.gateway.state.results["00-0000008", "arcgis", "FL", "Dixie"].data["tax_status"] == "N8"
    assert (len(here.gateway.state.raw_uploads), len(layer.asked)) == (3, asked)
    again = Reparse(here.runtime.folder, here.runtime.registry, PageFilter()).work()
    assert (again.changed, again.unchanged) == (0, 1200)
    here.books_are_right()


def test_results_of_a_page_that_is_given_up_are_not_sent(here: Desk, layer: FeatureServer) -> None:
    harvest(here, layer)
    raw = one_row("SELECT id FROM outbox WHERE topic = 'upload_raw' AND task_id = 'harvest-1-page-1'")[0]
    discard_rows([raw], "test")
    assert here.states("upload_result") == {"parked": 500, "waiting": 700}
    here.upload_until()
    assert len(here.gateway.state.results) == 700
    here.books_are_right()


def test_ids_of_parcels_differ_wherever_their_keys_do() -> None:
    keys = [
        (*place, parcel_id)
        for place in (("arcgis", "FL", "Dixie"), ("arcgis", "FL", "Lee"), ("roll", "FL", "Dixie"))
        for parcel_id in ("00-1", "00-01", "00 1", "00/1", "~1", "x" * 65, "x" * 66, "\u00fc", "00-1 ")
    ]
    assert len({parcel_task_id(*key) for key in keys}) == len(keys)
    assert len({parcel_task_id(*key).rpartition("-")[0] for key in keys if key[3] == "00-1"}) == 3
