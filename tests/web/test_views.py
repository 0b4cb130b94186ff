"""What the monitor shows and does, over real HTTP."""

from __future__ import annotations

import csv
import io
import re
import shutil
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from lienworker.db.database import close, execute, open_store, write
from lienworker.maintenance.disk_limits import Size, remember_size
from lienworker.testing.county.site import DemoSite
from lienworker.web.metrics import host_class
from tests.harness.node import Node, wait_until
from tests.web.monitor import Monitor, monitor
from tests.web.seed import COMPLETED, FAILED, PARKED

pytestmark = pytest.mark.slow
GROUP = "state=parked&topic=upload_raw&reason=gateway_refused&fingerprint=f1"


def act(here: Monitor, path: str, **fields: str):
    return here.ask(path, "POST", data={"csrf": here.csrf(), "back": "/outbox", **fields})


def fields_of(text: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))


def measure_once(node: Node) -> None:
    open_store(node.data)
    remember_size(Size(database=0, raw=0, pending=0, other=0, at="2026-01-31T00:00:00.000Z"))
    close()


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


def test_the_disk_is_spoken_of_in_sentences(here: Monitor, seeded: Node) -> None:
    measure_once(seeded)
    assert re.search(r"The data folder takes (less than 1|[\d.]+) MB\. Not filling up\.", here.ask("/").text)


def test_a_stack_goes_by_its_name(seeded: Node) -> None:
    seeded.settings["LIENWORKER_NAME"] = "florida-2"
    with monitor(seeded) as here:
        assert "<title>Overview · florida-2</title>" in here.ask("/").text
    assert seeded.cli("status").stdout.startswith("florida-2: ondemand, ")


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
    page = here.ask(f"/outbox/{row_id}").text
    assert f"Row {row_id}" in page
    for fact in ("Dixie", "7-task-parked", "Raw html hash", ".html.gz"):
        assert fact in page, fact


def change(node: Node, sql: str, *values: object) -> None:
    from lienworker.db.database import close, execute, open_store, write

    open_store(node.data)
    with write("test"):
        execute(sql, values)
    close()


def test_a_result_whose_raw_file_was_discarded_is_not_replayed(here: Monitor, seeded: Node) -> None:
    """It would wait for ever, without a reason."""
    these = "SET reason = 'raw_discarded', topic = 'upload_result' WHERE fingerprint = 'f1' AND generation < 3"
    change(seeded, f"UPDATE outbox {these}")
    row_id = seeded.sql("SELECT min(id) FROM outbox WHERE reason = 'raw_discarded'")[0][0]
    for chosen in ("state=parked&reason=raw_discarded", f"id={row_id}"):
        refused = here.ask(f"/act/outbox/replay?{chosen}")
        assert refused.status == 409
        assert "their page was discarded" in refused.text
    assert "Replay 1 row?" in here.ask("/act/outbox/replay?state=parked&fingerprint=f1").text
    assert act(here, "/act/outbox/replay", state="parked", fingerprint="f1", n="1").status == 303
    assert seeded.sql("SELECT state, count(*) FROM outbox WHERE topic LIKE 'upload%' GROUP BY 1") == [
        ("parked", 2),
        ("waiting", 1),
    ]
    assert "/act/outbox/replay" not in here.ask("/outbox").text
    assert "/act/outbox/replay" not in here.ask(f"/outbox/{row_id}").text
    assert "/act/outbox/discard" in here.ask(f"/outbox/{row_id}").text


def test_pages_that_the_drift_guard_holds_are_no_uploads_to_act_on(here: Monitor, seeded: Node) -> None:
    wait_for_fetch(seeded, "Levy", 0, n=3)
    change(seeded, "UPDATE outbox SET state = 'held', reason = 'drift' WHERE host = 'a.levy.example'")
    change(seeded, "UPDATE outbox SET state = 'held', reason = 'drift' WHERE topic = 'upload_raw' AND generation = 1")
    text = here.ask("/outbox").text
    assert "state=held&amp;topic=upload_raw&amp;reason=drift" in text
    assert not re.search("/act/outbox/[a-z]+[?]state=held&amp;topic=fetch", text)
    assert "lienworker platforms accept" in text
    assert here.ask("/act/outbox/release?state=held&topic=fetch&reason=drift").status == 409
    held = seeded.sql("SELECT min(id) FROM outbox WHERE topic = 'fetch' AND state = 'held'")[0][0]
    assert "lienworker reparse" in here.ask(f"/act/outbox/discard?id={held}").text
    assert "Release 1 row?" in here.ask("/act/outbox/release?state=held&reason=drift").text


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


def test_a_release_in_standalone_leaves_rows_with_what_standalone_holds(node: Node) -> None:
    from tests.web.seed import seed

    seed(node.data)
    change(node, "UPDATE outbox SET state = 'held', reason = 'operator' WHERE topic = 'upload_raw'")
    with monitor(node) as here:
        asked = here.ask("/act/outbox/release?state=held&reason=operator")
        assert "lienworker outbox replay" in asked.text
        assert "as soon as possible" not in asked.text
        assert here.ask("/act/outbox/release", "POST", data=fields_of(asked.text)).status == 303
        sql = "SELECT state, reason, count(*) FROM outbox WHERE topic = 'upload_raw' GROUP BY 1, 2"
        assert node.sql(sql) == [("held", "standalone", 3)]
        assert here.ask("/act/outbox/release?state=held&reason=standalone").status == 409
        assert "/act/outbox/release" not in here.ask("/outbox").text


@pytest.mark.parametrize("mode", ["ondemand", "standalone"])
def test_uploads_that_wait_while_nobody_sends_them_are_a_warning(node: Node, mode: str) -> None:
    from tests.web.conftest import ONDEMAND
    from tests.web.seed import seed

    seed(node.data)
    node.settings |= ONDEMAND if mode == "ondemand" else {}
    change(node, "UPDATE outbox SET state = 'waiting', reason = NULL WHERE topic = 'upload_raw'")
    with monitor(node) as here:
        health = here.ask("/api/overview").json["health"]
        assert "<code>lienworker outbox replay</code>" in here.ask("/").text
    assert health["level"] == ("bad" if mode == "ondemand" else "warn"), "on demand there should be a stack"
    assert "3 uploads wait; nobody sends them:" in health["words"]
    assert "`lienworker outbox replay`" in health["words"]
    assert ("`lienworker up`" in health["words"]) == (mode == "ondemand")


def test_lanes_are_paused_and_resumed(here: Monitor) -> None:
    assert act(here, "/act/lanes/pause", lane="fetch", n="1").status == 303
    assert "fetch is paused" in here.ask("/api/overview").json["health"]["words"].lower()
    assert act(here, "/act/lanes/resume", lane="fetch", n="1").status == 303
    assert here.ask("/api/overview").json["pauses"] == []


def test_an_operator_says_how_often_a_host_is_asked(here: Monitor, seeded: Node) -> None:
    open_store(seeded.data)
    with write("test"):
        execute("INSERT INTO hosts (host, robots_delay) VALUES ('paced.example', 3)")
    close()
    assert "3 s (robots.txt)" in here.ask("/hosts?text=paced.example").text
    asked = here.ask("/act/hosts/set?host=paced.example&delay=7&concurrency=1&back=/hosts")
    assert "paced.example, a request every 7 s, 1 open at most" in asked.text
    assert act(here, "/act/hosts/set", host="paced.example", delay="7", concurrency="1", n="1").status == 303
    (row,) = here.ask("/api/hosts?text=paced.example").json["rows"]
    assert (row["delay"], row["delay_from"], row["concurrency"]) == (7.0, "operator", 1)
    assert act(here, "/act/hosts/pause", host="paced.example", n="1").status == 303
    assert "has paused paced.example" in here.ask("/api/overview").json["health"]["words"]
    assert act(here, "/act/hosts/resume", host="paced.example", n="1").status == 303
    assert act(here, "/act/hosts/set", host="paced.example", delay="soon", n="1").status == 409
    assert act(here, "/act/hosts/pause", host="nobody.example", n="1").status == 404


def test_a_county_is_paused_and_resumed_by_an_operator(here: Monitor) -> None:
    assert act(here, "/act/counties/pause", state="FL", county="Dixie", n="1").status == 303
    assert "has paused Dixie FL" in here.ask("/api/overview").json["health"]["words"]
    assert act(here, "/act/counties/resume", state="FL", county="Dixie", n="1").status == 303
    assert "has paused" not in here.ask("/api/overview").json["health"]["words"]


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
    assert [rate["field"] for rate in row["fell"]] == ["owner_name", "total_due"]
    county = here.ask("/api/county?platform=demo&state=FL&county=Dixie").json
    rates = {rate["field"]: (rate["before"], rate["now"], rate["fell"]) for rate in county["fields"]}
    assert rates == {
        "owner_name": (1.0, 0.5, True),
        "total_due": (1.0, 0.5, True),
        "property_address": (1.0, 1.0, False),
    }
    assert county["pages"] == {"now": 20, "before": 60}
    assert county["failures"][0]["task_id"] == FAILED
    assert county["median_ms"] == 124


def wait_for_fetch(node: Node, county: str, minutes: int, n: int = 1) -> None:
    """Tasks that nobody fetches, as if they had come a while ago."""
    from lienworker.db.clock import now_ms
    from lienworker.db.database import close, execute, open_store, write
    from lienworker.outbox.registration import register_in_transaction
    from lienworker.store.tasks import NewTask

    open_store(node.data)
    with write("test"):
        new = [NewTask("cli", f"http://a.{county}.example/{k}", platform="demo", county=county) for k in range(n)]
        register_in_transaction(new)
        sql = "UPDATE outbox SET state = 'held' WHERE host = ? AND state = 'waiting'"
        execute(sql, (f"a.{county.lower()}.example",))
        sql = "UPDATE outbox SET state = 'waiting', created_at = ? WHERE host = ? AND state = 'held'"
        execute(sql, (now_ms() - minutes * 60_000, f"a.{county.lower()}.example"))
    close()


def test_the_backlog_stands_against_its_age_by_host_and_by_county(here: Monitor, seeded: Node) -> None:
    wait_for_fetch(seeded, "Levy", 100, n=3)
    wait_for_fetch(seeded, "Union", 0)
    backlog = here.ask("/api/overview").json["backlog"]
    counts = {row["county"]: [cell["n"] for cell in row["cells"]] for row in backlog["counties"]}
    assert counts == {"Levy": [0, 0, 0, 0, 3, 0, 0, 0, 0, 0], "Union": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]}
    assert [row["host"] for row in backlog["rows"]] == ["a.levy.example", "a.union.example"]
    assert backlog["rows"][0]["cells"][4]["heat"] == 6
    text = here.ask("/").text
    assert "Levy" in text
    told = seeded.cli("status").stdout
    assert re.search(r"^a\.levy\.example +3 +· +· +· +· +3 ", told, re.M), told
    assert re.search(r"^Levy \(demo\) +3 +· +· +· +· +3 ", told, re.M), told


def test_a_county_is_listed_before_anything_of_it_has_ended(here: Monitor, seeded: Node) -> None:
    wait_for_fetch(seeded, "Levy", 100, n=3)
    rows = {row["county"]: row for row in here.ask("/api/counties").json["rows"]}
    assert (rows["Levy"]["waiting"], rows["Levy"]["ended"], rows["Levy"]["success"]) == (3, 0, None)
    assert here.ask("/counties").status == 200
    page = here.ask("/county?platform=demo&state=&county=Levy")
    assert page.status == 200
    assert "3 to be fetched" in page.text
    assert here.ask("/api/county?platform=demo&county=Nowhere").status == 404


def test_drift_is_in_the_health_line_in_the_counties_and_in_the_metrics(here: Monitor, seeded: Node) -> None:
    from lienworker.db.database import close, execute, open_store, write

    words = "demo, Dixie FL is paused: owner_name came with nearly every page before; see raw/x"
    open_store(seeded.data)
    with write("test"):
        sql = "UPDATE field_history SET paused_at = '2026-01-01T00:00:00Z', words = ?, sample_task = ?"
        execute(sql, (words, FAILED))
    close()
    assert "Dixie FL is paused: owner_name" in here.ask("/api/overview").json["health"]["words"]
    assert here.ask("/api/counties").json["rows"][0]["drift"] == words
    assert f"/tasks/{FAILED}/page" in here.ask("/county?platform=demo&state=FL&county=Dixie").text
    assert "lienworker_counties_paused 1" in here.ask("/metrics").text
    assert "demo, Dixie FL is paused" in seeded.cli("status").stdout


def test_heartbeats_that_the_gateway_does_not_take_are_a_warning_and_its_wishes_are_shown(node: Node) -> None:
    from lienworker.testing.gateway import reference_gateway

    with reference_gateway() as gateway:
        gateway.configure(sends_commands=True)
        gateway.command("dance <b>")
        node.settings |= {"GATEWAY_URL": gateway.url, "GATEWAY_TOKEN": gateway.token, "LIENWORKER_HEARTBEAT": "1"}
        process = node.start("up", LIENWORKER_WEB_PORT="0")
        with monitor(node) as here:
            wait_until(lambda: here.ask("/api/overview").json["heartbeat"]["commands"])
            assert "for: dance &lt;b&gt;." in here.ask("/").text
            assert "acknowledged" in node.cli("status").stdout
            gateway.fault("503", endpoint="heartbeat")
            change(node, "UPDATE facts SET at = '2026-01-01T14:02:00.000Z' WHERE name = 'heartbeat_acknowledged'")
            words = "the gateway has taken no heartbeat since 14:02 utc, and may count this worker as gone: "
            wait_until(lambda: words in node.cli("status").stdout.lower())
            assert here.ask("/api/overview").json["health"]["level"] == "warn"
        process.terminate()
        process.communicate(timeout=60)


def test_a_dropped_file_is_imported_and_its_rejects_can_be_fetched(here: Monitor, seeded: Node) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"url\nhttps://county.example/1\nnot a url\n", filename="list.csv")
    assert here.ask("/imports", "POST", data=form, X_CSRF_Token=here.csrf()).status == 303
    row = here.ask("/api/imports").json["rows"][0]
    assert (row["name"], row["added"], row["rejected"], row["status"]) == ("list.csv", 1, 1, "done")
    assert row["options"] == {"mapping": {"url": "url"}}
    rejects = here.ask(f"/imports/{row['id']}/rejects")
    assert "not a url" in rejects.text
    assert not list(seeded.data.glob(".upload-*"))


def test_a_dropped_file_may_name_platforms_of_ones_own(node: Node, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sunny.toml").write_text(
        "hosts = ['sunny.example']\ndelay = 10\n[fields]\nparcel_id = '//b/text()'\n"
    )
    form = aiohttp.FormData()
    form.add_field("file", b"url\nhttps://sunny.example/1\n", filename="sunny.csv")
    with monitor(node, LIENWORKER_PLATFORMS=str(tmp_path / "own")) as here:
        assert here.ask("/imports", "POST", data=form, X_CSRF_Token=here.csrf()).status == 303
    assert node.sql("SELECT delay FROM hosts WHERE host = 'sunny.example'") == [(10,)]


def test_rejects_can_be_fetched_from_a_folder_that_was_restored_elsewhere(seeded: Node, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("url\nnot a url\n")
    seeded.cli("import", str(tmp_path / "list.csv"))
    seeded.cli("backup", str(tmp_path / "b.tar"))
    moved = Node(tmp_path / "elsewhere", **seeded.settings)
    assert moved.cli("restore", "--moved", str(tmp_path / "b.tar")).returncode == 0
    shutil.rmtree(seeded.data)
    with monitor(moved) as there:
        row = there.ask("/api/imports").json["rows"][0]
        assert "not a url" in there.ask(f"/imports/{row['id']}/rejects").text


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


def test_calls_to_the_gateway_and_fetches_by_class_of_host_are_counted(node: Node, site: DemoSite) -> None:
    """A worker at work: its calls reach the figures, and a killed one would lose but the last moment's."""
    from lienworker.testing.gateway import reference_gateway
    from tests.harness.on_demand import gateway_tasks

    with reference_gateway() as gateway:
        gateway.configure(retry_without_tasks=1)
        gateway.enqueue(*gateway_tasks(site, 6))
        node.settings |= {"GATEWAY_URL": gateway.url, "GATEWAY_TOKEN": gateway.token, "LIENWORKER_HEARTBEAT": "1"}
        process = node.start("up", LIENWORKER_TASK_EXPIRY="80000")
        with monitor(node) as here:

            def counted() -> dict[str, int]:
                found = re.findall(r"^lienworker_(?:gateway_calls|fetches)_total({.*}) (\d+)$", here.metrics(), re.M)
                return {labels: int(n) for labels, n in found}

            wanted = {"results": "accepted", "raw": "accepted", "work": "accepted", "heartbeat": "accepted"}
            labels = {f'{{endpoint="{name}",outcome="{outcome}"}}' for name, outcome in wanted.items()}
            wait_until(lambda: labels <= counted().keys(), what="the calls to be counted")
            assert sum(n for key, n in counted().items() if 'host_class="ip"' in key) >= 6
            gateway.fault("401")
            refused = '{endpoint="heartbeat",outcome="auth"}'
            wait_until(lambda: counted().get(refused), what="a refusal to be counted")
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("beacon.schneidercorp.com", "schneidercorp.com"),
        ("www.assess.co.polk.ia.us:8080", "polk.ia.us"),
        ("127.0.0.1:80", "ip"),
        ("[::1]:80", "ip"),
        ("localhost", "localhost"),
    ],
)
def test_hosts_of_one_owner_are_one_class(host: str, named: str) -> None:
    assert host_class(host) == named


def test_the_dashboard_and_the_alerts_ask_for_metrics_that_there_are(seeded: Node) -> None:
    """All that there can be: the folder was measured, and has a limit."""
    docs = Path(__file__).parents[2] / "docs"
    measure_once(seeded)
    with monitor(seeded, LIENWORKER_DATA_MAX_MB="1000") as here:
        told = set(re.findall(r"^# TYPE (lienworker_\w+) ", here.metrics(), re.M))
    assert {"lienworker_data_bytes", "lienworker_data_max_bytes"} <= told
    shapes = r"_(?:bucket|sum|count)$"
    for file in ("grafana/dashboard.json", "grafana/alerts.yml", "monitor.md"):
        asked = {re.sub(shapes, "", name) for name in re.findall(r"lienworker_\w+", (docs / file).read_text())}
        assert asked <= told, file
    assert told <= set(re.findall(r"lienworker_\w+", (docs / "monitor.md").read_text()))


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
            wait_until(lambda: here.ask("/readyz").status == 503, what="not ready")
            assert "no sign of life" in here.ask("/readyz").text or "no worker" in here.ask("/readyz").text
        finally:
            for worker in workers:
                os.kill(worker.pid, signal.SIGCONT)
    process.terminate()
    process.communicate(timeout=60)


def test_a_stack_whose_work_is_due_and_does_not_move_is_not_ready(node: Node, site: DemoSite) -> None:
    """The workers live, but what wakes them up hangs."""
    import os
    import signal

    process = node.start("up", LIENWORKER_WEB_PORT="0")
    wait_until(lambda: len(node.workers()) == 2 and node.is_up(), what="the stack to be up")
    (server,) = node.processes("-server ")
    with monitor(node) as here:
        wait_until(lambda: here.ask("/readyz").status == 200, what="ready")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            register_overdue(node, site.parcels(3, 1), minutes=3)
            wait_until(lambda: here.ask("/readyz").status == 503, what="not ready")  # it looks once a second
            assert "nothing has moved for 2 minutes" in here.ask("/readyz").text.lower()
            assert "nothing has moved" in here.ask("/api/overview").json["health"]["words"].lower()
        finally:
            os.kill(server.pid, signal.SIGCONT)
        wait_until(lambda: node.statuses().get("pending", 0) == 0, what="the work to be done after all")
        wait_until(lambda: here.ask("/readyz").status == 200, what="ready again")
    process.terminate()
    process.communicate(timeout=60)


def register_overdue(node: Node, parcels: list[dict[str, str]], minutes: int) -> None:
    """Tasks that could have been fetched a while ago."""
    from lienworker.db.database import close, execute, open_store, write
    from lienworker.outbox.registration import register_in_transaction
    from lienworker.store.tasks import NewTask

    open_store(node.data)
    with write("test"):
        register_in_transaction([NewTask("cli", row["url"], platform=row["platform"]) for row in parcels])
        earlier = minutes * 60_000
        execute(
            "UPDATE outbox SET due_at = due_at - ?, created_at = created_at - ? WHERE topic = 'fetch'",
            (earlier, earlier),
        )
        execute("UPDATE waiting_since SET minute = minute - ? WHERE topic = 'fetch'", (minutes,))
        execute("UPDATE backlog SET not_before = not_before - ?", (earlier,))
    close()


def test_the_stream_tells_of_news_and_only_beats_otherwise(here: Monitor, seeded: Node) -> None:
    import asyncio

    async def listen() -> list[bytes]:
        async with (
            aiohttp.ClientSession(headers=here.credentials) as session,
            session.get(here.url + "/events") as stream,
        ):
            said = [await stream.content.readuntil(b"\n\n") for _ in range(4)]  # the first look is news, too
            await asyncio.to_thread(act, here, "/act/tasks/retry", id=FAILED, n="1")
            while b"beat" in (last := await stream.content.readuntil(b"\n\n")):
                pass
            return [*said, last]

    said = asyncio.run(listen())
    names = [re.search(rb"event: (\w+)", each)[1].decode() for each in said]
    assert names == ["hello", "news", "beat", "beat", "news"]


def test_a_doubtful_result_is_marked_listed_and_explained(here: Monitor) -> None:
    doubtful = here.ask("/api/results?doubtful=True").json["rows"]
    assert [row["task_id"] for row in doubtful] == [COMPLETED]
    assert doubtful[0]["doubts"][0]["check"] == "code_in_text"
    assert len(here.ask("/api/results").json["rows"]) == 2
    listed = here.ask("/results").text
    assert listed.count("<b>doubtful</b>") == 1
    told = here.ask(f"/tasks/{COMPLETED}").text
    assert "<b>code_in_text</b> owner_name: OWNER &lt;script&gt;" in told
    assert "Doubts" not in here.ask(f"/tasks/{PARKED}").text


def test_the_page_of_a_result_says_where_its_values_stand_when_asked(here: Monitor) -> None:
    plain = here.ask(f"/tasks/{COMPLETED}/page").text
    assert "origins=1" in plain
    assert "As it stands" not in plain
    asked = here.ask(f"/tasks/{COMPLETED}/page?origins=1").text
    cells = re.sub(r"\s*<[^>]+>\s*", "|", asked)
    assert re.search(r"\|+property_address\|+1 =MAIN ST\|+Site: 1 =MAIN ST\|", cells)
    assert "page /html/body/p" in asked
    assert "No result was made from this page" in here.ask(f"/tasks/{FAILED}/page?origins=1").text


def test_owners_and_addresses_are_found_by_how_they_begin(here: Monitor) -> None:
    for text in ("owner <SCRIPT", "1 =main"):
        found = here.ask(f"/api/search?brief=1&q={quote(text)}").json
        assert {row["task_id"] for row in found["results"]} == {COMPLETED, PARKED}
        assert found["results"][0]["property_address"] == "1 =MAIN ST"
    assert here.ask("/api/search?brief=1&q=main").json["results"] == [], "not by its middle, which no index has"
    assert len(here.ask("/api/search?q=main").json["results"]) == 2, "the newest results are looked through for it"
    assert "1 =MAIN ST" in here.ask("/search?q=1 =main").text


def test_results_and_counties_come_in_the_order_that_is_asked_for(here: Monitor, seeded: Node) -> None:
    def order(path: str, name: str) -> list[str]:
        return [row[name] for row in here.ask(path).json["rows"]]

    assert order("/api/results?sort=oldest", "task_id") == order("/api/results", "task_id")[::-1]
    assert "Oldest first" in here.ask("/results?sort=oldest").text
    rows = [f"https://{name}.example/{n},FL,{name}" for name, many in (("Union", 1), ("Baker", 2)) for n in range(many)]
    assert seeded.cli("import", "-", stdin="\n".join(["url,state,county", *rows])).returncode == 0
    assert order("/api/counties?sort=name", "county") == ["Baker", "Dixie", "Union"]
    assert order("/api/counties?sort=waiting", "county") == ["Baker", "Union", "Dixie"]
    assert order("/api/counties", "county")[0] == "Dixie", "by trouble"
