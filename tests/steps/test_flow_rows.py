"""Rows whose pages a flow reaches: sessions, parts, losses, optional pages and delivery, against a real site."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.db.database import all_rows, execute, one_row, write
from lienworker.operator.reparse import Reparse
from lienworker.outbox.claims import Rules, claim, claim_in_transaction
from lienworker.outbox.outcomes import give_back_in_transaction
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.sessions import lease_session
from lienworker.platforms import registry_with
from lienworker.queries.lists import page_story
from lienworker.store.runs import PageFilter
from lienworker.store.tasks import NewTask
from lienworker.testing.gateway import ReferenceGateway
from lienworker.web.pages import Place, Question
from lienworker.web.rawpage import page_text
from tests.harness.in_process import Desk, assert_raw_before_result, desk
from tests.harness.node import PATIENCE
from tests.harness.pace import Lag
from tests.harness.session_site import MISSING, SessionSite, session_site


@pytest.fixture
def site() -> Iterator[SessionSite]:
    with session_site() as running:
        yield running


@pytest.fixture
def county(site: SessionSite, gateway: ReferenceGateway, tmp_path: Path) -> Iterator[Desk]:
    with _county(site, gateway, tmp_path) as here:
        yield here


def _county(site: SessionSite, gateway: ReferenceGateway, root: Path, **options: float) -> object:
    platforms = root / "platforms"
    platforms.mkdir(mode=0o700, exist_ok=True)
    (platforms / "sessioned.toml").write_text(site.definition(**options))  # type: ignore[arg-type]
    return desk(root / "data", gateway, LIENWORKER_PLATFORMS=str(platforms), LIENWORKER_RETRY_DELAY="0.05")


def add(site: SessionSite, *parcel_ids: str) -> None:
    with write("test"):
        register_in_transaction([NewTask("gateway", **site.row(one), task_id=f"task-{one}") for one in parcel_ids])


def work(here: Desk) -> None:
    """Until nothing waits to be fetched any more."""
    deadline = time.monotonic() + PATIENCE
    while one_row("SELECT 1 FROM outbox WHERE topic IN ('fetch', 'scrape') AND state IN ('waiting', 'leased')"):
        assert time.monotonic() < deadline, all_rows("SELECT task_id, topic, state, reason FROM outbox")
        here.fetch_and_scrape()


def statuses() -> dict[str, tuple[str, str | None]]:
    return {row[0]: (row[1], row[2]) for row in all_rows("SELECT parcel_id, status, reason FROM tasks")}


def test_all_pages_of_a_parcel_are_stored_and_parsed_as_one_record(site: SessionSite, county: Desk) -> None:
    add(site, "01-1", "01-2", "01-3")
    work(county)

    assert set(statuses().values()) == {("completed", None)}
    pages = "SELECT part, position, path FROM pages WHERE task_id = 'task-01-2' ORDER BY position"
    stored = all_rows(pages)
    assert [row[:2] for row in stored] == [("profile", 0), ("values", 1)]
    for part, _, path in stored:
        assert f".{part}." in path
        assert (county.runtime.folder.root / path).is_file()
    data = json.loads(one_row("SELECT data FROM results WHERE task_id = 'task-01-2'")[0])
    assert (data["parcel_id"], data["owner_name"], data["market_value"]) == ("01-2", "HERON IDA", 1234.0)
    assert site.opened == 1
    county.books_are_right()


def test_a_parcel_that_does_not_exist_fails_at_once_and_keeps_the_session(site: SessionSite, county: Desk) -> None:
    add(site, MISSING, "01-1")
    work(county)
    assert statuses() == {MISSING: ("failed", "parcel_not_found"), "01-1": ("completed", None)}
    assert site.opened == 1


def test_a_session_survives_a_restart(site: SessionSite, gateway: ReferenceGateway, tmp_path: Path) -> None:
    for parcel in ("01-1", "01-2"):
        with _county(site, gateway, tmp_path) as here:  # type: ignore[attr-defined]
            add(site, parcel)
            work(here)
    assert site.opened == 1
    assert set(statuses_of(tmp_path).values()) == {"completed"}


def statuses_of(root: Path) -> dict[str, str]:
    import sqlite3

    with sqlite3.connect(root / "data" / "lienworker.db") as connection:
        return dict(connection.execute("SELECT parcel_id, status FROM tasks").fetchall())


def test_a_session_that_ends_in_the_middle_is_opened_anew_and_costs_no_attempt(site: SessionSite, county: Desk) -> None:
    site.lasts = 2
    add(site, *(f"01-{n}" for n in range(9)))
    work(county)
    assert set(statuses().values()) == {("completed", None)}
    assert one_row("SELECT count(*) FROM attempts") == (0,)
    assert site.opened == 5


def test_a_second_loss_in_a_fresh_session_is_a_counted_failure(site: SessionSite, county: Desk) -> None:
    site.lasts = 0
    add(site, "01-1")
    work(county)
    assert statuses() == {"01-1": ("failed", "session_lost")}
    tries = one_row("SELECT count(*) FROM attempts WHERE reason = 'session_lost'")[0]
    assert tries == county.runtime.settings.fetch_attempts
    assert one_row("SELECT count(*) FROM sessions WHERE secret IS NOT NULL") == (0,)


def test_trouble_of_an_optional_page_is_no_excuse(site: SessionSite, county: Desk) -> None:
    add(site, "01-0")
    work(county)
    site.broken["/detail"] = 1
    add(site, "01-1")
    work(county)
    assert statuses()["01-1"] == ("completed", None)
    assert one_row("SELECT reason FROM attempts") == ("http_500",)


def test_flows_at_a_host_go_one_at_a_time_in_one_session(site: SessionSite, county: Desk) -> None:
    add(site, *(f"01-{n}" for n in range(20)))
    work(county)
    assert one_row("SELECT flow_width, round(requests) FROM hosts WHERE flow_width IS NOT NULL") == (1, 5.0)
    assert one_row("SELECT count(*) FROM attempts") == (0,)
    assert site.opened == 1


def test_every_request_of_a_flow_keeps_the_hosts_delay(
    site: SessionSite, gateway: ReferenceGateway, tmp_path: Path
) -> None:
    with Lag() as lag, _county(site, gateway, tmp_path, delay=0.1) as here:  # type: ignore[attr-defined]
        with write("test"):
            execute("INSERT INTO hosts (host, delay) VALUES (?, 0.1)", (site.url.partition("//")[2],))
        add(site, "01-1", "01-2")
        work(here)
        times = [at for path, at in site.log]
        assert len(times) > 10
        assert [b - a for a, b in itertools.pairwise(times) if b - a < 0.08 - lag.at(a)] == []


def test_a_stop_gives_the_row_back_at_the_next_step(site: SessionSite, county: Desk) -> None:
    site.latency = 0.2
    add(site, "01-1")
    threading.Timer(0.5, county.runtime.stopping.set).start()
    county.fetch_and_scrape()
    assert statuses() == {"01-1": ("pending", None)}
    assert one_row("SELECT state, attempts FROM outbox WHERE topic = 'fetch'") == ("waiting", 0)
    county.runtime.stopping.clear()
    site.latency = 0.0
    work(county)
    assert statuses() == {"01-1": ("completed", None)}


def test_a_post_that_is_not_safe_is_never_repeated_by_itself(
    site: SessionSite, gateway: ReferenceGateway, tmp_path: Path
) -> None:
    with _county(site, gateway, tmp_path) as here:  # type: ignore[attr-defined]
        file = tmp_path / "platforms" / "sessioned.toml"
        head, _, steps = site.definition().partition("[[flow.step]]")
        file.write_text(f"{head}[[flow.step]]{steps.replace('safe = true', 'safe = false', 1)}")
        object.__setattr__(here.runtime, "registry", registry_with(tmp_path / "platforms"))
        site.broken["/detail"] = 1
        add(site, "01-1")
        work(here)
        assert statuses() == {"01-1": ("failed", "http_500")}
        assert len([path for path, _ in site.log if path.startswith("/search")]) <= 4
        with write("test"):  # as a kill leaves it
            execute("UPDATE tasks SET status = 'pending'")
            execute("UPDATE outbox SET state = 'waiting', due_at = 0 WHERE topic = 'fetch'")
        work(here)
        assert statuses() == {"01-1": ("failed", "unsafe_repeat")}


def test_each_part_is_delivered_as_a_raw_file_before_the_result_and_none_twice(
    site: SessionSite, gateway: ReferenceGateway, county: Desk
) -> None:
    add(site, "01-1", "01-2")
    work(county)
    gateway.fault("500", endpoint="raw", count=1)
    county.upload_until()

    raws = [json.loads(raw.metadata) for raw in gateway.state.raw_uploads]
    assert sorted((raw["parcel_id"], raw["url"].partition("?")[2]) for raw in raws) == [
        ("01-1", "n=1"),
        ("01-1", "n=1&mode=value"),
        ("01-2", "n=2"),
        ("01-2", "n=2&mode=value"),
    ]
    assert_raw_before_result(gateway)
    (version,) = gateway.state.history["01-1", "sessioned", "XX", "Session"]
    data = version.row.data if isinstance(version.row.data, dict) else json.loads(version.row.data)
    names = {raw.name for raw in gateway.state.raw_uploads}
    assert [one["part"] for one in data["_raw"]] == ["profile", "values"]
    assert {one["name"] for one in data["_raw"]} <= names
    assert any("profile" in name for name in names)
    county.books_are_right()


def test_a_refresh_that_finds_all_parts_unchanged_delivers_nothing(site: SessionSite, county: Desk) -> None:
    add(site, "01-1")
    work(county)
    with write("test"):
        register_in_transaction([NewTask("gateway", **site.row("01-1"), task_id="task-01-1")], refresh=True)
    work(county)
    reasons = all_rows("SELECT reason FROM outbox WHERE topic = 'fetch' ORDER BY id")
    assert reasons == [(None,), ("unchanged",)]


def test_reparse_reads_all_parts_again(site: SessionSite, county: Desk) -> None:
    add(site, "01-1")
    work(county)
    with write("test"):
        execute("UPDATE results SET data = '{}'")
    tally = Reparse(county.runtime.folder, county.runtime.registry, PageFilter()).work()
    assert tally.changed == 1
    data = json.loads(one_row("SELECT data FROM results")[0])
    assert (data["owner_name"], data["market_value"]) == ("HERON IDA", 1234.0)


def test_a_large_parcel_of_several_pages_is_parsed_where_there_are_limits(
    site: SessionSite, county: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lienworker.steps.fetch as fetch
    import lienworker.steps.scrape as scrape

    monkeypatch.setattr(fetch, "MOST_PLAIN_BYTES", 10)
    monkeypatch.setattr(scrape, "MOST_PLAIN_BYTES", 10)
    add(site, "01-1")
    work(county)
    data = json.loads(one_row("SELECT data FROM results")[0])
    assert (data["owner_name"], data["market_value"]) == ("HERON IDA", 1234.0)


def test_a_session_that_has_had_its_time_is_opened_anew(site: SessionSite, county: Desk) -> None:
    add(site, "01-1")
    work(county)
    with write("test"):
        execute("UPDATE sessions SET ends_at = 1")
    add(site, "01-2")
    work(county)
    assert site.opened == 2
    assert one_row("SELECT count(*), min(ends_at) > 1 FROM sessions") == (1, 1)


def test_a_session_that_another_flow_has_opened_is_not_used(site: SessionSite, county: Desk) -> None:
    add(site, "01-1")
    work(county)
    with write("test"):
        execute("UPDATE sessions SET made_by = 'another'")
    add(site, "01-2")
    work(county)
    assert site.opened == 2


def test_several_sessions_are_open_at_a_host_where_the_platform_allows(
    site: SessionSite, gateway: ReferenceGateway, tmp_path: Path
) -> None:
    site.latency = 0.02
    with _county(site, gateway, tmp_path, sessions=3) as here:  # type: ignore[attr-defined]
        add(site, *(f"01-{n}" for n in range(12)))
        work(here)
        assert set(statuses().values()) == {("completed", None)}
        assert one_row("SELECT count(*) FROM sessions WHERE secret IS NOT NULL")[0] == site.opened == 3


def test_a_session_in_use_is_leased_to_nobody_else_until_its_row_is_free(site: SessionSite, county: Desk) -> None:
    add(site, "01-1", "01-2")
    rules = Rules(host_delay=0.0, host_concurrency=10)
    first, second = claim("fetch", 2, "a-token", rules)
    with write("test"):
        assert lease_session("sessioned", "host", 1, "flow", first) is not None
        assert lease_session("sessioned", "host", 1, "flow", second) is None
        give_back_in_transaction([first])
        assert lease_session("sessioned", "host", 1, "flow", second) is not None


def test_flows_take_only_their_share_of_a_claim_and_urgent_rows_are_not_counted(
    site: SessionSite, county: Desk
) -> None:
    with write("test"):
        tasks = [
            NewTask("cli", f"http://flow{n}.example/1", queue="urgent" if n == 9 else "default") for n in range(10)
        ]
        register_in_transaction([*tasks, NewTask("cli", "http://fast.example/1", priority=4)])
        execute("UPDATE hosts SET flow_width = 1 WHERE host LIKE 'flow%'")
    how = {"quarantined": False, "message_id": None}
    rules = Rules(host_delay=0.0, host_concurrency=10)
    with write("test"):
        taken = claim_in_transaction("fetch", 10, "a-token", rules, flows=2, **how)  # type: ignore[arg-type]
    hosts = sorted(row.host for row in taken)
    assert len(hosts) == 4
    assert {"fast.example", "flow9.example"} <= set(hosts)


def test_the_monitor_and_tasks_show_know_the_parts(site: SessionSite, county: Desk) -> None:
    add(site, "01-1")
    work(county)
    assert [page["part"] for page in page_story("task-01-1")] == ["profile", "values"]
    place = Place(county.runtime.settings, county.runtime.folder, read_only=True)
    shown = page_text(place, Question({"task_id": "task-01-1"}, {"part": "values"}))
    assert "$1,234" in shown
    assert "HERON" in page_text(place, Question({"task_id": "task-01-1"}, {}))
