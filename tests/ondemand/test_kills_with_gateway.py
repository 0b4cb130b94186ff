"""kill -9 at every point of collect and upload: nothing committed is lost, nothing acknowledged is sent again."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import lienworker
from lienworker.demo.site import DemoSite
from lienworker.gateway.reference import ReferenceGateway
from lienworker.outbox.balance import balances, wrong_tallies
from lienworker.outbox.deliveries import configure
from lienworker.settings import Settings
from lienworker.store.database import all_rows, close, execute, one_row, open_store, write
from lienworker.store.folder import DataFolder
from lienworker.store.pending import clear_away, pending_path
from tests.ondemand.conftest import gateway_tasks
from tests.ondemand.desk import Desk, assert_raw_before_result, desk, desk_settings
from tests.ondemand.errands import Forks
from tests.ondemand.test_parcel_order import another_round

_MODULES = (
    "actors/collect.py",
    "actors/heartbeat.py",
    "actors/upload.py",
    "actors/upload_outcomes.py",
    "intake/work.py",
    "outbox/uploads.py",
)


def points_of(*modules: str) -> list[str]:
    """Every point at which these modules can be killed, read from their source so that none is forgotten."""
    found: dict[str, None] = {}
    for module in modules:
        text = (Path(lienworker.__file__).parent / module).read_text()
        for name in re.findall(r'reach\("([^"]+)"\)', text):
            found[name] = None
        for name in re.findall(r'\bwrite\("([^"]+)"\)', text):
            found |= {f"{name}.before_commit": None, f"{name}.after_commit": None}
    return list(found)


POINTS = points_of(*_MODULES)
#: Only here may tasks be lost that the Gateway handed out: they were never ours.
BEFORE_THEY_ARE_OURS = {"collect.after_reply", "collect.before_commit"}
#: Rows that are parked in this world, whatever happens.
PARKED = {("lost1", "upload_raw", "raw_page_damaged"), ("odd1", "upload_result", "incomplete_key")}


def test_the_points_are_found_in_the_code() -> None:
    assert len(POINTS) >= 30
    assert {"collect.after_reply", "claim_upload.after_commit", "upload_result.before_commit"} <= set(POINTS)


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    running = Forks()
    yield running
    running.close()


@pytest.fixture
def world(tmp_path: Path, gateway: ReferenceGateway, site: DemoSite) -> Settings:
    """A folder in which an upload lane has one of everything to do, and a Gateway with tasks and a hiccup."""
    with desk(tmp_path / "data", gateway) as here:
        here.add(6)
        here.add(1, name="lost")
        (path,) = one_row("SELECT path FROM pages WHERE task_id = 'lost1'")
        (here.runtime.folder.root / path).unlink()
        here.add(1, name="odd", county=None)
        here.add(1, name="again", source="local_file")
        another_round(here, "again1")
        here.add(1, name="older", parcel_id="same")
        with write("test"):  # so that the newer one is there first
            execute("UPDATE outbox SET due_at = due_at + 150 WHERE task_id = 'older1' AND topic = 'upload_raw'")
        time.sleep(0.003)
        here.add(1, name="newer", parcel_id="same")
    close()
    tasks = gateway_tasks(site, 6)
    tasks[3]["target"] = site.odd_parcels()[0]  # does not exist: fails, is reported
    tasks[4]["platform"], tasks[4]["target"] = "demo", {"parcel_id": "no url"}
    gateway.enqueue(*tasks)
    gateway.fault("500", endpoint="work", count=1)
    return desk_settings(tmp_path / "data", gateway)


def time_passes() -> None:
    """A probe that died with its process is given up after two minutes, a beat is due, and so is every row."""
    with write("test"):
        execute("UPDATE breakers SET retry_at = 0")
        execute("UPDATE facts SET value = value - 120000 WHERE name = 'heartbeat_at'")
        execute("UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")


def assert_nothing_is_sent_after_it_was_acknowledged(gateway: ReferenceGateway) -> None:
    """Our commits against the Gateway's own log."""
    ended = {
        (task_id, topic): at / 1000
        for task_id, topic, at in all_rows(
            "SELECT task_id, topic, max(finished_at) FROM outbox WHERE state = 'delivered' GROUP BY 1, 2"
        )
    }
    for raw in gateway.state.raw_uploads:
        task_id = json.loads(raw.metadata)["task_id"]
        assert raw.time <= ended[task_id, "upload_raw"] + 0.002, task_id
    for versions in gateway.state.history.values():
        for version in versions:
            assert version.time <= ended[version.row.task_id, "upload_result"] + 0.002, version.row.task_id
    for call in gateway.state.calls("fail") + gateway.state.calls("complete"):
        assert call.time <= ended[call.path.split("/")[3], "report_failure"] + 0.002, call.path


def assert_all_is_well(gateway: ReferenceGateway, folder: Path, *, may_lose_tasks: bool) -> None:
    states = Counter(row[0] for row in all_rows("SELECT state FROM outbox"))
    parked = set(all_rows("SELECT task_id, topic, reason FROM outbox WHERE state = 'parked'"))
    assert parked == PARKED
    blocked = all_rows("SELECT task_id, reason FROM outbox WHERE state IN ('waiting', 'leased', 'held')")
    assert blocked == [("lost1", "raw_parked")], states
    handed_out = {name for name, record in gateway.state.tasks.items() if record.times_handed_out}
    kept = {row[0] for row in all_rows("SELECT task_id FROM tasks WHERE task_id LIKE 'task-%'")}
    lost = handed_out - kept
    assert len(handed_out) == 6
    assert len(lost) <= (4 if may_lose_tasks else 0)
    closed = {name for name, record in gateway.state.tasks.items() if record.state in {"completed", "failed"}}
    assert kept == closed
    delivered = 6 + 1 + 1 + len(kept - {"task-4", "task-5"})
    assert len(gateway.state.results) == delivered
    assert ("same", "demo", "XX", "Juniper") in gateway.state.results
    assert gateway.state.results["same", "demo", "XX", "Juniper"].task_id == "newer1"
    assert max(len(versions) for versions in gateway.state.history.values()) <= 2
    assert_raw_before_result(gateway)
    assert_nothing_is_sent_after_it_was_acknowledged(gateway)
    assert [side for side in balances() if not side.holds] == []
    assert wrong_tallies() == []
    assert len(gateway.state.heartbeats) >= 1


def run_to_the_end(forks: Forks, world: Settings) -> None:
    open_store(world.data_dir)
    configure("ondemand")
    time_passes()
    close()
    assert forks.run("work", world) == 0
    open_store(world.data_dir)


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_any_point_loses_nothing_and_repeats_nothing(
    forks: Forks, world: Settings, gateway: ReferenceGateway, point: str
) -> None:
    assert forks.run("work", world, point) == -signal.SIGKILL, "the point was never reached"
    run_to_the_end(forks, world)
    assert_all_is_well(gateway, world.data_dir, may_lose_tasks=point in BEFORE_THEY_ARE_OURS)


@pytest.mark.parametrize("point", ["upload_raw.after_reply", "upload_result.after_reply", "report_failure.after_reply"])
def test_replies_lost_after_storing_and_then_a_kill(
    forks: Forks, world: Settings, gateway: ReferenceGateway, point: str
) -> None:
    for endpoint in ("raw", "results", "fail", "complete"):
        gateway.fault("lost_reply", endpoint=endpoint, count=1)
    assert forks.run("work", world, point) == -signal.SIGKILL
    run_to_the_end(forks, world)
    gateway_history = gateway.state.history
    assert {key for key, versions in gateway_history.items() if len(versions) > 4} == set()
    assert_raw_before_result(gateway)
    assert_nothing_is_sent_after_it_was_acknowledged(gateway)
    assert set(all_rows("SELECT task_id, topic, reason FROM outbox WHERE state = 'parked'")) == PARKED


def test_pending_files_are_what_is_not_delivered_after_a_kill_between_commit_and_clearing_away(
    forks: Forks, world: Settings, gateway: ReferenceGateway
) -> None:
    """`doctor` says so otherwise, for ever."""
    assert forks.run("work", world, "upload_result.after_commit") == -signal.SIGKILL
    run_to_the_end(forks, world)
    for path in (world.data_dir / "pending").glob("*.json"):
        os.utime(path, (0, 0))  # an hour later, say
    clear_away(DataFolder(world.data_dir))  # what a worker does when it starts
    there = {f"pending/{path.name}" for path in (world.data_dir / "pending").glob("*.json")}
    unsynced = "SELECT task_id FROM results WHERE synced = 0 AND json_path IS NOT NULL"
    assert there == {pending_path(row[0]) for row in all_rows(unsynced)}


REPLAY_POINTS = points_of(
    "outbox/rows_by_hand.py", "outbox/uploads.py", "actors/upload.py", "actors/upload_outcomes.py"
)


@pytest.mark.parametrize(
    "point", ["rows_by_hand.before_commit", "rows_by_hand.after_commit", "replay_probe.after_commit"]
)
def test_a_replay_killed_at_any_point_is_finished_by_the_same_command(
    forks: Forks, tmp_path: Path, gateway: ReferenceGateway, point: str
) -> None:
    assert point in REPLAY_POINTS
    with desk(tmp_path / "data", gateway) as here:
        configure("standalone")
        here.add(8)
    close()
    settings = desk_settings(tmp_path / "data", gateway)
    assert forks.run("replay", settings, point) == -signal.SIGKILL
    assert forks.run("replay", settings) == 0
    assert len(gateway.state.results) == 8
    assert_raw_before_result(gateway)


def test_a_discard_killed_in_the_middle_leaves_no_result_waiting_for_ever(
    forks: Forks, here: Desk, gateway: ReferenceGateway
) -> None:
    here.add(2)
    assert forks.run("discard", here.runtime.settings, "rows_by_hand.after_commit") == -signal.SIGKILL
    here.upload()
    assert here.states("upload_result") == {"parked": 2}
