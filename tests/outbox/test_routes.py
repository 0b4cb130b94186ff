"""One site under many spellings is one host; a task's own proxy is a route of its own to it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lienworker.data_folder import DataFolder
from lienworker.db.database import all_rows
from lienworker.hostnames import host_of, route_of, same_host, site_of
from lienworker.maintenance.hosts import give_up_dead_hosts
from lienworker.operator.tasks import retry_tasks
from lienworker.outbox.claims import Rules, claimable
from lienworker.outbox.outcomes import fail
from lienworker.outbox.pacing import SPELLING, record_host_answer, record_host_failure, respell_hosts
from lienworker.outbox.registration import register_in_transaction, register_task
from lienworker.store.tasks import NewTask
from tests.harness.outbox_fixtures import Clock
from tests.harness.outbox_rows import add, change, host_row, in_transaction, row_of, take, the_books_are_right

PROXY = "http://user:pass@proxy.example:3128"
SLOW = Rules(host_delay=10.0, host_concurrency=50)
SPELLINGS = [
    "http://county.example/",
    "http://ｃｏｕｎｔｙ．ｅｘａｍｐｌｅ/",
    "http://ｃounty.example/",
    "http://county。example/",
    "http://COUNTY.Example/",
    "http://county.example./",
    "http://county%2eexample/",
    "http://County%2Eexample%2e/",
    "http://county.example:80/",
    "https://county.example:443/",
    "http://user:pass@county.example/",
    "http://county.example:８０/",
]


@pytest.mark.parametrize("url", SPELLINGS)
def test_every_spelling_of_a_name_is_the_same_host(url: str) -> None:
    assert host_of(url) == "county.example"
    assert host_of(f"{url}page?next=http://other.example/") == "county.example"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.1/", "127.0.0.1"),
        ("http://0x7f.0.0.1/", "127.0.0.1"),
        ("http://2130706433:8080/", "127.0.0.1:8080"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://１２７.0.0.1/", "127.0.0.1"),
        ("http://[::0001]/", "[::1]"),
        ("http://[2001:DB8:0:0:0:0:0:1]:8080/", "[2001:db8::1]:8080"),
        ("http://例え.jp/", "xn--r8jz45g.jp"),
        ("http://XN--R8JZ45G.jp/", "xn--r8jz45g.jp"),
        ("https://county.example:80/", "county.example:80"),
    ],
)
def test_addresses_and_foreign_names_have_one_spelling(url: str, host: str) -> None:
    assert host_of(url) == host
    assert same_host(host) == host, "what is stored so stays so"


def test_thirty_spellings_of_a_host_get_one_request_in_its_delay(folder: DataFolder, clock: Clock) -> None:
    tasks = [NewTask("cli", f"{url}{k}") for k in range(3) for url in SPELLINGS]
    in_transaction(register_in_transaction, tasks)

    assert len(take(rules=SLOW)) == 1
    clock.go(9_000)
    assert take(rules=SLOW) == []
    clock.go(1_000)
    assert len(take(rules=SLOW)) == 1


def test_rows_that_an_older_version_stored_under_odd_names_are_paced_with_the_others(
    folder: DataFolder, clock: Clock
) -> None:
    add(2, "county.example")
    odd = add(3, "odd.example")
    change("DELETE FROM facts WHERE name = ?", SPELLING)
    change("UPDATE hosts SET host = 'ｃounty.example.', robots_delay = 7.0 WHERE host = 'odd.example'")
    change("UPDATE outbox SET host = 'ｃounty.example.' WHERE host = 'odd.example'")
    change("UPDATE outbox SET state = 'held', reason = 'operator' WHERE task_id = ?", odd[2])

    respell_hosts()

    assert all_rows("SELECT host, count(*) FROM outbox GROUP BY 1") == [("county.example", 5)]
    assert host_row("county.example")["robots_delay"] == 7.0
    assert len(take(rules=SLOW)) == 1
    the_books_are_right()


def test_a_task_that_failed_under_an_odd_name_can_be_retried(folder: DataFolder) -> None:
    (task_id,) = add(1, "odd.example")
    change("UPDATE hosts SET host = 'ODD.example'")
    change("UPDATE outbox SET host = 'ODD.example'")
    in_transaction(fail, take()[0], "http_404", "not there")

    assert retry_tasks([task_id], "test").changed == 1

    assert [row.task_id for row in take(token="me.2")] == [task_id]


# Routes


def _with_proxy(n: int, proxy: str = PROXY, host: str = "county.example") -> list[str]:
    return add(n, host, name=f"by-{proxy[:6]}-", proxy=proxy)


def test_a_route_names_its_site_and_hides_its_proxy() -> None:
    route = route_of("http://County.example/x", PROXY)
    assert site_of(route) == "county.example"
    assert route != route_of("http://county.example/x", PROXY + "1")
    assert "pass" not in route
    assert route_of("http://county.example/x", None) == site_of("county.example") == "county.example"


def test_what_fails_through_a_tasks_own_proxy_cools_that_route_only(folder: DataFolder, clock: Clock) -> None:
    add(2, "county.example")
    proxied = _with_proxy(2)
    other = _with_proxy(1, "socks5://other.example")
    in_transaction(record_host_failure, row_of(proxied[0])["host"], clock.ms, "rate_limited", 3600.0)

    taken = {row.task_id for row in take()}

    assert taken == {"county.example/p0", "county.example/p1", *other}
    assert host_row("county.example")["cooling_until"] == 0
    assert claimable("fetch", SLOW, 10) == 0
    clock.go(3_600_000)
    assert {row.task_id for row in take()} == set(proxied)


def test_a_site_that_asks_for_a_pause_is_left_alone_by_all_routes(folder: DataFolder, clock: Clock) -> None:
    add(1, "county.example")
    _with_proxy(1)
    in_transaction(record_host_failure, "county.example", clock.ms, "rate_limited", 60.0)
    assert take() == []
    clock.go(60_000)
    assert len(take()) == 2


def test_routes_share_the_pace_of_their_site(folder: DataFolder, clock: Clock) -> None:
    add(5, "county.example")
    _with_proxy(5)
    _with_proxy(5, "socks5://other.example")
    starts = []
    for _ in range(6):
        starts += [row.start_at for row in take(rules=SLOW)]
        clock.go(5_000)
    assert [later - earlier for earlier, later in pairwise(starts)] == [10_000, 10_000]
    change("UPDATE hosts SET next_allowed_at = 0")
    assert len(take(rules=Rules(0.0, 5))) == 2, "open requests are counted by site, too: three are open"


def test_a_proxy_that_never_works_gives_up_its_own_tasks_only(folder: DataFolder, clock: Clock) -> None:
    add(2, "county.example")
    proxied = _with_proxy(3)
    route = row_of(proxied[0])["host"]
    for _ in range(4):
        in_transaction(record_host_failure, route, clock.ms, "http_503", None)
        clock.go(700_000)

    assert give_up_dead_hosts(1800.0) == 3

    assert {row_of(task_id)["reason"] for task_id in proxied} == {"host_down"}
    assert len(take()) == 2


def test_a_proxys_success_does_not_speak_for_the_site(folder: DataFolder, clock: Clock) -> None:
    add(1, "county.example")
    (task_id,) = _with_proxy(1)
    in_transaction(record_host_failure, "county.example", clock.ms, "http_503", None)
    clock.go(600_000)
    in_transaction(record_host_answer, row_of(task_id)["host"], clock.ms)
    assert host_row("county.example")["failures_in_a_row"] == 1


def test_a_retry_and_a_refresh_keep_to_the_route(folder: DataFolder) -> None:
    (task_id,) = _with_proxy(1)
    route = row_of(task_id)["host"]
    in_transaction(fail, take()[0], "http_404", "not there")
    retry_tasks([task_id], "test")
    assert row_of(task_id)["host"] == route
    in_transaction(fail, take(token="me.2")[0], "http_404", "not there")
    again = NewTask("cli", "http://county.example/by-http:/-0", task_id=task_id)
    register_task(again, refresh=True)
    assert row_of(task_id)["host"] == route


def test_rows_with_a_proxy_from_an_older_version_get_their_route(folder: DataFolder) -> None:
    (task_id,) = _with_proxy(1)
    route = row_of(task_id)["host"]
    change("UPDATE outbox SET host = 'county.example'")
    change("DELETE FROM hosts WHERE host <> 'county.example'")
    change("DELETE FROM facts WHERE name = ?", SPELLING)

    respell_hosts()
    respell_hosts()

    assert row_of(task_id)["host"] == route
    assert len(take()) == 1
    the_books_are_right()
