"""Taking work: whatever the Gateway hands out is in the store before anything else, and nothing of it is lost."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import peewee
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lienworker.db.clock import to_ms
from lienworker.db.database import all_rows, execute, one_row, open_store, write
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.hubs.gateway.wire import decode
from lienworker.hubs.gateway.work import parse_work
from lienworker.outbox.outcomes import configure
from lienworker.outbox.pauses import set_pause_by_hand
from lienworker.platforms import default_registry
from lienworker.queries.health import judge
from lienworker.queries.snapshot import facts_of
from lienworker.steps.collect import NEXT_POLL, take_work
from lienworker.store.tasks import task
from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk, desk

PLACE = {"parcel_id": "P-1", "state": "XX", "county": "Juniper", "url": "http://county.example/p/1"}


def wire(task_id: Any = "t-1", **changes: Any) -> dict[str, Any]:
    """A task as it goes over the wire."""
    base = {"task_id": task_id, "type": "scrape", "platform": "demo", "target": PLACE, "priority": 3}
    return {**base, "created_at": "2026-11-01T00:00:00Z", **changes}


def handed_out(gateway: ReferenceGateway, *tasks: Any) -> None:
    """Exactly these, whatever they look like."""
    gateway.enqueue(*({"verbatim": one, "platform": "demo", "priority": 1 + n % 4} for n, one in enumerate(tasks)))


@pytest.fixture
def store(tmp_path: Path) -> None:
    open_store(tmp_path / "data")
    configure("ondemand")


def taken(*tasks: Any) -> None:
    """A reply as it comes over the wire, into the store."""
    reply = parse_work(decode(json.dumps({"tasks": tasks, "retry_after": 5})))
    assert reply is not None
    take_work(reply.tasks, default_registry(), 168)


ODD = {
    "no_url": (wire(target={k: v for k, v in PLACE.items() if k != "url"}), "no_url"),
    "no_url_and_no_platform": (wire(platform="", target={"state": "XX"}), "no_url"),
    "unknown_platform": (wire(platform="atlantis"), "unknown_platform"),
    "unknown_type": (wire(type="dance"), "unknown_type"),
    "url_is_not_http": (wire(target={**PLACE, "url": "gopher://county.example/1"}), "bad_url"),
    "url_with_credentials": (wire(target={**PLACE, "url": "http://me:pw@county.example/1"}), "bad_url"),
    "target_is_a_list": (wire(target=[1, 2]), "no_url"),
}


@pytest.mark.parametrize("name", ODD)
def test_a_task_that_cannot_be_done_is_kept_failed_and_reported(
    here: Desk, gateway: ReferenceGateway, name: str
) -> None:
    odd, reason = ODD[name]
    handed_out(gateway, odd)
    here.collect()
    found = task("t-1")
    assert found is not None
    assert (found["status"], found["reason"]) == ("failed", reason)
    here.upload()
    record = gateway.state.tasks["t-1"]
    assert record.state == "failed"
    assert reason in record.error
    here.books_are_right()


def test_a_task_without_a_parcel_id_is_done_with_the_page_own_word(
    here: Desk, gateway: ReferenceGateway, site: DemoSite
) -> None:
    row = site.parcels(1)[0]
    handed_out(gateway, wire(target={"state": "XX", "county": "Juniper", "url": row["url"]}))
    here.collect()
    here.fetch_and_scrape()
    here.upload()
    assert list(gateway.state.results) == [(row["parcel_id"], "demo", "XX", "Juniper")]


def test_an_id_with_a_slash_is_scraped_and_delivered(here: Desk, gateway: ReferenceGateway, site: DemoSite) -> None:
    row = site.parcels(1)[0]
    handed_out(gateway, wire("a/b/../c", target={name: row[name] for name in PLACE}))
    here.collect()
    here.fetch_and_scrape()
    here.upload()
    assert gateway.state.tasks["a/b/../c"].state == "completed"
    assert not list((here.runtime.folder.root / "pending").iterdir())


def test_the_same_task_twice_is_one_task(here: Desk, gateway: ReferenceGateway) -> None:
    handed_out(gateway, wire(), wire(), wire("t-2"), wire(platform="atlantis"))
    here.collect()
    assert all_rows("SELECT task_id, status FROM tasks ORDER BY 1") == [("t-1", "pending"), ("t-2", "pending")]
    assert one_row("SELECT count(*) FROM outbox WHERE topic = 'fetch'") == (2,)


def test_ten_megabytes_of_target_are_taken_with_their_neighbours(here: Desk, gateway: ReferenceGateway) -> None:
    here.runtime.gateway.made = GatewayClient(gateway.url, gateway.token, "patient")  # ten megabytes take their time
    handed_out(gateway, wire("big", target={**PLACE, "notes": "x" * 10_000_000}), wire("small"))
    here.collect()
    assert all_rows("SELECT task_id, length(target_json) > 9000000 FROM tasks ORDER BY 1") == [
        ("big", 1),
        ("small", 0),
    ]


# When a task expires


def expiry_of(created_at: Any) -> timedelta:
    """How long after it was received the task expires; the setting is 168 hours."""
    taken(wire(created_at=created_at))
    received, expires = one_row("SELECT received_at, expires_at FROM tasks")
    return timedelta(milliseconds=to_ms(expires) - to_ms(received))


WEEK = timedelta(hours=168)


def test_a_task_expires_a_while_after_it_was_created(store: None) -> None:
    created = datetime.now(UTC) - timedelta(hours=100)
    assert abs(expiry_of(created.isoformat()) - timedelta(hours=68)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    "absurd",
    [
        None,
        "",
        "soon",
        12,
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00-23:59",
        "0002-06-01T00:00:00Z",
        "0999-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "2999-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_an_absurd_creation_time_counts_from_the_receipt(store: None, absurd: Any) -> None:
    assert abs(expiry_of(absurd) - WEEK) < timedelta(minutes=1)


def test_an_expired_task_is_reported_and_not_fetched(tmp_path: Path, gateway: ReferenceGateway, site: DemoSite) -> None:
    row = site.parcels(1)[0]
    with desk(tmp_path / "data", gateway, LIENWORKER_TASK_EXPIRY="1") as here:
        old = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
        handed_out(gateway, wire(created_at=old, target={name: row[name] for name in PLACE}))
        here.collect()
        here.fetch_and_scrape()
        here.upload()
        assert one_row("SELECT status, reason FROM tasks") == ("expired", "expired")
    assert gateway.state.tasks["t-1"].state == "failed"
    assert "expired" in gateway.state.tasks["t-1"].error
    assert not [path for path, _ in site.log if path.startswith("/parcel/")]


def test_a_result_that_is_late_is_still_delivered(here: Desk, gateway: ReferenceGateway) -> None:
    here.add()
    with write("test"):
        execute("UPDATE tasks SET expires_at = '2020-01-01T00:00:00.000Z'")
    here.upload()
    assert len(gateway.state.results) == 1


# How much is taken


def test_a_hundred_tasks_of_one_queue_are_three_calls(here: Desk, gateway: ReferenceGateway) -> None:
    """The first finds out that there are tasks, the second names their platform again and again, the third is empty."""
    gateway.configure(retry_with_tasks=600, retry_without_tasks=600)
    gateway.enqueue(*(wire(f"t-{n}", priority=1) for n in range(100)))
    here.collect()
    assert one_row("SELECT count(*) FROM tasks") == (100,)
    assert len(gateway.state.calls("work")) == 3


def test_the_pause_that_the_gateway_asked_for_outlives_a_turn(here: Desk, gateway: ReferenceGateway) -> None:
    gateway.configure(retry_without_tasks=600)
    here.collect()
    here.collect()
    assert len(gateway.state.calls("work")) == 1


def test_no_more_is_taken_than_there_is_room_for(tmp_path: Path, gateway: ReferenceGateway) -> None:
    gateway.enqueue(*(wire(f"t-{n}", priority=1 + n % 4) for n in range(30)))
    with desk(tmp_path / "data", gateway, LIENWORKER_MAX_WAITING="10") as here:
        here.collect()
        assert one_row("SELECT count(*) FROM tasks") == (10,)
        here.scrape_waiting()
        here.upload_until()
        here.collect()
        assert one_row("SELECT count(*) FROM tasks") == (20,)
    assert gateway.state.waiting_tasks == 10


def test_what_is_not_delivered_takes_up_room(tmp_path: Path, gateway: ReferenceGateway) -> None:
    gateway.enqueue(*(wire(f"t-{n}", priority=1 + n % 4) for n in range(30)))
    gateway.fault("database_down", endpoint="results")
    with desk(tmp_path / "data", gateway, LIENWORKER_MAX_WAITING="10") as here:
        for _ in range(3):
            here.collect()
            here.scrape_waiting()
            here.upload()
        assert one_row("SELECT count(*) FROM tasks") == (10,)
        assert "no work is taken until some of 10 outcomes are delivered" in health_words(here)
        gateway.clear_faults()
        here.everything_is_due()
        here.upload_until()
        here.collect()
        assert one_row("SELECT count(*) FROM tasks") == (20,)
        assert "no work is taken" not in health_words(here)


def test_what_can_never_be_sent_takes_up_no_room(tmp_path: Path, gateway: ReferenceGateway) -> None:
    gateway.enqueue(*(wire(f"t-{n}", target={**PLACE, "county": None}, priority=1 + n % 4) for n in range(20)))
    with desk(tmp_path / "data", gateway, LIENWORKER_MAX_WAITING="10") as here:
        for _ in range(2):
            here.collect()
            here.scrape_waiting()
            here.upload_until()
        assert here.states("upload_result") == {"parked": 20}
    assert {record.state for record in gateway.state.tasks.values()} == {"failed"}


def health_words(here: Desk) -> str:
    return judge(here.runtime.settings, facts_of(here.runtime.settings, here.runtime.folder)).words


def test_a_worker_has_the_same_name_after_a_restart(tmp_path: Path, gateway: ReferenceGateway) -> None:
    """Tasks are booked under it."""
    gateway.configure(retry_without_tasks=0)
    for _ in range(2):
        with desk(tmp_path / "data", gateway) as here:
            with write("test"):
                execute("DELETE FROM facts")
            here.collect()
    names = [call.worker_id for call in gateway.state.calls("work")]
    assert len(names) >= 2
    assert len(set(names)) == 1


def test_nothing_is_taken_while_intake_is_paused(here: Desk, gateway: ReferenceGateway) -> None:
    gateway.enqueue(wire())
    set_pause_by_hand(["intake"], paused=True)
    here.collect(0.3)
    assert gateway.state.calls("work") == []
    set_pause_by_hand(["intake"], paused=False)
    here.collect()
    assert one_row("SELECT count(*) FROM tasks") == (1,)


def test_a_queue_that_fails_does_not_stop_uploads(here: Desk, gateway: ReferenceGateway) -> None:
    broken = gateway.fault("500", endpoint="work")
    here.add(5)
    here.collect_until(lambda: here.breaker("work")["is_open"])
    here.collect(0.3)
    here.upload()
    assert len(gateway.state.results) == 5
    assert here.breaker("work")["is_open"]
    assert 2 <= len(gateway.state.calls("work")) < 10  # backing off
    gateway.clear_faults(broken)
    gateway.enqueue(wire("after"))
    here.collect_until(lambda: not here.breaker("work")["is_open"])
    assert task("after")


@pytest.mark.parametrize("fault", ["reset", "half_json"])
def test_what_arrived_whole_of_a_broken_reply_is_kept(here: Desk, gateway: ReferenceGateway, fault: str) -> None:
    gateway.enqueue(*(wire(f"t-{n}", priority=1 + n) for n in range(4)))
    gateway.fault(fault, endpoint="work", count=1)
    here.collect_until(lambda: one_row("SELECT count(*) FROM tasks")[0])
    (n,) = one_row("SELECT count(*) FROM tasks")
    assert 1 <= n <= 3  # half of the reply


# Proxies


@pytest.mark.parametrize(
    "given",
    [
        "http://user:pw@proxy.example:3128",
        {"url": "socks5://user:pw@proxy.example:1080"},
        {"host": "proxy.example", "port": 3128, "username": "user", "password": "p@w:/"},
        {"scheme": "socks5", "host": "proxy.example", "port": "1080"},
    ],
)
def test_a_proxy_is_kept_apart_and_never_shown(store: None, given: Any) -> None:
    taken(wire(proxy=given, target={**PLACE, "proxy": given}))
    target, proxy = one_row("SELECT target_json, proxy FROM tasks")
    assert "proxy.example" in proxy
    assert "proxy" not in target
    assert task("t-1")["proxy"] == "(set)"  # type: ignore[index]


@pytest.mark.parametrize("unreadable", [12, ["http://proxy.example"], {"server": "http://proxy.example"}, {"host": 1}])
def test_a_task_whose_proxy_cannot_be_read_is_not_fetched_without_it(store: None, unreadable: Any) -> None:
    """Whoever names a proxy does not want the county to see this machine."""
    taken(wire(proxy=unreadable))
    assert one_row("SELECT status FROM tasks") == ("failed",)


def test_a_proxy_in_the_target_is_used(store: None) -> None:
    """The contract says that one may appear, not where."""
    taken(wire(target={**PLACE, "proxy": "http://proxy.example:3128"}))
    assert one_row("SELECT proxy FROM tasks") == ("http://proxy.example:3128",)


# Nothing that can be handed out may cost its neighbours


def assert_kept(*tasks: Any, n: int) -> None:
    taken(*tasks)
    assert one_row("SELECT count(*) FROM tasks") == (n,)


HALF = json.loads('"\\ud800"')
HOSTILE = {
    "half a character in the target": wire("odd", target={**PLACE, "note": HALF}),
    "half a character as a key": wire("odd", target={**PLACE, HALF: 1}),
    "half a character in the proxy": wire("odd", proxy=f"http://proxy.example:1/{HALF}"),
    "half a character in the proxy's password": wire("odd", proxy={"host": "p", "username": "u", "password": HALF}),
    "half a character in the type": wire("odd", type=HALF),
    "half a character in the url": wire("odd", target={**PLACE, "url": f"http://county.example/{HALF}"}),
    "a NUL in the id": wire("odd\0id"),
    "a NUL in the parcel id": wire("odd", target={**PLACE, "parcel_id": "a\0b"}),
    "a broken IPv6 url": wire("odd", target={**PLACE, "url": "http://[::1/"}),
    "year 2": wire("odd", created_at="0002-01-01T00:00:00Z"),
    "nothing but null": None,
    "a number": 12,
    "no id": wire(None),
    "a long id": wire("x" * 100_000),
    "an integer as long as a page": wire("odd", target={**PLACE, "n": 10**3990}),
    "a priority of another world": wire("odd", priority=10**30),
    "a port of another world": wire("odd", target={**PLACE, "url": "http://county.example:99999/"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_task_costs_its_neighbours_nothing(store: None, name: str) -> None:
    hostile = HOSTILE[name]
    assert_kept(wire("before"), hostile, wire("after"), n=2 if hostile is None else 3)


@pytest.mark.parametrize("name", ["a NUL in the id", "no id", "a long id"])
def test_a_hostile_task_that_comes_twice_costs_its_neighbours_nothing(store: None, name: str) -> None:
    taken(HOSTILE[name])
    assert_kept(HOSTILE[name], wire("after"), n=2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("platform", default_registry().names())
def test_no_target_makes_a_platform_lose_a_reply(tmp_path: Path, platform: str) -> None:
    """Building an address from any target: a value of any type under any name that a platform may look for."""
    open_store(tmp_path / platform)
    configure("ondemand")
    names = ["base_url", "url", "parcel_id", "state", "county", "layer", "service", "app", "site", "host", "id", "pin"]
    odd = [None, 0, 1.5, True, "", " ", "x" * 3000, "../..", "%%%", "ü\n", [], ["a"], {}, {"a": {"b": 1}}]
    targets = [{**{k: v for k, v in PLACE.items() if k != "url"}, name: value} for name in names for value in odd]
    targets += [dict.fromkeys(names, value) for value in odd]
    taken(*(wire(f"t-{n}", platform=platform, target=target) for n, target in enumerate(targets)))
    assert one_row("SELECT count(*) FROM tasks") == (len(targets),)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "task_id": st.sampled_from(["a", "b", "a/b", "", "\0"]) | JSON,
                "type": st.sampled_from(["scrape", "dance"]) | JSON,
                "platform": st.sampled_from(["demo", "generic", "arcgis", "qpublic"]) | JSON,
                "target": st.dictionaries(st.sampled_from([*PLACE, "base_url", "proxy", "x"]), JSON) | JSON,
                "priority": JSON,
                "created_at": st.datetimes().map(lambda at: at.isoformat() + "Z") | JSON,
                "proxy": JSON,
            },
        )
        | JSON,
        max_size=4,
    )
)
def test_any_reply_is_taken(store: None, tasks: list[Any]) -> None:
    reply = parse_work(decode(json.dumps({"tasks": tasks})))
    assert reply is not None
    (before,) = one_row("SELECT count(*) FROM tasks")
    done = take_work(reply.tasks, default_registry(), 168)
    assert done.added + done.known + done.undoable == len(reply.tasks)
    assert one_row("SELECT count(*) FROM tasks") == (before + done.added + done.undoable,)


# A task that is handed out again


def hand_out_again(here: Desk, gateway: ReferenceGateway, task_id: str) -> None:
    """Not in the contract; a queue at the Gateway may hold a task twice all the same."""
    gateway.enqueue({"verbatim": wire(task_id), "platform": "demo", "priority": 1})
    with write("test"):
        execute("DELETE FROM facts WHERE name = ?", (NEXT_POLL,))  # what it asked for is over
    here.collect()
    here.upload_until()


def test_a_delivered_task_that_is_handed_out_again_is_closed_there_again(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1, name="t-")
    here.upload_until()
    for n in (1, 2):
        hand_out_again(here, gateway, "t-1")
        assert [call.path for call in gateway.state.calls("complete")] == ["/internal/tasks/t-1/complete"] * n
        assert gateway.state.tasks["t-1"].state == "completed"
    assert len(gateway.state.calls("results")) == 1  # what was acknowledged is not sent again
    assert one_row("SELECT count(*) FROM outbox WHERE topic = 'fetch'") == (1,)
    here.books_are_right()


def test_a_failed_task_that_is_handed_out_again_is_reported_again(here: Desk, gateway: ReferenceGateway) -> None:
    handed_out(gateway, wire("t-1", platform="atlantis"))
    here.collect()
    here.upload_until()
    hand_out_again(here, gateway, "t-1")
    assert [call.path for call in gateway.state.calls("fail")] == ["/internal/tasks/t-1/fail"] * 2
    assert gateway.state.tasks["t-1"].state == "failed"
    here.books_are_right()


@pytest.mark.parametrize("parcel", ["well", "missing"])
@pytest.mark.parametrize("is_told_at_once", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_a_task_on_its_way_that_is_handed_out_again_leaves_no_booking(
    here: Desk, gateway: ReferenceGateway, site: DemoSite, parcel: str, is_told_at_once: bool, times: int
) -> None:
    place = site.parcels(1)[0] if parcel == "well" else site.odd_parcels()[0]
    again = wire(target={name: place[name] for name in PLACE})
    handed_out(gateway, *[again] * (1 + times))
    here.collect()
    if is_told_at_once:
        here.upload_until()
        assert gateway.state.bookings == {here.runtime.folder.worker_id(): {"t-1": 1}}
    here.fetch_and_scrape()
    here.upload_until()
    assert gateway.state.bookings == {}
    assert gateway.state.tasks["t-1"].state == ("completed" if parcel == "well" else "failed")
    assert site.hits[f"/parcel/{place['parcel_id']}"] == 1
    here.books_are_right()


def test_a_failed_task_that_is_handed_out_twice_leaves_no_booking(here: Desk, gateway: ReferenceGateway) -> None:
    handed_out(gateway, *[wire("t-1", platform="atlantis")] * 3)
    here.collect()
    here.upload_until()
    assert len(gateway.state.calls("fail")) == 3
    assert gateway.state.bookings == {}


def test_a_report_for_a_task_that_is_handed_out_again_is_held_in_standalone_mode(
    here: Desk, gateway: ReferenceGateway
) -> None:
    here.add(1, name="t-")
    here.upload_until()
    configure("standalone")
    taken(wire("t-1"))
    assert all_rows("SELECT state, reason FROM outbox WHERE topic = 'report_failure'") == [("held", "standalone")]


def test_tasks_in_hand_are_kept_while_the_database_takes_nothing(
    here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the Gateway never hands them out again, so they must not be let go while we live."""
    module = sys.modules["lienworker.steps.collect"]
    real, fails = module.take_work, iter([True, True])

    def take_work(*arguments: Any) -> Any:
        if next(fails, False):
            raise peewee.OperationalError("database or disk is full")
        return real(*arguments)

    monkeypatch.setattr(module, "take_work", take_work)
    gateway.enqueue(wire("t-1"), wire("t-2"))
    here.collect()
    assert {row[0] for row in all_rows("SELECT task_id FROM tasks")} == {"t-1", "t-2"}
