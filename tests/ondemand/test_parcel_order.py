"""Order within a parcel: after a newer result was stored, an older one is never sent."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from lienworker.actors.upload_outcomes import prepare_results
from lienworker.gateway.reference import ReferenceGateway
from lienworker.outbox.closing import give_back
from lienworker.outbox.entries import Entry, add_entries
from lienworker.outbox.leases import MOST_CRASHES, free
from lienworker.outbox.registration import host_of
from lienworker.outbox.rows_by_hand import hold_rows
from lienworker.outbox.uploads import Claim, claim_uploads
from lienworker.store import tasks
from lienworker.store.database import close, execute, one_row, write
from tests.ondemand.desk import Desk

SAME = {"parcel_id": "the-parcel"}


def older_and_newer(here: Desk) -> None:
    """Two tasks of one parcel, scraped one after the other."""
    here.add(1, name="older", **SAME)
    time.sleep(0.005)
    here.add(1, name="newer", **SAME)


def stored_tasks(gateway: ReferenceGateway) -> list[str]:
    """Whose results the Gateway stored for the parcel, in order."""
    ((_, versions),) = gateway.state.history.items()
    return [version.row.task_id for version in versions]


def test_an_older_result_that_comes_after_a_newer_one_is_superseded_and_its_task_closed(
    here: Desk, gateway: ReferenceGateway
) -> None:
    here.add(1, name="older", **SAME)
    hold_rows([here.row("older1", "upload_raw")["id"], here.row("older1")["id"]], "test")
    time.sleep(0.005)
    gateway.enqueue({"task_id": "older1", "platform": "demo", "target": {}})
    gateway.state.take_tasks(1, ["demo"], here.runtime.folder.worker_id())
    here.add(1, name="newer", **SAME)
    here.upload()
    with write("test"):
        execute("UPDATE outbox SET state = 'waiting' WHERE state = 'held'")
    here.upload_until()
    assert stored_tasks(gateway) == ["newer1"]
    assert here.row("older1")["state"] == "superseded"
    assert gateway.state.tasks["older1"].state == "completed"
    assert [call.path for call in gateway.state.calls("complete")] == ["/internal/tasks/older1/complete"]
    here.books_are_right()


def test_a_superseded_result_is_no_longer_shown_as_pending(here: Desk, gateway: ReferenceGateway) -> None:
    """Its file would be shipped by hand over the newer one."""
    older_and_newer(here)
    here.upload_until()
    assert here.row("older1")["state"] == "superseded"
    assert not list(here.runtime.folder.pending.iterdir())


def test_of_two_that_wait_together_only_the_newer_is_sent(here: Desk, gateway: ReferenceGateway) -> None:
    older_and_newer(here)
    here.upload_until()
    assert stored_tasks(gateway) == ["newer1"]
    assert here.states("upload_result") == {"delivered": 1, "superseded": 1}
    assert here.states("report_failure") == {"delivered": 1}


def test_of_many_that_wait_together_only_the_newest_is_sent(here: Desk, gateway: ReferenceGateway) -> None:
    for n in range(6):
        here.add(1, start=n, **SAME)
        time.sleep(0.003)
    here.upload_until()
    assert stored_tasks(gateway) == ["p5"]


def test_an_older_urgent_one_does_not_overtake_a_newer_one(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1, name="older", queue="urgent", priority=1, **SAME)
    time.sleep(0.005)
    here.add(1, name="newer", **SAME)
    here.upload_until()
    assert stored_tasks(gateway) == ["newer1"]


def test_the_same_parcel_id_in_another_county_is_another_parcel(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1, name="one", **SAME)
    here.add(1, name="two", county="Cedar", **SAME)
    here.upload_until()
    assert len(gateway.state.results) == 2


def test_another_round_of_a_task_replaces_the_result_of_the_first(here: Desk, gateway: ReferenceGateway) -> None:
    (task_id,) = here.add(1, source="local_file")
    another_round(here, task_id)
    here.upload_until()
    assert len(stored_tasks(gateway)) == 1
    assert one_row("SELECT count(*) FROM results WHERE synced = 1") == (1,)
    assert here.states("upload_raw") == {"delivered": 1, "superseded": 1}
    assert here.states("upload_result") == {"delivered": 1, "superseded": 1}
    here.books_are_right()


def another_round(here: Desk, task_id: str) -> None:
    with write("test"):
        (url,) = one_row("SELECT url FROM tasks WHERE task_id = ?", (task_id,))
        add_entries([Entry("fetch", task_id, tasks.start_generation(task_id), "default", 3, host=host_of(url))])
    here.scrape_waiting()


# One upload a parcel at a time, across processes


def prepared_by(here: Desk, token: str) -> list[str]:
    """What a process with this token would send now."""
    rows = claim_uploads("upload_result", 100, Claim(token, here.runtime.rules))
    return [row.task_id for row, _ in prepare_results(here.runtime, rows).items]


def send_raws(here: Desk) -> None:
    with here.runtime.holder.lease() as token:
        here.uploader(token).send_raws()


def test_a_newer_result_waits_while_an_older_one_is_in_the_air_elsewhere(here: Desk) -> None:
    here.add(1, name="older", **SAME)
    send_raws(here)
    assert prepared_by(here, "other.1") == ["older1"]  # on its way now, in another process
    time.sleep(0.005)
    here.add(1, name="newer", **SAME)
    send_raws(here)
    assert prepared_by(here, "mine.1") == []


def test_an_older_result_waits_while_a_newer_one_is_in_the_air_elsewhere(here: Desk) -> None:
    older_and_newer(here)
    with write("test"):
        execute("UPDATE outbox SET due_at = due_at + 2000 WHERE task_id = 'older1'")
    send_raws(here)
    assert prepared_by(here, "other.1") == ["newer1"]
    with write("test"):
        execute("UPDATE outbox SET due_at = due_at - 4000 WHERE task_id = 'older1'")
    send_raws(here)
    assert prepared_by(here, "mine.1") == []


def test_the_gateway_ends_up_with_the_newer_one_though_the_older_call_is_slow(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one's call takes long to reach the Gateway; meanwhile the newer one is scraped and sent by another."""
    client = here.runtime.gateway_on_loop
    submit = client.submit_results
    began = threading.Event()

    async def slow(items: list[Any]) -> Any:
        if items[0]["task_id"] == "older1":
            began.set()
            await asyncio.sleep(0.6)
        return await submit(items)

    monkeypatch.setattr(client, "submit_results", slow)
    here.add(1, name="older", **SAME)
    thread = threading.Thread(target=lambda: (here.upload(), close()))
    thread.start()
    assert began.wait(5)
    here.add(1, name="newer", **SAME)
    here.upload()
    thread.join()
    here.upload_until()
    assert stored_tasks(gateway)[-1] == "newer1"


# A newer one that does not come


def test_an_older_result_goes_when_the_newer_ones_raw_file_is_parked(here: Desk, gateway: ReferenceGateway) -> None:
    older_and_newer(here)
    _lose_page(here, "newer1")
    here.upload()
    time.sleep(1.1)
    here.upload()
    assert here.row("newer1")["reason"] == "raw_parked"
    assert stored_tasks(gateway) == ["older1"]


def _lose_page(here: Desk, task_id: str) -> None:
    (path,) = one_row("SELECT path FROM pages WHERE task_id = ?", (task_id,))
    (here.runtime.folder.root / path).unlink()


def test_a_raw_file_that_is_parked_because_its_workers_died_shows_its_result_as_blocked(here: Desk) -> None:
    here.add(1)
    _die_with(here, "p1")
    assert here.row("p1", "upload_raw")["state"] == "parked"
    assert here.row("p1")["reason"] == "raw_parked"


def test_an_older_result_goes_when_the_newer_ones_raw_file_was_parked_because_its_workers_died(
    here: Desk, gateway: ReferenceGateway
) -> None:
    older_and_newer(here)
    _die_with(here, "newer1")
    here.upload()
    time.sleep(1.1)
    here.upload()
    assert stored_tasks(gateway) == ["older1"]


def _die_with(here: Desk, task_id: str) -> None:
    """So many workers died with this raw file in hand."""
    with write("test"):
        execute(
            "UPDATE outbox SET state = 'leased', lease_token = 'dead.1', alone = ?1, attempts = ?1"
            " WHERE task_id = ?2 AND topic = 'upload_raw'",
            (MOST_CRASHES - 1, task_id),
        )
    free("dead", blame=True)


def test_a_row_that_was_prepared_and_given_back_is_sent_later(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(3)
    send_raws(here)
    rows = claim_uploads("upload_result", 100, Claim("x.1", here.runtime.rules))
    give_back(rows)
    here.upload_until()
    assert len(gateway.state.results) == 3
