"""Uploading: proof of delivery, one row at a time, and the right one blamed."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.hubs.gateway import sanitize
from lienworker.hubs.gateway.outcomes import Kind, Unavailable
from lienworker.hubs.gateway.sanitize import FitResult, fit_stored
from lienworker.hubs.gateway.wire import hashed_raw_name
from lienworker.maintenance.clocks import forgive_clock_jumps
from lienworker.maintenance.upkeep import Chores
from lienworker.outbox import breaker, uploads
from lienworker.outbox.breaker import Failure
from lienworker.outbox.claims import _ROW, _claimed
from lienworker.outbox.leases import WorkerLease
from lienworker.outbox.outcomes import report_failure
from lienworker.outbox.states import NEVER_SENDABLE
from lienworker.outbox.uploads import Claim, UploadLane, claim_uploads
from lienworker.steps.upload import raw, result
from lienworker.steps.upload.raw import prepare_raws
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import (
    PATIENT,
    Desk,
    assert_nothing_is_sent_after_it_was_acknowledged,
    assert_raw_before_result,
    desk,
)
from tests.harness.node import PATIENCE
from tests.steps.upload.test_failure_reports import book

OVERFLOW = "ERROR: numeric field overflow (SQLSTATE 22003)"


async def until_it(is_so: Callable[[], bool]) -> None:
    """Hang on the event loop until this is so; an error where only the end of the hanging could make it so."""
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.01)


def result_calls(gateway: ReferenceGateway) -> int:
    return len(gateway.state.calls("results"))


def no_attempt_is_lost() -> None:
    assert one_row("SELECT max(attempts), max(blame) FROM outbox WHERE topic LIKE 'upload%'") == (0, 0)


def test_everything_goes_out_once_each_raw_file_before_its_result(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(130)
    here.upload()
    assert here.states() == {"delivered": 260}
    assert len(gateway.state.results) == len(gateway.state.raw_uploads) == 130
    assert {len(versions) for versions in gateway.state.history.values()} == {1}
    assert_raw_before_result(gateway)
    assert one_row("SELECT count(*) FROM results WHERE synced = 0") == (0,)
    assert not list(here.runtime.folder.pending.iterdir())
    here.books_are_right()


def test_a_raw_file_arrives_as_it_is_on_disk_under_a_plain_unique_name(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1, parcel_id="../ü " + "x" * 200, county="a/b")
    here.upload()
    (raw,) = gateway.state.raw_uploads
    (path,) = one_row("SELECT path FROM pages")
    assert gateway.state.raw_content(raw.name) == (here.runtime.folder.root / path).read_bytes()
    assert raw.name == raw.sent_name
    assert raw.name.startswith("demo_XX_a-b_u-xxx")
    assert raw.name.endswith(".html.gz")
    assert json.loads(raw.metadata)["task_id"] == "p1"


def test_a_result_names_its_raw_files_when_it_is_sent_and_nowhere_else(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1)
    here.upload()
    (raw,) = gateway.state.raw_uploads
    (sent,) = gateway.state.results.values()
    data, sha256 = one_row("SELECT data, sha256 FROM results JOIN pages USING (task_id)")
    assert sent.data == {**json.loads(data), "_raw": [{"part": "page", "name": raw.name, "sha256": sha256}]}
    assert "_raw" not in json.loads(data)


def test_what_was_sent_keeps_its_name(here: Desk, gateway: ReferenceGateway) -> None:
    """An earlier version has sent the file, under another name; its result goes today."""
    here.add(2)
    gateway.fault("503", endpoint="results")
    here.upload()
    with write("test"):
        execute("UPDATE outbox SET payload = NULL WHERE topic = 'upload_raw' AND task_id = 'p1'")
    gateway.clear_faults()
    here.upload_until()
    names = {key[0]: row.data["_raw"][0]["name"] for key, row in gateway.state.results.items() if row.data}
    sha256 = one_row("SELECT sha256 FROM pages WHERE task_id = 'p1'")[0]
    assert names["p-1"] == hashed_raw_name("demo", "XX", "Juniper", "p-1", sha256, "html.gz")
    assert names["p-2"] in gateway.state.raw_files


def test_two_parcels_with_the_same_page_have_two_raw_files(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.harness.in_process.time.time_ns", lambda: 1)
    here.scraped(
        [here.new_task(1, url="http://county.example/same"), here.new_task(2, url="http://county.example/same")]
    )
    here.upload()
    assert len(gateway.state.raw_files) == 2


# Replies that look like success and are not


@pytest.mark.parametrize("fault", ["lost_reply", "reset", "half_json", "html", "down"])
@pytest.mark.parametrize("endpoint", ["raw", "results", "fail"])
def test_a_reply_that_proves_nothing_is_asked_for_again(
    here: Desk, gateway: ReferenceGateway, fault: str, endpoint: str
) -> None:
    here.add(20)
    here.add(1, name="bad", platform="atlantis")
    with write("test"):
        report_failure("bad1", "why")
    gateway.fault(fault, endpoint=endpoint, count=1)
    here.upload_until()
    assert here.states() == {"delivered": 43}
    assert len(gateway.state.results) == 21
    assert_raw_before_result(gateway)
    assert one_row("SELECT max(attempts) FROM outbox WHERE topic LIKE 'upload%'") == (0,)


@pytest.mark.parametrize("fault", ["hang", "lost_reply"])
def test_a_batch_of_which_part_was_stored_without_a_reply_is_delivered_whole(
    here: Desk, gateway: ReferenceGateway, fault: str
) -> None:
    here.add(10, name="before")
    here.upload()
    here.add(20)
    here.send_raws()
    gateway.fault(fault, endpoint="results", items=7, count=1)
    here.give_up_after(replace(PATIENT, results=3))
    here.upload_until()
    assert [call.stored_part for call in gateway.state.calls("results") if call.fault] == [7]
    assert here.states() == {"delivered": 60}
    assert len(gateway.state.results) == 30
    # Only those that were stored without our hearing of it went out again, once; what was acknowledged never did.
    assert Counter(len(versions) for versions in gateway.state.history.values()) == {1: 23, 2: 7}
    assert_nothing_is_sent_after_it_was_acknowledged(gateway)
    no_attempt_is_lost()
    here.books_are_right()


def test_part_of_a_batch_that_failed_is_found_and_the_rest_is_delivered(
    tmp_path: Path, gateway: ReferenceGateway
) -> None:
    bad = [f"p-{n}" for n in range(3, 90, 6)]  # 15: more than the eleven after which the Gateway stops
    gateway.fault("parcels", names=bad, words=OVERFLOW)
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(100)
        here.upload()
        assert len(gateway.state.results) == 100 - len(bad)
        assert here.states("upload_result") == {"delivered": 100 - len(bad), "waiting": len(bad)}
        gateway.clear_faults()
        here.everything_is_due()
        here.upload_until()
        assert len(gateway.state.results) == 100
        assert here.states() == {"delivered": 200}


def park_within(here: Desk, rounds: int) -> None:
    """Lets time pass until the row is parked."""
    for _ in range(rounds):
        if here.states().get("parked"):
            return
        here.everything_is_due()
        here.upload()


def test_one_refused_item_among_many_is_parked_with_the_gateways_words(
    tmp_path: Path, gateway: ReferenceGateway
) -> None:
    """Refused by its database. In real life its tries are 30 s apart: by then nothing else waits any more."""
    gateway.fault("parcels", names=["p-60"], words=OVERFLOW)
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(120)
        here.upload()
        assert len(gateway.state.results) == 119
        park_within(here, 8)
        assert here.states("upload_result") == {"delivered": 119, "parked": 1}
        assert "numeric field overflow" in here.errors("p60")


def test_one_refused_item_is_parked_also_where_all_the_others_were_in_its_batch(
    here: Desk, gateway: ReferenceGateway
) -> None:
    """Nothing else goes through after it; but the words are those it got while the others were stored."""
    gateway.fault("parcels", names=["p-1"], words=OVERFLOW)
    here.add(60)
    here.send_raws()
    for _ in range(4):
        here.everything_is_due()
        here.upload()
    assert here.states("upload_result") == {"delivered": 59, "parked": 1}
    assert not here.breaker("results")["is_open"]
    assert result_calls(gateway) == 5


def test_one_refused_item_is_parked_once_others_have_gone_through(tmp_path: Path, gateway: ReferenceGateway) -> None:
    gateway.fault("parcels", names=["p-50"], words=OVERFLOW)
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(100)
        here.upload()
        for n in range(6):  # work comes in as it does in real life
            here.add(1, start=2000 + n)
            here.everything_is_due()
            here.upload()
        assert here.states("upload_result") == {"delivered": 105, "parked": 1}
        assert not here.breaker("results")["is_open"]
        assert "numeric field overflow" in here.errors("p50")


def test_a_thousand_results_with_one_that_fails_take_forty_calls_at_most(here: Desk, gateway: ReferenceGateway) -> None:
    gateway.fault("parcels", names=["p-500"], words=OVERFLOW)
    here.add(1000)
    here.upload_until(60)
    assert len(gateway.state.results) == 999
    assert result_calls(gateway) <= 40


def test_one_item_that_spoils_its_batch_with_a_400_is_parked_and_the_rest_delivered(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something that our own checks do not know of: here they are told to let it through."""

    def lenient(item: dict[str, Any], data: str) -> Any:
        if item["parcel_id"] != "p-70":
            return fit_stored(item, data)
        return FitResult({**item, "data": {}, "parse_duration_ms": 1.5})

    monkeypatch.setattr(result, "fit_stored", lenient)
    here.add(140)
    here.upload()
    assert here.states("upload_result") == {"delivered": 139, "parked": 1}
    assert "invalid JSON" in here.errors("p70")
    assert len(gateway.state.results) == 139


def test_everything_failed_blames_the_destination(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(150)
    gateway.fault("database_down", endpoint="results")
    for _ in range(12):
        here.everything_is_due()
        here.upload()
    assert here.states("upload_result") == {"waiting": 150}
    no_attempt_is_lost()
    assert here.breaker("results")["is_open"]
    assert "nothing" in here.breaker("results")["words"]
    gateway.clear_faults()
    here.everything_is_due()
    here.upload_until()
    assert here.states() == {"delivered": 300}


def test_a_database_that_is_down_for_raw_files_blames_the_destination(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(20)
    gateway.fault("database_down", endpoint="raw")
    for _ in range(8):
        here.everything_is_due()
        here.upload()
    assert here.states("upload_raw") == {"waiting": 20}
    no_attempt_is_lost()
    gateway.clear_faults()
    here.everything_is_due()
    here.upload_until()
    assert here.states() == {"delivered": 40}


# One row's own fault


def raw_name_of(here: Desk, task_id: str) -> str:
    sql = f"SELECT {_ROW} FROM outbox o JOIN tasks t USING (task_id) WHERE task_id = ? AND topic = 'upload_raw'"
    row = one_row(sql, (task_id,))
    ((_, file),) = prepare_raws(here.runtime.folder, [_claimed(row, "", 0)])
    return file.name


def test_a_raw_file_that_always_gets_a_500_while_others_pass_ends_parked(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(30)
    gateway.fault("raw_file", names=[raw_name_of(here, "p7")])
    for n in range(8):
        here.upload()
        here.add(3, start=100 + 10 * n)
        here.everything_is_due()
    here.upload()
    assert here.states("upload_raw") == {"delivered": 53, "parked": 1}
    assert "failed to store file" in here.errors("p7")
    assert here.row("p7")["reason"] == "raw_parked"
    assert not here.breaker("raw")["is_open"]
    assert len(gateway.state.results) == 53
    here.books_are_right()


def test_an_urgent_raw_file_that_always_gets_a_500_does_not_keep_the_breaker_open(
    here: Desk, gateway: ReferenceGateway
) -> None:
    """It is alone at first, so the breaker opens; then others come, with a lower rank than its own."""
    here.add(1, name="bad", queue="urgent", priority=1)
    gateway.fault("raw_file", names=[raw_name_of(here, "bad1")])
    here.upload()
    assert here.breaker("raw")["is_open"]
    here.add(3)
    here.upload_until_it(lambda: len(gateway.state.results) == 3)


def test_a_result_that_makes_the_gateway_crash_does_not_stop_its_neighbours(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any batch with it in it gets a 500: not in the contract, but promise 5 speaks of it."""
    client = here.runtime.gateway.open()
    submit = client.submit_results
    calls = []

    async def crashing(items: list[Any]) -> Any:
        calls.append(len(items))
        if any(item["parcel_id"] == "p-50" for item in items):
            return Unavailable(Kind.SERVER_ERROR, "HTTP 500: internal server error")
        return await submit(items)

    monkeypatch.setattr(client, "submit_results", crashing)
    here.add(100)
    for _ in range(30):  # half an hour and more of real time
        here.everything_is_due()
        here.upload()
    assert len(gateway.state.results) == 99
    assert here.states("upload_result") == {"delivered": 99, "parked": 1}


def test_a_gateway_that_fails_three_calls_in_ten_parks_no_innocent_row(
    tmp_path: Path, gateway: ReferenceGateway
) -> None:
    """With 30 % of all calls failing by chance, one row in a hundred fails four times in a row."""
    gateway.fault("500", endpoint="raw", probability=0.3, seed=1)
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="0.01") as here:
        here.add(300)
        for _ in range(100):
            here.everything_is_due()
            here.upload()
            if here.states("upload_raw").keys() <= {"delivered", "parked"}:
                break
        assert here.states("upload_raw") == {"delivered": 300}


# The destination's fault


@pytest.mark.parametrize("fault", ["401", "403"])
def test_a_refused_token_costs_no_attempt_and_delivery_resumes_by_itself(
    here: Desk, gateway: ReferenceGateway, fault: str
) -> None:
    here.add(20)
    gateway.fault(fault)
    for _ in range(20):  # an hour of probes
        here.everything_is_due()
        here.upload()
    assert here.states("upload_raw") == {"waiting": 20}
    no_attempt_is_lost()
    assert fault in here.breaker("raw")["words"]
    assert len(gateway.state.calls("raw")) <= 4 + 20  # the first ones, then one each probe
    gateway.clear_faults()
    here.everything_is_due()
    here.upload_until()
    assert here.states() == {"delivered": 40}


@pytest.mark.parametrize("fault", ["500", "401", "down"])
def test_a_gateway_that_answers_nobody_is_not_asked_by_every_row(
    tmp_path: Path, gateway: ReferenceGateway, fault: str
) -> None:
    gateway.fault(fault, endpoint="raw")
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(100)
        here.runtime.bounds.raw.now = 8
        here.upload()
        assert len(gateway.state.calls("raw")) <= 8
        assert here.states("upload_raw") == {"waiting": 100}
        assert here.breaker("raw")["is_open"]
        no_attempt_is_lost()
        tried = one_row("SELECT count(*) FROM outbox WHERE seen_successes IS NOT NULL")
        assert tried[0] <= 8  # those that had not left are as they were


@pytest.mark.parametrize("kind", ["429", "429-date"])
@pytest.mark.parametrize("endpoint", ["raw", "results"])
def test_a_pause_that_the_gateway_asks_for_is_kept(
    here: Desk, gateway: ReferenceGateway, kind: str, endpoint: str
) -> None:
    here.add(3)
    gateway.fault(kind, endpoint=endpoint, seconds=2)
    here.upload()
    before = len(gateway.state.calls(endpoint))
    gateway.clear_faults()
    here.upload_until(30)  # not for the minutes that a breaker may wait
    calls = gateway.state.calls(endpoint)
    assert calls[before].time - calls[before - 1].time >= (1.0 if kind == "429-date" else 1.99)  # dates have seconds
    assert here.states() == {"delivered": 6}
    no_attempt_is_lost()


def test_a_pause_is_kept_though_calls_that_were_under_way_succeed_later(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(12)
    gateway.fault("429", endpoint="raw", seconds=2, count=2)
    gateway.fault("slow", endpoint="raw", seconds=0.4, count=2)  # of the first four calls, two are refused at once
    here.upload()
    first = next(call for call in gateway.state.calls("raw") if call.status == 429)
    before_its_end = [call.time - first.time for call in gateway.state.calls("raw") if call.time - first.time < 1.9]
    assert len(before_its_end) <= 4, "only those that were under way"


def test_a_pause_is_not_shortened_by_a_failure_of_a_call_that_was_under_way(here: Desk) -> None:
    """Two calls under way together: one gets a 429 for a minute, the other, a moment later, a reset."""
    with write("test"):
        breaker.record_failure("raw", Failure("rate_limited", "HTTP 429", 60.0), 0.05)
        breaker.record_failure("raw", Failure("reset", "the connection broke", None), 0.05)
    assert here.breaker("raw")["retry_at"] - now_ms() > 50_000


def test_a_breaker_does_not_wait_for_a_time_that_only_a_wrong_clock_knew(here: Desk) -> None:
    with write("test"):
        breaker.record_failure("raw", Failure("down", "no connection", None), 0.05)
        execute("UPDATE breakers SET retry_at = retry_at + 365 * 86400000")
    forgive_clock_jumps()
    assert here.breaker("raw")["retry_at"] - now_ms() < 400_000


def test_the_breaker_probes_with_another_row_each_time(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(6)
    here.runtime.bounds.raw.now = 6
    gateway.fault("503", endpoint="raw")
    here.upload()
    for _ in range(6):
        with write("test"):
            execute("UPDATE breakers SET retry_at = 0")
            execute("UPDATE outbox SET due_at = due_at - 10000 WHERE state = 'waiting' AND due_at < 9e14")
        here.upload()
    tries = Counter(row[0] for row in all_rows("SELECT task_id FROM attempts WHERE topic = 'upload_raw'"))
    assert set(tries.values()) == {2}, tries


def open_breaker(endpoint: str) -> None:
    """It was open for a while, and the time for a probe has come."""
    with write("test"):
        execute(
            "INSERT OR REPLACE INTO breakers (endpoint, is_open, retry_at, failures) VALUES (?, 1, 0, 1)", (endpoint,)
        )


def test_a_probe_whose_result_is_not_fit_does_not_keep_the_breaker_open(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(2, name="odd", county=None)
    here.add(3)
    open_breaker("results")
    here.upload_until()
    assert len(gateway.state.results) == 3


def test_a_probe_whose_raw_file_is_lost_does_not_keep_the_breaker_open(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(3, name="lost")
    for path in here.runtime.folder.raw.rglob("*.gz"):
        path.unlink()
    here.add(3)
    open_breaker("raw")
    here.upload_until_it(lambda: len(gateway.state.results) == 3)  # those of the lost ones are blocked and wait on


def test_a_probe_that_is_called_back_before_it_left_does_not_keep_the_breaker_open(
    here: Desk, gateway: ReferenceGateway
) -> None:
    here.add(3)
    open_breaker("raw")
    with here.runtime.holder.lease() as token:
        lane = here.uploader(token).raws
        lane._in_flight._open_lanes = lambda: None  # type: ignore[method-assign]  # nothing leaves
        assert lane.set_out() == 1
        assert here.breaker("raw")["is_probing"]
        lane.call_back()
    here.upload_until()
    assert len(gateway.state.results) == 3


def test_a_probe_that_fails_just_after_others_went_through_does_not_keep_the_breaker_open(
    here: Desk, gateway: ReferenceGateway
) -> None:
    """They were under way when the breaker opened: the failure says little, and so the next probe is at once."""
    here.add(4)
    open_breaker("raw")
    with write("test"):
        breaker.remember("raw", replace(breaker.known("raw"), last_calls="aaa"))
    gateway.fault("500", endpoint="raw", count=1)
    here.upload_until()
    assert len(gateway.state.results) == 4


def test_a_probe_that_is_refused_does_not_keep_the_breaker_open(here: Desk, gateway: ReferenceGateway) -> None:
    """A refusal is an answer: the destination is there."""
    here.add(1, name="refused")
    here.add(3)
    open_breaker("raw")
    gateway.fault("400", endpoint="raw", count=1)
    here.upload_until_it(lambda: len(gateway.state.results) == 3)
    assert here.row("refused1", "upload_raw")["state"] == "parked"


# Values that the Gateway would choke on


def test_values_that_the_gateway_would_choke_on_are_made_fit(here: Desk, gateway: ReferenceGateway) -> None:
    odd = {"nul": "a\0b", "nan": float("nan"), "huge": 2**53 + 1, "list": [float("inf"), {"k\0": 2**70}]}
    here.scraped([here.new_task(1)], **odd)
    here.upload()
    ((key, row),) = gateway.state.results.items()
    assert key == ("p-1", "demo", "XX", "Juniper")
    assert row.data is not None
    assert row.data["nul"] == "ab"
    assert row.data["nan"] is None
    assert row.data["huge"] == str(2**53 + 1)
    assert row.data["list"] == [None, {"k": str(2**70)}]
    assert result_calls(gateway) == 1


def test_half_a_character_in_a_result_is_delivered(here: Desk, gateway: ReferenceGateway) -> None:
    """A county's JSON may hold half of a surrogate pair; it costs neither the result nor its neighbours."""
    half = json.loads('"\\ud800"')
    here.scraped([here.new_task(1)], owner_name=f"Ann {half}")
    here.upload()
    assert len(gateway.state.results) == 1


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("state", "Pennsylvania", "key_too_long"),
        ("parcel_id", "x" * 256, "key_too_long"),
        ("county", "x" * 256, "key_too_long"),
        ("parcel_id", "a\0b", "key_not_storable"),
        ("county", None, "incomplete_key"),
        ("state", None, "incomplete_key"),
        ("parcel_id", None, "incomplete_key"),
        ("county", "  ", "incomplete_key"),
    ],
)
def test_a_result_with_an_impossible_key_is_parked_before_it_is_sent(
    here: Desk, gateway: ReferenceGateway, field: str, value: Any, reason: str
) -> None:
    here.add(1, name="odd", **{field: value})
    here.add(2)
    here.upload()
    row = here.row("odd1")
    assert (row["state"], row["reason"]) == ("parked", reason)
    assert len(gateway.state.results) == 2
    assert [call.items for call in gateway.state.calls("results")] == [2]
    here.books_are_right()


def test_a_result_that_can_never_be_stored_sends_no_raw_file_and_fails_its_task(
    here: Desk, gateway: ReferenceGateway
) -> None:
    book(here, gateway, "odd1")
    here.add(1, name="odd", state="Ninechars")
    here.add(2)
    here.upload_until()
    assert gateway.state.bookings == {}
    assert len(gateway.state.raw_uploads) == 2
    assert (here.row("odd1", "upload_raw")["state"], here.row("odd1")["state"]) == ("parked", "parked")
    calls = gateway.state.calls("fail")
    assert [call.path.split("/")[3] for call in calls] == ["odd1"]
    assert here.row("odd1", "report_failure")["state"] == "delivered"
    assert "key_too_long" in here.row("odd1", "report_failure")["payload"]
    assert "state has 9 characters" in here.errors("odd1")
    here.books_are_right()


def test_data_that_can_never_be_stored_fails_its_task_too(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1)
    with write("test"):
        execute("UPDATE results SET data = ?", ("[]",))
    here.upload_until()
    assert (here.row("p1")["state"], here.row("p1")["reason"]) == ("parked", "data_not_object")
    assert here.row("p1", "report_failure")["state"] == "delivered"


def test_every_reason_for_which_a_result_is_never_sent_is_known() -> None:
    source = Path(sanitize.__file__).read_text("utf-8")
    reasons = set(re.findall(r'_UnfitError\("(\w+)"|Unfit\("(\w+)"', source))
    assert {one or other for one, other in reasons} <= set(NEVER_SENDABLE)


# What a failure of our own leaves behind


def test_rows_in_hand_are_free_again_when_storing_their_outcome_fails(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk or a locked database in the middle of an upload, in a process that lives on."""

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    here.add(4)
    with monkeypatch.context() as broken:
        broken.setattr(raw, "store_raws", full)
        with pytest.raises(sqlite3.OperationalError):
            here.upload()
    here.everything_is_due()
    here.upload()
    assert here.states() == {"delivered": 8}
    no_attempt_is_lost()


def test_rows_in_hand_are_free_again_when_not_even_giving_them_back_works(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full for a while, also for giving rows back; the process lives on and so do its beats."""
    here.add(4)
    with here.runtime.holder.lease() as token:
        assert here.uploader(token).claim
        claim_uploads("upload_raw", 4, Claim(token, here.runtime.rules))
    for _ in range(3):
        here.runtime.holder.beat()
        here.runtime.holder._watch.reap_dead_workers()
    here.upload()
    assert here.states() == {"delivered": 8}


# Neighbours


def test_a_failure_that_others_survive_does_not_stop_the_lane(tmp_path: Path, gateway: ReferenceGateway) -> None:
    """The one that fails is the quickest; the others are still in the air when the breaker hears of it."""
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(12)
        gateway.fault("500", endpoint="raw", count=1)
        gateway.fault("slow", endpoint="raw", seconds=0.4, count=3)
        here.upload()
        assert here.states("upload_raw") == {"delivered": 11, "waiting": 1}


def test_one_slow_raw_file_does_not_hold_back_the_results_of_others(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = here.runtime.gateway.open()
    upload_raw = client.upload_raw

    async def slow(path: Path, name: str, metadata: Any) -> Any:
        if metadata["task_id"] == "p3":
            await until_it(lambda: len(gateway.state.results) >= 15)
        return await upload_raw(path, name, metadata)

    monkeypatch.setattr(client, "upload_raw", slow)
    here.add(20)
    here.upload()
    assert len(gateway.state.results) == 20


def test_a_slow_raw_file_does_not_make_a_message_go_on_for_ever(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over after a while, whatever comes in meanwhile; nothing that waits in the queue is lost by that."""
    here.add(200)
    gateway.fault("slow", endpoint="raw", seconds=0.05)
    with here.runtime.holder.lease() as token:
        assert here.uploader(token).work(share=0.3)  # there is more
    states = here.states("upload_raw")
    assert set(states) == {"delivered", "waiting"}
    gateway.clear_faults()
    here.upload_until()
    assert here.states() == {"delivered": 400}
    assert len(gateway.state.raw_uploads) == 200


def test_a_batch_that_hangs_holds_back_no_raw_file(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hanging(_: Any) -> Any:
        await until_it(lambda: len(gateway.state.raw_uploads) == 23)
        return Unavailable(Kind.TIMEOUT, "it hung")

    monkeypatch.setattr(here.runtime.gateway.open(), "submit_results", hanging)
    here.add(3)
    here.send_raws()
    here.add(20, name="q")
    here.runtime.bounds.raw.now = 1  # so that most of them leave while the batch hangs
    here.upload()
    assert here.states("upload_raw") == {"delivered": 23}
    assert here.states("upload_result") == {"waiting": 23}


def test_a_full_batch_goes_while_another_is_under_way(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = here.runtime.gateway.open()
    submit = client.submit_results

    async def hanging(items: list[Any]) -> Any:
        if any(item["task_id"] == "p1" for item in items):
            await until_it(lambda: len(gateway.state.results) == 5)
        return await submit(items)

    monkeypatch.setattr(client, "submit_results", hanging)
    here.add(10)
    here.send_raws()
    here.runtime.bounds.result.now = 5
    here.upload()
    assert here.states("upload_result") == {"delivered": 10}
    assert result_calls(gateway) == 2


def test_a_trickle_of_results_gathers_while_a_batch_is_under_way(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = here.runtime.gateway.open()
    submit, may_land = client.submit_results, asyncio.Event()

    async def hanging(items: list[Any]) -> Any:
        await may_land.wait()
        return await submit(items)

    monkeypatch.setattr(client, "submit_results", hanging)
    with here.runtime.holder.lease() as token:
        uploader = here.uploader(token)
        here.add(1)
        here.send_raws()
        assert uploader.results.set_out(1, is_last=True) == 1
        here.add(2, name="q")
        here.send_raws()
        assert uploader.results.set_out(2, is_last=True) == 0
        here.runtime.gateway.loop.call_soon_threadsafe(may_land.set)
        uploader.work()
    assert [call.items for call in gateway.state.calls("results")] == [1, 2]


def test_a_probe_does_not_wait_behind_a_raw_file_that_hangs(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The breaker opened while some files hang; the Gateway is well again long before they are given up."""
    client = here.runtime.gateway.open()
    upload_raw = client.upload_raw

    async def hanging(path: str, name: str, metadata: Any) -> Any:
        if metadata["task_id"] in {"p1", "p2"}:
            await until_it(lambda: len(gateway.state.raw_uploads) >= 10)
        return await upload_raw(path, name, metadata)

    monkeypatch.setattr(client, "upload_raw", hanging)
    gateway.fault("401", endpoint="raw", count=2)
    here.add(12)
    here.runtime.bounds.raw.now = 4
    here.upload()
    ids = [json.loads(raw.metadata)["task_id"] for raw in gateway.state.raw_uploads]
    assert set(ids[-2:]) == {"p1", "p2"}
    assert len(ids) == 12


def test_a_stop_while_a_batch_hangs_is_quick_and_leaves_its_rows_as_they_were(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    did_end = False

    async def hanging(_: Any) -> Any:
        nonlocal did_end
        here.runtime.stopping.set()
        await asyncio.sleep(PATIENCE)
        did_end = True

    monkeypatch.setattr(here.runtime.gateway.open(), "submit_results", hanging)
    here.add(5)
    here.send_raws()
    here.upload()
    assert here.runtime.stopping.is_set()
    assert not did_end, "it waited for a call that hangs"
    assert here.states("upload_result") == {"waiting": 5}
    assert one_row("SELECT max(attempts), max(alone) FROM outbox") == (0, 0)


def test_the_tries_of_a_result_are_counted(tmp_path: Path, gateway: ReferenceGateway) -> None:
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(1)
        here.add(1, name="odd", county=None)
        gateway.fault("503", endpoint="results", count=1)
        here.upload()
        rows = dict(all_rows("SELECT task_id, sync_attempts || ' ' || last_error FROM results"))
        assert rows["p1"].startswith("1 HTTP 503")
        assert rows["odd1"].startswith("0 county is empty")  # it was never offered
        here.everything_is_due()
        here.upload_until()
        assert one_row("SELECT sync_attempts, last_error, synced FROM results WHERE task_id = 'p1'") == (2, None, 1)


def test_a_pause_that_comes_with_a_503_is_kept_before_the_batch_is_taken_apart(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    async def busy(items: list[Any]) -> Any:
        calls.append(len(items))
        return Unavailable(Kind.SERVER_ERROR, "HTTP 503: come back later", retry_after=60.0)

    here.add(20)
    here.send_raws()
    monkeypatch.setattr(here.runtime.gateway.open(), "submit_results", busy)
    here.upload()
    assert calls == [20]
    assert here.breaker("results")["retry_at"] - now_ms() > 50_000


def test_a_database_that_goes_down_parks_no_row_that_failed_once_before(
    tmp_path: Path, gateway: ReferenceGateway
) -> None:
    """One row failed by itself for a reason of its own; then the database goes down, and only that row is left."""
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(20)
        here.send_raws()
        gateway.fault("parcels", names=["p-5"], words=OVERFLOW)
        here.upload()
        assert here.states("upload_result") == {"delivered": 19, "waiting": 1}
        gateway.clear_faults()
        gateway.fault("database_down", endpoint="results")
        for _ in range(10):
            here.everything_is_due()
            here.upload()
        assert here.states("upload_result") == {"delivered": 19, "waiting": 1}
        gateway.clear_faults()
        here.everything_is_due()
        here.upload()
        assert here.states("upload_result") == {"delivered": 20}


# What goes out is what was checked


@pytest.mark.parametrize("damage", [lambda page: page + b"more", lambda page: page[:-1], lambda page: b""])
def test_a_raw_file_that_is_not_the_page_behind_the_result_never_goes_out(
    here: Desk, gateway: ReferenceGateway, damage: Callable[[bytes], bytes]
) -> None:
    here.add(2)
    ((path,),) = all_rows("SELECT path FROM pages WHERE task_id = 'p1'")
    file = here.runtime.folder.root / path
    file.write_bytes(damage(file.read_bytes()))
    here.upload()
    assert (here.row("p1", "upload_raw")["state"], here.row("p1", "upload_raw")["reason"]) == (
        "parked",
        "raw_page_damaged",
    )
    assert [json.loads(raw.metadata)["task_id"] for raw in gateway.state.raw_uploads] == ["p2"]


@pytest.fixture
def much_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing counts as left lying because this machine is slow."""
    monkeypatch.setattr(uploads, "_LEFT_LYING_MS", 600_000)


def test_one_process_sends_while_little_waits_and_others_help_with_much(here: Desk, much_patience: None) -> None:
    lane = UploadLane("upload", 16)
    here.add(100)
    with WorkerLease(here.runtime.folder, "worker", 4), here.runtime.holder.lease() as token:
        assert lane.due(here.runtime.rules, 32) == 16
        claim_uploads("upload_raw", 4, Claim(token, here.runtime.rules))
        assert lane.due(here.runtime.rules, 32) == 0
        here.add(300, start=1000)
        assert lane.due(here.runtime.rules, 32) == 16


def test_another_process_takes_what_the_one_that_sends_leaves_lying(here: Desk, much_patience: None) -> None:
    lane = UploadLane("upload", 16)
    here.add(10)
    with here.runtime.holder.lease() as token:
        claim_uploads("upload_raw", 4, Claim(token, here.runtime.rules))
        assert lane.due(here.runtime.rules, 32) == 0
        with write("test"):
            execute("UPDATE outbox SET due_at = due_at - 601000 WHERE topic = 'upload_raw'")
        assert lane.due(here.runtime.rules, 32) == 16


# Files for people


def test_a_result_that_is_delivered_at_once_never_has_a_file(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(3)
    pending = here.runtime.folder.pending
    assert not list(pending.iterdir())
    here.upload_until()
    assert not list(pending.iterdir())


def test_a_result_that_is_late_has_a_file_until_it_is_delivered(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(3)
    with write("test"):
        execute("UPDATE results SET scraped_at = ?", (rfc3339(now_ms() - 20_000),))
    Chores(here.runtime.folder, here.runtime.settings).do()
    pending = here.runtime.folder.pending
    assert len(list(pending.iterdir())) == 3
    here.upload_until()
    assert not list(pending.iterdir())


# One endpoint answers again


def all_breakers(here: Desk) -> dict[str, int]:
    return {row["endpoint"]: row["is_open"] for row in breaker.breakers()}


def open_both(here: Desk, kind: str, words: str = "away") -> None:
    with write("test"):
        breaker.record_failure("raw", Failure("server_error", "HTTP 503", None), 300)
        breaker.record_failure("results", Failure(kind, words, None), 300)
        execute("UPDATE breakers SET retry_at = 0 WHERE endpoint = 'raw'")


@pytest.mark.parametrize("kind", ["down", "server_error", "failed"])
def test_when_one_endpoint_answers_again_the_others_probe_at_once(
    here: Desk, gateway: ReferenceGateway, kind: str
) -> None:
    here.add(3)
    open_both(here, kind)
    here.upload()
    assert all_breakers(here) == {"raw": 0, "results": 0}
    assert len(gateway.state.results) == 3


@pytest.mark.parametrize("kind", ["auth", "rate_limited"])
def test_a_refused_token_and_a_pause_are_not_ended_by_an_answer_elsewhere(
    here: Desk, gateway: ReferenceGateway, kind: str
) -> None:
    here.add(3)
    open_both(here, kind)
    here.upload()
    assert all_breakers(here) == {"raw": 0, "results": 1}
    assert gateway.state.calls("results") == []


def test_ordinary_successes_probe_nothing(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(3)
    with write("test"):
        breaker.record_failure("results", Failure("server_error", "HTTP 503", None), 300)
    here.upload()
    assert len(gateway.state.raw_uploads) == 3
    assert gateway.state.calls("results") == []


def test_rows_that_found_nobody_go_as_soon_as_somebody_is_there(tmp_path: Path, gateway: ReferenceGateway) -> None:
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="300") as here:
        here.add(3)
        here.send_raws()
        gateway.stop_listening()
        here.upload()
        gateway.start_listening()
        assert here.states("upload_result") == {"waiting": 3}
        here.add(1, name="new")
        with write("test"):
            breaker.record_failure("raw", Failure("down", "away", None), 300)
            execute("UPDATE breakers SET retry_at = 0 WHERE endpoint = 'raw'")
        here.upload_until_it(lambda: len(gateway.state.results) == 4)


def test_a_gateway_that_is_away_is_looked_for_a_tenth_of_the_time_after_it_left(here: Desk) -> None:
    """Twelve probes or so find one that was away for a minute, and some sixty one that was away for an hour."""
    now, probes = 0.0, 0
    with write("test"):
        breaker.record_failure("raw", Failure("down", "away", None), 30)
        while now < 3600:
            execute("UPDATE breakers SET is_probing = 1, since = ?", (rfc3339(now_ms() - int(1000 * now)),))
            wait = (breaker.record_failure("raw", Failure("down", "away", None), 30) - now_ms()) / 1000
            assert wait <= max(3.0, now / 10) * 1.2 + 0.1
            now, probes = now + wait, probes + 1
    assert 40 <= probes <= 90
