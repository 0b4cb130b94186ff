"""On-demand mode: from polling to proof of delivery, with real processes and the reference Gateway."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.db.database import close, open_store
from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.node import Node, interrupt, repeats, wait_until, write_list
from tests.harness.on_demand import gateway_tasks
from tests.harness.pace import slowness

pytestmark = pytest.mark.slow


@pytest.fixture
def stack(worker: Node) -> Iterator[Node]:
    process = worker.start("up", "--mode", "ondemand", LIENWORKER_TASK_EXPIRY="50000")
    wait_until(lambda: worker.is_up("collect"), what="the stack to be up")
    yield worker
    interrupt(process)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def delivered(gateway: ReferenceGateway, n: int) -> bool:
    return len(gateway.state.results) >= n


def assert_raw_before_result(gateway: ReferenceGateway) -> None:
    seen: set[str] = set()
    hashes = {raw.metadata["raw_html_hash"]: raw for raw in gateway.state.raw_uploads}
    for key, versions in gateway.state.history.items():
        for version in versions:
            assert version.row.raw_html_hash in hashes, key
            seen.add(version.row.raw_html_hash)
    assert seen


def test_tasks_are_taken_scraped_and_delivered(stack: Node, gateway: ReferenceGateway, site: DemoSite) -> None:
    gateway.enqueue(*gateway_tasks(site, 40))
    wait_until(lambda: delivered(gateway, 40))
    wait_until(lambda: stack.json("status")["outbox"]["waiting"] == 0)
    assert repeats(site) == 0
    assert {record.state for record in gateway.state.tasks.values()} == {"completed"}
    assert stack.sql("SELECT count(*) FROM results WHERE synced = 1") == [(40,)]
    assert not list((stack.data / "pending").iterdir())
    stack.doctor()


def test_a_failed_task_is_reported(stack: Node, gateway: ReferenceGateway, site: DemoSite) -> None:
    missing = site.odd_parcels()[0]
    task = gateway_tasks(site, 1)[0] | {
        "target": {name: missing[name] for name in ("parcel_id", "state", "county", "url")}
    }
    gateway.enqueue(task)
    wait_until(lambda: gateway.state.tasks["task-1"].state == "failed")


def test_heartbeats_come_and_commands_are_obeyed(stack: Node, gateway: ReferenceGateway) -> None:
    wait_until(lambda: len(gateway.state.heartbeats) >= 2)
    beat = gateway.state.heartbeats[-1].body
    assert set(beat["queue_depth"]) == {"pending", "processing", "completed", "failed", "unsynced", "parked"}
    gateway.configure(sends_commands=True)
    gateway.command("pause")
    wait_until(lambda: stack.json("status")["pauses"])
    gateway.command("resume")
    wait_until(lambda: not stack.json("status")["pauses"])


def test_an_outage_is_survived_and_everything_is_delivered_afterwards(
    stack: Node, gateway: ReferenceGateway, site: DemoSite
) -> None:
    gateway.enqueue(*gateway_tasks(site, 30))
    wait_until(lambda: stack.sql("SELECT count(*) FROM tasks")[0][0] == 30)
    gateway.stop_listening()
    wait_until(lambda: stack.statuses() == {"completed": 30})
    gateway.start_listening()
    wait_until(lambda: delivered(gateway, 30))
    wait_until(lambda: stack.json("status")["outbox"]["waiting"] == 0)
    assert stack.json("status")["outbox"]["parked"] == 0


def test_results_arrive_within_seconds_of_the_end_of_an_outage(
    worker: Node, gateway: ReferenceGateway, site: DemoSite
) -> None:
    """With the patience of real life: after a failure 30 s, then twice as long each time."""
    worker.settings |= {"LIENWORKER_GATEWAY_RETRY": "30", "LIENWORKER_LOG_LEVEL": "warning"}  # nobody reads its log
    open_store(worker.data)
    close()
    assert worker.cli("pause", "--upload").returncode == 0
    gateway.enqueue(*gateway_tasks(site, 300))
    process = worker.start("up", LIENWORKER_TASK_EXPIRY="50000")
    wait_until(lambda: worker.statuses() == {"completed": 300})
    gateway.stop_listening()
    assert worker.cli("resume", "--upload").returncode == 0
    time.sleep(40)
    gateway.start_listening()
    began = time.monotonic()
    wait_until(lambda: delivered(gateway, 1))
    first = time.monotonic() - began
    assert first < 5 * slowness()  # our own patience would take another 50 s
    wait_until(lambda: delivered(gateway, 300))
    print(f"the first result after {first:.1f} s, all of 300 after {time.monotonic() - began:.1f} s")
    interrupt(process)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert output.count("the Gateway takes results again") <= 1


def test_a_refused_token_is_said_in_words_and_costs_no_attempt(
    stack: Node, gateway: ReferenceGateway, site: DemoSite, tmp_path: Path
) -> None:
    gateway.fault("401")
    stack.cli("import", write_list(tmp_path / "parcels.jsonl", site.parcels(10)))
    wait_until(lambda: stack.statuses() == {"completed": 10})
    wait_until(lambda: any(row["is_open"] for row in stack.json("status")["breakers"]))
    assert "nothing is lost" in stack.cli("status").stdout
    assert stack.sql("SELECT max(attempts), max(blame) FROM outbox WHERE topic LIKE 'upload%'") == [(0, 0)]
    gateway.clear_faults()
    wait_until(lambda: delivered(gateway, 10))


def test_standalone_is_silent_and_replay_sends_what_was_held(
    worker: Node, gateway: ReferenceGateway, site: DemoSite, tmp_path: Path
) -> None:
    file = write_list(tmp_path / "parcels.jsonl", site.parcels(20))
    done = worker.cli("run", file, STANDALONE="true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert gateway.state.requests == []
    assert worker.json("status")["outbox"]["held"] == 40
    sent = worker.cli("outbox", "replay", STANDALONE="true")
    assert sent.returncode == 0, sent.stdout + sent.stderr
    assert "40 of 40 rows delivered" in sent.stdout
    assert len(gateway.state.results) == 20
    assert "Nothing to replay" in worker.cli("outbox", "replay").stdout
    worker.doctor()


def test_a_replay_while_the_gateway_is_down_exits_1_and_loses_nothing(
    worker: Node, gateway: ReferenceGateway, site: DemoSite, tmp_path: Path
) -> None:
    worker.cli("run", write_list(tmp_path / "parcels.jsonl", site.parcels(5)), STANDALONE="true")
    gateway.stop_listening()
    failed = worker.cli("outbox", "replay")
    assert failed.returncode == 1, failed.stdout
    assert "nothing is lost" in failed.stderr
    gateway.start_listening()
    again = worker.cli("outbox", "replay")
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(gateway.state.results) == 5


def test_the_check_names_the_platforms_of_the_folder_too(worker: Node, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "quarry.yaml").write_text("fields:\n  parcel_id: '#pid'\n")
    worker.settings["LIENWORKER_PLATFORMS"] = str(tmp_path / "mine")
    assert "quarry" in worker.json("gateway", "check")["would_ask_for"]
