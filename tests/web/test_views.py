"""What the monitor shows and does, over real HTTP."""

from __future__ import annotations

import csv
import io
import re
import time

import aiohttp
import pytest

from lienworker.demo.site import DemoSite
from tests.node import Node, wait_until
from tests.web.monitor import Monitor, monitor
from tests.web.seed import COMPLETED, FAILED, PARKED

pytestmark = pytest.mark.slow
GROUP = "state=parked&topic=upload_raw&reason=gateway_refused&fingerprint=f1"


def act(here: Monitor, path: str, **fields: str):
    return here.ask(path, "POST", data={"csrf": here.csrf(), "back": "/outbox", **fields})


def fields_of(text: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))


def test_the_overview_says_how_it_is_in_words_and_counts(here: Monitor) -> None:
    facts = here.ask("/api/overview").json
    assert facts["tasks"] == {"pending": 0, "processing": 0, "completed": 2, "failed": 1, "expired": 0}
    assert "nothing waits to be scraped" in facts["health"]["words"].lower()
    assert "3 uploads are parked" in facts["health"]["words"]
    assert facts["charts"][0]["completed"] == 2
    assert facts["failures"][0]["reason"] == "captcha"
    text = here.ask("/").text
    assert facts["health"]["words"] in text
    assert "2 completed, 1 failed" in text


def test_the_charts_survive_a_restart(seeded: Node) -> None:
    for _ in range(2):
        with monitor(seeded) as here:
            assert here.ask("/api/overview").json["charts"][1]["completed"] == 2


def test_tasks_are_found_by_each_filter(here: Monitor) -> None:
    for query, wanted in (
        ("", {COMPLETED, FAILED, PARKED}),
        ("status=failed", {FAILED}),
        ("reason=captcha", {FAILED}),
        ("county=Dixie&platform=demo&source=local_file&queue=default&status=completed", {COMPLETED, PARKED}),
        ("county=Levy", set()),
        ("text=7-TASK-done", {COMPLETED}),
        ("text=county.example/task-failed", {FAILED}),
        ("queue=urgent", set()),
    ):
        rows = here.ask(f"/api/tasks?{query}").json["rows"]
        assert {row["task_id"] for row in rows} == wanted, query


def test_one_task_tells_its_whole_story(here: Monitor) -> None:
    story = here.ask(f"/api/tasks/{FAILED}").json
    assert story["task"]["reason"] == "captcha"
    assert [step["topic"] for step in story["steps"]] == ["fetch"]
    assert story["pages"][0]["status"] == 200
    assert here.ask(f"/api/tasks/{COMPLETED}").json["result"]["data"]["total_due"] == 12.5
    assert here.ask("/tasks/no-such").status == 404
    assert here.ask("/api/tasks/no-such").json == {"error": "There is no task no-such."}


def test_a_retry_is_asked_done_and_in_the_audit(here: Monitor, seeded: Node) -> None:
    asked = here.ask(f"/act/tasks/retry?id={FAILED}&back=/tasks/{FAILED}")
    done = here.ask("/act/tasks/retry", "POST", data=fields_of(asked.text))
    assert done.status == 303
    assert done.headers["location"].startswith(f"/tasks/{FAILED}?said=")
    assert "Done: retry: 1 task" in here.ask(done.headers["location"]).text
    assert seeded.sql("SELECT status, generation FROM tasks WHERE task_id = ?", FAILED) == [("pending", 2)]
    row = here.ask("/api/audit").json["rows"][0]
    assert (row["action"], row["n"], row["what"]) == ("retry", 1, f"monitor: id {FAILED}")


def test_tasks_of_a_filter_are_retried_together(here: Monitor) -> None:
    asked = here.ask("/act/tasks/retry?reason=captcha&back=//evil.example")
    assert "Retry 1 task" in asked.text
    done = here.ask("/act/tasks/retry", "POST", data=fields_of(asked.text))
    assert done.headers["location"].startswith("/?said")


def test_a_group_of_failures_is_replayed_after_saying_how_many(here: Monitor, seeded: Node) -> None:
    group = here.ask("/api/outbox").json["parked"][0]
    assert (group["n"], group["reason"]) == (3, "gateway_refused")
    assert group["sample"].startswith("422")
    asked = here.ask(f"/act/outbox/replay?{GROUP}&back=/outbox")
    assert "Replay 3 rows" in asked.text
    assert here.ask("/act/outbox/replay", "POST", data=fields_of(asked.text)).status == 303
    assert seeded.sql("SELECT state, count(*) FROM outbox WHERE topic = 'upload_raw' GROUP BY 1") == [("waiting", 3)]
    assert here.ask("/api/outbox").json["parked"] == []
    assert here.ask("/api/audit").json["rows"][0]["action"] == "replay"


def test_an_action_that_would_touch_more_than_was_shown_asks_again(here: Monitor, seeded: Node) -> None:
    asked = fields_of(here.ask(f"/act/outbox/discard?{GROUP}").text)
    again = here.ask("/act/outbox/discard", "POST", data={**asked, "n": "2"})
    assert again.status == 409
    assert "more are meant than were shown" in again.text
    assert seeded.sql("SELECT DISTINCT state FROM outbox WHERE topic = 'upload_raw'") == [("parked",)]


def test_a_row_is_held_released_and_discarded(here: Monitor, seeded: Node) -> None:
    row_id = seeded.sql("SELECT min(id) FROM outbox WHERE topic = 'upload_raw'")[0][0]
    for verb, state in (("replay", "waiting"), ("hold", "held"), ("release", "waiting"), ("discard", "discarded")):
        assert act(here, f"/act/outbox/{verb}", id=str(row_id), n="1").status == 303, verb
        assert seeded.sql("SELECT state FROM outbox WHERE id = ?", row_id) == [(state,)]
    assert f"Row {row_id}" in here.ask(f"/outbox/{row_id}").text


def test_actions_without_a_choice_or_a_meaning_are_refused(here: Monitor) -> None:
    assert act(here, "/act/outbox/discard", n="9999999").status == 409
    assert act(here, "/act/outbox/discard", state="parked", n="9999999").status == 409
    assert act(here, "/act/tasks/cancel", n="9999999").status == 409
    assert act(here, "/act/outbox/explode", n="1").status == 404


def test_standalone_has_no_replay_since_nothing_would_send_it(node: Node) -> None:
    from tests.web.seed import seed

    seed(node.data)
    with monitor(node) as here:
        assert "Replay" not in here.ask("/outbox").text
        assert here.ask(f"/act/outbox/replay?{GROUP}").status == 409


def test_lanes_are_paused_and_resumed(here: Monitor) -> None:
    assert act(here, "/act/lanes/pause", lane="fetch", n="1").status == 303
    assert "fetch is paused" in here.ask("/api/overview").json["health"]["words"].lower()
    assert act(here, "/act/lanes/resume", lane="fetch", n="1").status == 303
    assert here.ask("/api/overview").json["pauses"] == []


def test_results_are_downloaded_as_the_filter_shows_them(here: Monitor) -> None:
    rows = list(csv.DictReader(io.StringIO(here.ask("/results.csv?text=task-done").text)))
    assert [row["task_id"] for row in rows] == [COMPLETED]
    assert len(here.ask("/results.json").json) == 2
    assert here.ask("/results.json?county=Levy").json == []
    assert here.ask("/results.exe").status == 404
    assert "attachment" in here.ask("/results.jsonl").headers["content-disposition"]


def test_a_county_shows_its_rates_fields_and_samples(here: Monitor) -> None:
    row = here.ask("/api/counties").json["rows"][0]
    assert (row["county"], row["ended"], row["failed"]) == ("Dixie", 3, 1)
    county = here.ask("/api/county?platform=demo&state=FL&county=Dixie").json
    assert {field["field"] for field in county["fields"]} == {"owner_name", "property_address", "total_due"}
    assert county["failures"][0]["task_id"] == FAILED
    assert county["median_ms"] == 124


def test_a_dropped_file_is_imported_and_its_rejects_can_be_fetched(here: Monitor, seeded: Node) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"url\nhttps://county.example/1\nnot a url\n", filename="list.csv")
    assert here.ask("/imports", "POST", data=form, X_CSRF_Token=here.csrf()).status == 303
    row = here.ask("/api/imports").json["rows"][0]
    assert (row["name"], row["added"], row["rejected"], row["status"]) == ("list.csv", 1, 1, "done")
    rejects = here.ask(f"/imports/{row['id']}/rejects")
    assert "not a url" in rejects.text
    assert not list(seeded.data.glob(".upload-*"))


def test_a_file_that_cannot_be_read_is_one_sentence(here: Monitor) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"\x89PNG\r\n\x1a\n" + bytes(200), filename="picture.csv")
    reply = here.ask("/imports", "POST", data=form, X_CSRF_Token=here.csrf())
    assert reply.status == 409
    assert "picture.csv cannot be imported" in reply.text


def test_metrics_are_in_prometheus_format_with_bounded_labels(here: Monitor) -> None:
    text = here.ask("/metrics").text
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{(\w+=\"[^\"]*\",?)+\})? -?[\d.e+]+", line), line
    assert 'lienworker_tasks{status="failed"} 1' in text
    assert 'lienworker_outbox_rows{topic="upload_raw",state="parked"} 3' in text
    assert 'lienworker_task_seconds_bucket{le="+Inf"} 3' in text
    assert 'lienworker_tries_failed_total{topic="upload_raw",reason="gateway_refused"} 3' in text
    assert 'lienworker_fetch_seconds_bucket{le="0.25"} 3' in text


def test_alive_is_not_ready(here: Monitor) -> None:
    assert here.ask("/healthz").text == "alive\n"
    ready = here.ask("/readyz")
    assert ready.status == 503
    assert "no stack runs" in ready.text


def test_a_stack_that_works_is_ready_and_one_whose_workers_hang_is_not(node: Node, site: DemoSite) -> None:
    import os
    import signal

    process = node.start("up", LIENWORKER_WEB_PORT="0")
    wait_until(lambda: len(node.workers()) == 2 and node.is_up(), what="the stack to be up")
    with monitor(node) as here:
        wait_until(lambda: here.ask("/readyz").status == 200, what="ready")
        workers = node.workers()
        for worker in workers:
            os.kill(worker.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: here.ask("/readyz").status == 503, seconds=50, what="not ready")
            assert "no sign of life" in here.ask("/readyz").text or "no worker" in here.ask("/readyz").text
        finally:
            for worker in workers:
                os.kill(worker.pid, signal.SIGCONT)
    process.terminate()
    process.communicate(timeout=20)


def test_the_stream_tells_of_news_and_is_silent_otherwise(here: Monitor, seeded: Node) -> None:
    import asyncio

    async def listen() -> tuple[float, bytes]:
        async with aiohttp.ClientSession() as session, session.get(here.url + "/events") as stream:
            assert b"hello" in await stream.content.readuntil(b"\n\n")
            await asyncio.sleep(1.5)  # the first look only learns how it is
            while not stream.content.at_eof() and stream.content.total_bytes and stream.content._size:
                await stream.content.readany()
            began = time.monotonic()
            await asyncio.to_thread(act, here, "/act/tasks/retry", id=FAILED, n="1")
            return time.monotonic() - began, await asyncio.wait_for(stream.content.readuntil(b"\n\n"), 5)

    _, said = asyncio.run(listen())
    assert b"news" in said
