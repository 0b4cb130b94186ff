"""The outbox for people: hold, release, discard and replay, each with its count, its exit code and its audit."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lienworker.cli import cli as lienworker
from lienworker.db.database import all_rows, close, execute, write
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.operator.replay import replay, rows_to_replay
from lienworker.operator.rows import RowFilter
from lienworker.outbox import uploads
from lienworker.outbox.outcomes import configure
from lienworker.outbox.pauses import set_pause_by_hand
from lienworker.outbox.states import Topic
from lienworker.outbox.uploads import Chosen
from lienworker.queries.failures import groups_of_failures
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import (
    Desk,
    assert_nothing_is_sent_after_it_was_acknowledged,
    assert_raw_before_result,
    desk_settings,
)
from tests.harness.node import PATIENCE, Node, interrupt, wait_until
from tests.steps.upload.test_failure_reports import book
from tests.steps.upload.test_uploading import OVERFLOW, park_within, raw_name_of


@pytest.fixture
def cli(here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `lienworker …` in this process: the commands themselves are the point, not the processes."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "LIENWORKER_DATA_DIR": str(here.runtime.folder.root),
        "GATEWAY_URL": gateway.url,
        "GATEWAY_TOKEN": gateway.token,
        "LIENWORKER_GATEWAY_RETRY": "0.05",
    }.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, answer: str | None = None, **more: str) -> Result:
        done = CliRunner().invoke(lienworker, list(arguments), input=answer, env=more)
        configure("ondemand")
        return done

    return run


def ids(topic: str, state: str) -> list[int]:
    return [row[0] for row in all_rows("SELECT id FROM outbox WHERE topic = ? AND state = ?", (topic, state))]


def audit() -> list[tuple[str, str, int]]:
    return all_rows("SELECT action, what, n FROM audit ORDER BY id")


def hold_all(reason: str) -> None:
    with write("test"):
        execute("UPDATE outbox SET state = 'held', reason = ? WHERE topic LIKE 'upload%'", (reason,))


# Hold, release, discard


def test_hold_asks_first_says_how_many_and_is_in_the_audit(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(2)
    here.add(2, name="q", county="Cedar")
    refused = cli("outbox", "hold", "--county", "Cedar", answer="n\n")
    assert refused.exit_code == 1
    assert "4 rows" in refused.output
    assert here.states() == {"waiting": 8}
    assert audit() == []
    done = cli("outbox", "hold", "--county", "Cedar", answer="y\n")
    assert "Hold: 4 rows." in done.output
    assert audit() == [("hold", "county=Cedar", 4)]
    here.upload()
    assert {key[3] for key in gateway.state.results} == {"Juniper"}
    assert all_rows("SELECT DISTINCT reason FROM outbox WHERE state = 'held'") == [("operator",)]


@pytest.mark.parametrize("verb", ["hold", "release", "discard"])
def test_an_action_without_a_filter_is_a_mistake(here: Desk, cli: Any, verb: str) -> None:
    here.add(1)
    assert cli("outbox", verb, "--yes").exit_code == 2
    assert here.states() == {"waiting": 2}


def test_release_lets_go_and_keeps_the_raw_file_first(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(5)
    cli("outbox", "hold", "--county", "Juniper", "--yes")
    assert cli("outbox", "release", "--reason", "operator", "--topic", "upload_result", "--yes").exit_code == 0
    here.upload()
    assert gateway.state.calls("results") == []  # their raw files are still held
    cli("outbox", "release", "--reason", "operator", "--yes")
    here.upload_until()
    assert here.states() == {"delivered": 10}
    assert_raw_before_result(gateway)
    assert [action for action, _, _ in audit()] == ["hold", "release", "release"]


def test_what_standalone_held_stays_held_on_demand_until_it_is_released(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    configure("standalone")
    here.add(3)
    configure("ondemand")
    here.add(1, name="q")
    here.upload_until()
    assert list(gateway.state.results) == [("q-1", "demo", "XX", "Juniper")]
    assert all_rows("SELECT reason, count(*) FROM outbox WHERE state = 'held' GROUP BY 1") == [("standalone", 6)]
    cli("outbox", "release", "--reason", "standalone", "--yes")
    here.upload_until()
    assert len(gateway.state.results) == 4


def test_a_discarded_raw_file_parks_its_result(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(2)
    raw = here.row("p1", "upload_raw")["id"]
    assert "Discard: 1 row." in cli("outbox", "discard", "--id", str(raw), "--yes").output
    here.upload()
    assert here.row("p1")["state"] == "parked"
    assert here.row("p1")["reason"] == "raw_discarded"
    assert len(gateway.state.results) == 1
    assert audit() == [("discard", f"ids {raw}", 1)]
    here.books_are_right()


def test_a_replay_does_not_leave_a_result_waiting_for_a_raw_file_that_was_discarded(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    """Nothing will ever unblock it: it is to stay parked with its reason, or the replay can never end well again."""
    here.add(1)
    cli("outbox", "discard", "--topic", "upload_raw", "--yes")
    cli("outbox", "replay")
    assert (here.row("p1")["state"], here.row("p1")["reason"]) == ("parked", "raw_discarded")


# Replay


def test_a_dry_run_counts_and_touches_nothing(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(3)
    hold_all("standalone")
    done = cli("outbox", "replay", "--dry-run")
    assert done.exit_code == 0
    assert "6 rows to replay" in done.output
    assert here.states() == {"held": 6}
    assert gateway.state.requests == []
    assert audit() == []


def test_a_replay_sends_what_waits_is_parked_or_was_held_by_standalone(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(2)
    configure("standalone")
    here.add(2, name="held")
    configure("ondemand")
    here.add(2, name="mine")
    with write("test"):
        execute("UPDATE outbox SET state = 'held', reason = 'operator' WHERE task_id = 'mine1'")
        execute("UPDATE outbox SET state = 'held', reason = 'drift' WHERE task_id = 'mine2'")
    done = cli("outbox", "replay", STANDALONE="true")
    assert done.exit_code == 0, done.output
    assert "8 of 8 rows delivered" in done.output
    assert here.states() == {"delivered": 8, "held": 4}
    done = cli("outbox", "replay", "--include-held")
    assert done.exit_code == 0, done.output
    assert here.states() == {"delivered": 12}
    assert_raw_before_result(gateway)
    assert [(action, n) for action, _, n in audit()] == [("replay", 8), ("replay", 4)]
    here.books_are_right()


@pytest.mark.parametrize("fault", ["hang", "slow"])
def test_an_interrupted_replay_ends_in_good_order(here: Desk, gateway: ReferenceGateway, fault: str) -> None:
    """Ctrl-C in the middle of calls: the rows in hand wait again, and nothing that was acknowledged goes twice."""
    here.add(60)
    gateway.fault(fault, endpoint="raw", seconds=0.2)
    node = Node(here.runtime.folder.root, GATEWAY_URL=gateway.url, GATEWAY_TOKEN=gateway.token)
    process = node.start("outbox", "replay")
    wait_until(lambda: len(gateway.state.calls("raw")) >= 4, what="calls")
    interrupt(process)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert set(here.states()) <= {"waiting", "delivered"}
    gateway.clear_faults()
    here.everything_is_due()
    here.upload_until()
    assert here.states() == {"delivered": 120}
    assert_nothing_is_sent_after_it_was_acknowledged(gateway)


def test_an_interrupted_replay_first_stores_what_has_landed(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that the Gateway has taken is known to be there, also where Ctrl-C comes before that was stored."""
    here.add(3)
    upload_raw, may_end, landed = GatewayClient.upload_raw, threading.Event(), threading.Semaphore(0)

    async def one_is_late(self: GatewayClient, path: Path, name: str, metadata: Any) -> Any:
        outcome = await upload_raw(self, path, name, metadata)
        if metadata["task_id"] == "p3":
            assert await asyncio.to_thread(may_end.wait, PATIENCE)
        # Not at once: whoever sent it has to hear of it first.
        asyncio.get_running_loop().call_later(0.01, landed.release)
        return outcome

    monkeypatch.setattr(GatewayClient, "upload_raw", one_is_late)

    def interrupt_once_all_have_landed(ended: int, total: int) -> None:
        if here.states("upload_raw").get("delivered") == 2 and not may_end.is_set():
            may_end.set()
            assert all(landed.acquire(timeout=PATIENCE) for _ in range(3))
            signal.raise_signal(signal.SIGINT)

    ids = rows_to_replay(RowFilter(), include_held=False).ids
    settings = desk_settings(here.runtime.folder.root, gateway)
    with pytest.raises(KeyboardInterrupt):
        replay(settings, ids, RowFilter(), interrupt_once_all_have_landed)
    assert here.states("upload_raw") == {"delivered": 3}
    assert here.states("upload_result") == {"waiting": 3}


def test_a_replay_by_id_sends_only_that_row(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(3)
    hold_all("standalone")
    raw = here.row("p2", "upload_raw")["id"]
    assert cli("outbox", "replay", "--id", str(raw)).exit_code == 0
    assert len(gateway.state.raw_uploads) == 1
    assert here.states() == {"delivered": 1, "held": 5}


def test_a_replay_of_results_takes_the_raw_files_along_that_they_wait_for(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(3)
    hold_all("standalone")
    done = cli("outbox", "replay", "--reason", "standalone", "--topic", "upload_result")
    assert done.exit_code == 0, done.output
    assert "3 raw files that they wait for included" in done.output
    assert "6 of 6 rows delivered" in done.output
    assert len(gateway.state.results) == 3
    assert_raw_before_result(gateway)


def test_a_raw_file_that_somebody_holds_is_not_taken_along(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(1)
    cli("outbox", "hold", "--topic", "upload_raw", "--yes")
    done = cli("outbox", "replay", "--topic", "upload_result")
    assert done.exit_code == 1
    assert gateway.state.results == {}
    assert cli("outbox", "replay", "--topic", "upload_result", "--include-held").exit_code == 0
    assert len(gateway.state.results) == 1


def test_a_replay_by_reason_and_since(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(2)
    here.add(1, name="odd")
    gateway.fault("400", endpoint="results", count=1)
    here.send_raws()
    with write("test"):
        execute("UPDATE outbox SET due_at = 9e14 WHERE task_id LIKE 'p%' AND topic = 'upload_result'")
    here.upload()
    assert here.row("odd1")["reason"] == "gateway_refused"
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d")
    assert "Nothing to replay" in cli("outbox", "replay", "--since", tomorrow).output
    assert "Nothing to replay" in cli("outbox", "replay", "--reason", "gateway_failed").output
    assert cli("outbox", "replay", "--reason", "gateway_refused").exit_code == 0
    assert len(gateway.state.results) == 1


def test_what_can_never_be_stored_is_not_offered_and_not_sent(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(1, name="odd", county=None)
    here.upload_until()
    row_id = here.row("odd1")["id"]
    assert {group["command"] for group in groups_of_failures()} == {
        "lienworker tasks fill --all --state STATE --county COUNTY"
    }
    assert "Nothing to replay" in cli("outbox", "replay").output
    done = cli("outbox", "replay", "--id", str(row_id))
    assert done.exit_code == 1
    assert f"Row {row_id} is parked (incomplete_key) and can never be sent as it is" in done.output
    assert here.states("upload_result") == {"parked": 1}


@pytest.mark.parametrize("topic", ["upload_result", "upload_raw"])
def test_a_discarded_result_fails_its_task_at_the_gateway(
    here: Desk, gateway: ReferenceGateway, cli: Any, topic: str
) -> None:
    here.add(2)
    book(here, gateway, "p1")
    cli("outbox", "discard", "--id", str(here.row("p1", topic)["id"]), "--yes")
    here.upload_until()
    assert gateway.state.bookings == {}
    assert [call.path.split("/")[3:] for call in gateway.state.calls("fail")] == [["p1", "fail"]]
    assert "discarded" in here.row("p1", "report_failure")["payload"]
    assert len(gateway.state.results) == 1
    here.books_are_right()


def test_a_discarded_result_of_an_earlier_round_fails_nothing(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(1)
    hold_all("operator")
    old = here.row("p1")["id"]
    with write("test"):
        execute("UPDATE tasks SET generation = generation + 1")
    cli("outbox", "discard", "--id", str(old), "--yes")
    assert here.states("report_failure") == {}


def test_a_replay_that_cannot_deliver_everything_exits_1_and_says_what_is_left(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(1, name="odd", state="Pennsylvania")
    here.add(1)
    done = cli("outbox", "replay")
    assert done.exit_code == 1
    assert "2 of 4 rows delivered" in done.output
    assert "2 parked" in done.output


def test_a_replay_of_a_result_that_a_newer_one_must_precede_ends(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1, name="older", parcel_id="same")
    here.next_moment()
    here.add(1, name="newer", parcel_id="same")
    here.send_raws()
    wanted = RowFilter(ids=(here.row("older1")["id"],))
    ended = threading.Event()
    settings = desk_settings(here.runtime.folder.root, gateway)

    def run() -> None:
        replay(settings, rows_to_replay(wanted, include_held=False).ids, wanted, lambda *_: None)
        ended.set()
        close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    did_end = ended.wait(PATIENCE / 3)
    here.upload_until()  # so that the thread ends in any case
    thread.join(PATIENCE)
    assert did_end


def test_a_replay_does_not_hammer_a_gateway_that_refuses_one_raw_file(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(10)
    gateway.fault("raw_file", names=[raw_name_of(here, "p1")])
    done = cli("outbox", "replay", "--topic", "upload_raw", LIENWORKER_GATEWAY_RETRY="30")
    assert done.exit_code == 1
    assert len(gateway.state.raw_uploads) == 9
    assert len(gateway.state.calls("raw")) <= 9 + 5


def test_a_pause_of_uploads_means_the_same_for_a_replay_with_and_without_a_filter(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    set_pause_by_hand(["upload"], paused=True)
    sent = []
    for filters in ((), ("--county", "Juniper")):
        here.add(2, name="-".join(filters))
        before = len(gateway.state.raw_uploads)
        cli("outbox", "replay", *filters)
        sent.append(len(gateway.state.raw_uploads) > before)
    assert sent[0] == sent[1]


def test_a_replay_beside_a_worker_sends_nothing_twice(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(120)
    gateway.fault("slow", seconds=0.02)
    wanted = RowFilter()
    worker = threading.Thread(target=lambda: (here.upload(), close()))
    worker.start()
    done = replay(
        desk_settings(here.runtime.folder.root, gateway),
        rows_to_replay(wanted, include_held=False).ids,
        wanted,
        lambda *_: None,
    )
    worker.join()
    assert done.is_complete
    assert here.states() == {"delivered": 240}
    assert len(gateway.state.raw_uploads) == 120
    assert {len(versions) for versions in gateway.state.history.values()} == {1}


def test_a_replay_forgives_and_a_row_that_was_parked_for_a_gateway_bug_goes_through(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(20)
    gateway.fault("parcels", names=["p-5"], words=OVERFLOW)
    for n in range(5):
        here.upload()
        here.add(1, start=100 + n)
        here.everything_is_due()
    park_within(here, 4)
    (group,) = groups_of_failures()
    assert group["n"] == 1
    assert "numeric field overflow" in group["sample"]
    gateway.clear_faults()
    assert cli("outbox", "replay", "--fingerprint", group["fingerprint"]).exit_code == 0
    assert here.row("p5")["state"] == "delivered"


def test_the_same_error_on_many_rows_is_one_line_with_a_count(here: Desk, cli: Any) -> None:
    here.add(25, state="Pennsylvania")
    here.upload_until()
    groups = groups_of_failures()
    assert {(group["topic"], group["n"]) for group in groups} == {("upload_raw", 25), ("upload_result", 25)}
    shown = cli("outbox", "status").output
    assert shown.count("key_too_long") == 2
    facts = json.loads(cli("outbox", "status", "--json").output)
    assert [group["n"] for group in facts["failures"]] == [25, 25]


def test_status_has_every_reason_with_its_times_and_the_command_that_sends_it(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(2, name="odd", state="Pennsylvania")
    here.upload_until()
    here.add(3, name="mine", county="Cedar")
    cli("outbox", "hold", "--county", "Cedar", "--topic", "upload_raw", "--yes")
    here.add(1, name="late", county="Levy")
    gateway.fault("503", endpoint="raw")
    here.upload()
    set_pause_by_hand(["upload"], paused=True)
    facts = json.loads(cli("outbox", "status", "--json").output)
    groups = {(group["state"], group["topic"], group["reason"]): group for group in facts["failures"]}
    parked = groups["parked", "upload_result", "key_too_long"]
    held = groups["held", "upload_raw", "operator"]
    waiting = groups["waiting", "upload_raw", "server_error"]
    assert (parked["n"], held["n"], waiting["n"]) == (2, 3, 1)
    assert parked["next_try"] is None
    assert waiting["next_try"] > waiting["last_at"] >= waiting["first_at"] > "20"
    assert held["command"] == "lienworker outbox replay --reason operator --topic upload_raw --include-held"
    shown = cli("outbox", "status").output
    assert parked["command"] is None
    for group in (held, waiting):
        assert group["command"] in shown
    for group in (parked, held, waiting):
        assert group["first_at"] in shown
    assert "Uploads are paused since" in shown
    gateway.clear_faults()
    set_pause_by_hand(["upload"], paused=False)
    assert cli(*waiting["command"].split()[1:]).exit_code == 0
    assert cli(*held["command"].split()[1:]).exit_code == 0
    assert len(gateway.state.raw_uploads) == 4


def test_status_has_no_command_for_what_cannot_go_by_itself(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(2)
    cli("outbox", "discard", "--id", str(here.row("p1", "upload_raw")["id"]), "--yes")
    with write("test"):
        execute(
            "UPDATE outbox SET state = 'parked', reason = 'raw_page_damaged' WHERE task_id = 'p2' AND topic LIKE '%raw'"
        )
        execute("UPDATE outbox SET reason = 'raw_parked' WHERE task_id = 'p2' AND topic = 'upload_result'")
    groups = {group["reason"]: group for group in groups_of_failures()}
    assert groups["raw_discarded"]["command"] is None
    assert groups["raw_parked"]["command"] is None
    assert groups["raw_parked"]["next_try"] == "after its raw file"
    assert groups["raw_page_damaged"]["command"] == (
        "lienworker outbox replay --reason raw_page_damaged --topic upload_raw"
    )


def test_a_replay_of_a_row_that_there_is_not_or_that_cannot_go_exits_1(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(3)
    raw, result, kept = here.row("p1", "upload_raw")["id"], here.row("p1")["id"], here.row("p2", "upload_raw")["id"]
    cli("outbox", "discard", "--id", str(raw), "--yes")
    cli("outbox", "hold", "--id", str(kept), "--yes")
    for row_id, words in ((999999, "no row 999999"), (raw, "discarded"), (result, "raw_discarded"), (kept, "operator")):
        done = cli("outbox", "replay", "--id", str(row_id))
        assert done.exit_code == 1, row_id
        assert words in done.output
    good = here.row("p3", "upload_raw")["id"]
    assert cli("outbox", "replay", "--id", str(good), "--id", "999999").exit_code == 1
    assert len(gateway.state.raw_uploads) == 1
    assert cli("outbox", "replay", "--id", str(good)).exit_code == 0  # it was delivered


def test_a_replay_with_nothing_to_send_names_what_is_held(here: Desk, cli: Any) -> None:
    here.add(1)
    hold_all("operator")
    done = cli("outbox", "replay")
    assert done.exit_code == 0
    assert "Nothing to replay." in done.output
    assert "2 rows are held (operator); `--include-held` sends them." in done.output


def test_since_takes_the_times_that_we_print_and_is_said_in_them(here: Desk, cli: Any) -> None:
    here.add(1)
    rows = json.loads(cli("outbox", "list", "--json").output)
    said = cli("outbox", "replay", "--dry-run", "--since", rows[-1]["created_at"])
    assert said.exit_code == 0
    assert f"2 rows to replay (since {rows[-1]['created_at']})" in said.output
    assert cli("outbox", "replay", "--dry-run", "--since", "yesterday").exit_code == 2


def test_a_list_that_was_cut_says_so(here: Desk, cli: Any) -> None:
    here.add(2)
    assert "3 of 4 rows; --limit 4 shows all." in cli("outbox", "list", "--limit", "3").stderr
    assert cli("outbox", "list", "--limit", "4").stderr == "4 rows.\n"


def test_show_tells_whose_a_row_is_and_what_it_would_send(here: Desk, cli: Any) -> None:
    here.add(1)
    raw, result = (
        json.loads(cli("outbox", "show", str(here.row("p1", topic)["id"]), "--json").output)
        for topic in (
            "upload_raw",
            "upload_result",
        )
    )
    for story in (raw, result):
        assert (story["parcel_id"], story["county"], story["platform"]) == ("p-1", "Juniper", "demo")
        assert Path(story["raw_file"]).is_file()
        assert story["created_at"].endswith("Z")
    assert raw["would_send"]["name"] == raw_name_of(here, "p1")
    assert raw["would_send"]["metadata"]["task_id"] == "p1"
    assert result["would_send"]["parcel_id"] == "p-1"
    assert result["due_at"] == "after its raw file"
    told = cli("outbox", "show", str(result["id"])).output
    assert json.dumps(result["would_send"]["data"], indent=2).splitlines()[1].strip() in told
    assert "…" not in told


def test_show_tells_everything_about_a_row(here: Desk, gateway: ReferenceGateway, cli: Any) -> None:
    here.add(1)
    gateway.fault("503", endpoint="raw")
    here.upload()
    row_id = here.row("p1", "upload_raw")["id"]
    story = json.loads(cli("outbox", "show", str(row_id), "--json").output)
    assert story["errors"][0]["reason"] == "server_error"
    assert "HTTP 503" in story["errors"][0]["error"]
    assert cli("outbox", "show", "999999").exit_code == 1


def test_status_says_when_the_next_try_is_due_and_that_nothing_is_lost(
    here: Desk, gateway: ReferenceGateway, cli: Any
) -> None:
    here.add(1)
    gateway.fault("401")
    here.upload()
    shown = cli("outbox", "status").output
    assert "HTTP 401" in shown
    assert "next try in" in shown
    assert "nothing is lost" in shown
    assert gateway.token not in shown


def test_many_chosen_rows_are_claimed_slice_by_slice(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim looks at a slice of what was chosen, and never again at one in which nothing waits any more."""
    monkeypatch.setattr(Chosen, "_SLICE", 4)
    here.add(20)
    ids = [row[0] for row in all_rows("SELECT id FROM outbox WHERE topic LIKE 'upload%' AND task_id <> 'p7'")]
    looked_at: list[int] = []
    claim_these = uploads.claim_these

    def watched(topic: str, limit: int, token: str, these: Sequence[int]) -> Any:
        looked_at.append(len(these))
        return claim_these(topic, limit, token, these)

    monkeypatch.setattr(uploads, "claim_these", watched)
    with here.runtime.holder.lease() as token:
        uploader = here.uploader(token, ids)
        while uploader.work():  # its time may be over before its work is
            pass
        with write("test"):  # something that was not chosen waits in both lanes, so that a claim looks at the slices
            execute("UPDATE outbox SET due_at = 1 WHERE task_id = 'p7'")
        for topic in (Topic.UPLOAD_RAW, Topic.UPLOAD_RESULT):
            assert uploads.claim_uploads(topic, 10, uploader.claim) == []
        assert uploader.claim.only
        assert uploader.claim.only.slices("upload_raw") == uploader.claim.only.slices("upload_result") == []
    assert max(looked_at) <= 4
    assert len(gateway.state.results) == 19
    assert here.row("p7")["state"] == "waiting"
