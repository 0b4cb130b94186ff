"""Order within a parcel: after a newer result was stored, an older one is never sent."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from lienworker.db.database import close, execute, one_row, write
from lienworker.hostnames import host_of
from lienworker.operator.rows import hold_rows, release_rows
from lienworker.outbox import transitions
from lienworker.outbox.leases import MOST_CRASHES, free
from lienworker.outbox.outcomes import give_back
from lienworker.outbox.rows import Entry
from lienworker.outbox.states import Topic
from lienworker.outbox.uploads import Claim, claim_uploads
from lienworker.steps.upload.result import prepare_results
from lienworker.store import tasks
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk
from tests.harness.node import PATIENCE

SAME = {"parcel_id": "the-parcel"}


def older_and_newer(here: Desk) -> None:
    """Two tasks of one parcel, scraped one after the other."""
    here.add(1, name="older", **SAME)
    here.next_moment()
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
    here.next_moment()
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
        here.next_moment()
    here.upload_until()
    assert stored_tasks(gateway) == ["p5"]


def test_an_older_urgent_one_does_not_overtake_a_newer_one(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1, name="older", queue="urgent", priority=1, **SAME)
    here.next_moment()
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
        transitions.add([Entry(Topic.FETCH, task_id, tasks.start_generation(task_id), "default", 3, host=host_of(url))])
    here.scrape_waiting()


# A wall clock that was set back


def was_fetched_tomorrow(task_id: str) -> None:
    """The clock was a day ahead when its page was fetched, and has been put right since."""
    with write("test"):
        tomorrow = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day')"
        execute(f"UPDATE results SET fetched_at = {tomorrow} WHERE task_id = ?", (task_id,))


def test_a_newer_result_goes_though_the_delivered_one_seems_to_come_from_tomorrow(
    here: Desk, gateway: ReferenceGateway
) -> None:
    here.add(1, name="older", **SAME)
    was_fetched_tomorrow("older1")
    here.upload_until()
    here.add(1, name="newer", **SAME)
    here.upload_until()
    assert stored_tasks(gateway) == ["older1", "newer1"]


@pytest.mark.parametrize("held_back", ["older1", "newer1", None])
def test_an_older_result_that_seems_to_come_from_tomorrow_does_not_overtake_a_newer_one(
    here: Desk, gateway: ReferenceGateway, held_back: str | None
) -> None:
    older_and_newer(here)
    was_fetched_tomorrow("older1")
    if held_back:
        hold_rows([here.row(held_back, "upload_raw")["id"], here.row(held_back)["id"]], "test")
        here.upload_until()
        with write("test"):
            execute("UPDATE outbox SET state = 'waiting' WHERE state = 'held'")
    here.upload_until()
    assert stored_tasks(gateway)[-1] == "newer1"


def test_two_results_that_both_seem_to_come_from_tomorrow_keep_their_order(
    here: Desk, gateway: ReferenceGateway
) -> None:
    here.add(1, name="older", **SAME)
    was_fetched_tomorrow("older1")
    here.next_moment()
    here.add(1, name="newer", **SAME)
    was_fetched_tomorrow("newer1")
    here.upload_until()
    assert stored_tasks(gateway) == ["newer1"]


# Held


def test_an_older_one_that_was_held_while_the_newer_one_went_is_superseded_when_released(
    here: Desk, gateway: ReferenceGateway
) -> None:
    older_and_newer(here)
    hold_rows([here.row("older1")["id"]], "test")
    here.upload_until()
    release_rows([here.row("older1")["id"]], "test")
    here.upload_until()
    assert stored_tasks(gateway) == ["newer1"]
    assert here.row("older1")["state"] == "superseded"


def test_a_newer_one_that_is_held_does_not_hold_up_the_older_and_goes_when_released(
    here: Desk, gateway: ReferenceGateway
) -> None:
    older_and_newer(here)
    hold_rows([here.row("newer1")["id"]], "test")
    here.upload_until()
    assert stored_tasks(gateway) == ["older1"]
    release_rows([here.row("newer1")["id"]], "test")
    here.upload_until()
    assert stored_tasks(gateway) == ["older1", "newer1"]


# One upload a parcel at a time, across processes


def prepared_by(here: Desk, token: str) -> list[str]:
    """What a process with this token would send now."""
    rows = claim_uploads("upload_result", 100, Claim(token, here.runtime.rules))
    return [row.task_id for row, _ in prepare_results(here.runtime.folder, rows).items]


def test_a_newer_result_waits_while_an_older_one_is_in_the_air_elsewhere(here: Desk) -> None:
    here.add(1, name="older", **SAME)
    here.send_raws()
    assert prepared_by(here, "other.1") == ["older1"]  # on its way now, in another process
    here.next_moment()
    here.add(1, name="newer", **SAME)
    here.send_raws()
    assert prepared_by(here, "mine.1") == []


def test_a_newer_result_waits_while_an_older_one_is_in_the_air_in_another_batch_of_the_same_process(here: Desk) -> None:
    here.add(1, name="older", **SAME)
    here.send_raws()
    assert prepared_by(here, "mine.1") == ["older1"]
    here.next_moment()
    here.add(1, name="newer", **SAME)
    here.send_raws()
    assert prepared_by(here, "mine.1") == []


def test_an_older_result_waits_while_a_newer_one_is_in_the_air_elsewhere(here: Desk) -> None:
    older_and_newer(here)
    with write("test"):
        execute("UPDATE outbox SET due_at = due_at + 2000 WHERE task_id = 'older1'")
    here.send_raws()
    assert prepared_by(here, "other.1") == ["newer1"]
    with write("test"):
        execute("UPDATE outbox SET due_at = due_at - 4000 WHERE task_id = 'older1'")
    here.send_raws()
    assert prepared_by(here, "mine.1") == []


def test_the_gateway_ends_up_with_the_newer_one_though_the_older_call_is_slow(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one's call takes long to reach the Gateway; meanwhile the newer one is scraped and sent by another."""
    client = here.runtime.gateway.open()
    submit = client.submit_results
    began, the_other_is_done = threading.Event(), threading.Event()

    async def slow(items: list[Any]) -> Any:
        if items[0]["task_id"] == "older1":
            began.set()
            assert await asyncio.to_thread(the_other_is_done.wait, PATIENCE)
        return await submit(items)

    monkeypatch.setattr(client, "submit_results", slow)
    here.add(1, name="older", **SAME)
    thread = threading.Thread(target=lambda: (here.upload(), close()))
    thread.start()
    assert began.wait(PATIENCE)
    here.add(1, name="newer", **SAME)
    here.upload()
    assert gateway.state.history == {}, "it waits for the older one"
    the_other_is_done.set()
    thread.join()
    here.upload_until()
    assert stored_tasks(gateway)[-1] == "newer1"


# A newer one that does not come


def test_an_older_result_goes_when_the_newer_ones_raw_file_is_parked(here: Desk, gateway: ReferenceGateway) -> None:
    older_and_newer(here)
    _lose_page(here, "newer1")
    here.upload_until_it(lambda: gateway.state.history)
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
    here.upload_until_it(lambda: gateway.state.history)
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
    here.send_raws()
    rows = claim_uploads("upload_result", 100, Claim("x.1", here.runtime.rules))
    give_back(rows)
    here.upload_until()
    assert len(gateway.state.results) == 3
