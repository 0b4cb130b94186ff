from __future__ import annotations

import asyncio
from ipaddress import ip_address

import pytest
from fetching_servers import always, failure, fetch, fetcher, names, page, pages, redirect, site

from lienworker.errors import InputError
from lienworker.fetching import FetchRequest, Guard
from lienworker.fetching.failures import FetchError
from lienworker.fetching.guard import DNS_FAILURE_TTL, DNS_TTL, Exceptions, is_public

PRIVATE = [
    *("0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1"),
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1"),
    *("192.168.1.1", "198.18.0.1", "198.19.255.1", "198.51.100.7", "203.0.113.7", "224.0.0.1"),
    *("239.1.1.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "100::1", "2001:db8::1"),
    *("2001::1", "2001:0:7f00:1::", "2001:10::1", "3fff::1", "5f00::1", "64:ff9b:1::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    *("64:ff9b::127.0.0.1", "64:ff9b::a00:1", "::ffff:0:127.0.0.1"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1"),
    *("198.17.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888"),
    *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"),
]


@pytest.mark.parametrize("text", PRIVATE)
def test_a_private_address_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1"),
        *("127.0.0.1.", "0", "0x0", "10.1", "169.254.43518", "[::1]", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]"),
        *("①②⑦.0.0.1", "１２７.0.0.1", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    ],
)
def test_every_spelling_of_a_private_address_is_refused(host: str) -> None:
    failed = failure(asyncio.run(fetch(f"http://{host}:9/", allow_private=())))
    assert failed.reason == "private_address"
    assert not failed.retryable


@pytest.mark.parametrize("host", ["134744072", "8.8.2056", "0x08080808", "010.8.8.8", "8.8.8.8."])
def test_an_odd_spelling_of_a_public_address_is_a_bad_url(host: str) -> None:
    assert failure(asyncio.run(fetch(f"http://{host}/"))).reason == "bad_url"


@pytest.mark.parametrize("host", ["1.2.3.4.5", "256.1.1.1", "99999999999", "0x", "[::1::2]", "1.2.3.0xzz"])
def test_a_number_that_is_no_address_is_a_bad_url(host: str) -> None:
    assert failure(asyncio.run(fetch(f"http://{host}/"))).reason == "bad_url"


@pytest.mark.parametrize("address", ["10.0.0.5", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.5"])
def test_a_name_that_leads_to_a_private_address_is_refused(address: str) -> None:
    outcome = asyncio.run(fetch("http://county.test/", lookup=names(county_test=address), allow_private=()))
    assert failure(outcome).reason == "private_address"


def test_a_refusal_names_the_host_and_where_it_leads() -> None:
    failed = failure(asyncio.run(fetch("http://u:pw@county.test/", lookup=names(county_test="10.0.0.5"))))
    assert "county.test leads to 10.0.0.5" in failed.detail
    assert "pw" not in failed.detail


def test_of_several_addresses_only_the_admitted_ones_are_connected_to() -> None:
    async def story() -> None:
        guard = Guard(("10.0.0.5",), lookup=names(county_test=["192.168.0.1", "10.0.0.5", "8.8.8.8", "::1"]))
        assert await guard.addresses("county.test", 80) == ["10.0.0.5", "8.8.8.8"]

    asyncio.run(story())


def test_the_address_that_was_checked_is_the_one_that_is_connected_to() -> None:
    """A name service that changes its mind after the check gains nothing: it is not asked a second time."""
    answers = ["127.0.0.1", "10.9.9.9"]

    async def changing(host: str) -> list[str]:
        return [answers.pop(0)]

    async def story() -> None:
        async with site(always()) as county, fetcher(allow_private=("127.0.0.1",), lookup=changing) as one:
            page(await one.fetch(FetchRequest(f"http://county.test:{county.port}/")))
            assert answers == ["10.9.9.9"]
            assert county.seen[0].headers["Host"] == f"county.test:{county.port}"

    asyncio.run(story())


def test_a_name_that_moves_into_the_private_network_later_is_refused_then() -> None:
    now = 0.0
    addresses = {"county.test": ["8.8.8.8"]}

    async def lookup(host: str) -> list[str]:
        return addresses[host]

    async def story() -> None:
        nonlocal now
        guard = Guard((), lookup=lookup, clock=lambda: now)
        assert await guard.addresses("county.test", 80) == ["8.8.8.8"]
        addresses["county.test"] = ["127.0.0.1"]
        now = DNS_TTL - 1
        assert await guard.addresses("county.test", 80) == ["8.8.8.8"]
        now = DNS_TTL
        with pytest.raises(FetchError) as caught:
            await guard.addresses("county.test", 80)
        assert caught.value.reason == "private_address"

    asyncio.run(story())


def test_a_name_is_asked_for_once_by_many_and_survives_the_first_ones_cancellation() -> None:
    async def story() -> None:
        asked, release = 0, asyncio.Event()

        async def lookup(host: str) -> list[str]:
            nonlocal asked
            asked += 1
            await release.wait()
            return ["8.8.8.8"]

        guard = Guard((), lookup=lookup)
        waiting = [asyncio.create_task(guard.addresses("county.test", 80)) for _ in range(5)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        release.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert found[1:] == [["8.8.8.8"]] * 4
        assert asked == 1

    asyncio.run(story())


def test_an_unknown_name_is_remembered_for_a_moment() -> None:
    now, asked = 0.0, 0

    async def lookup(host: str) -> list[str]:
        nonlocal asked
        asked += 1
        raise OSError("no such name")

    async def story() -> None:
        nonlocal now
        guard = Guard((), lookup=lookup, clock=lambda: now)
        for moment in (0.0, DNS_FAILURE_TTL - 1, DNS_FAILURE_TTL):
            now = moment
            with pytest.raises(FetchError, match="dns_failed"):
                await guard.addresses("county.test", 80)

    asyncio.run(story())
    assert asked == 2


def test_a_name_service_that_hangs_is_given_up() -> None:
    async def hangs(host: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    failed = failure(asyncio.run(fetch("http://county.test/", lookup=hangs, connect_timeout=0.05)))
    assert failed.reason == "dns_failed"
    assert failed.host_fault


def test_a_redirect_into_the_private_network_is_refused() -> None:
    async def story() -> None:
        async with site(always()) as inside:
            public = always(b"", 302, Location=f"{inside.url}/admin")
            async with site(public) as county:
                outcome = await fetch(county.url, allow_private=(f"127.0.0.1:{county.port}",))
            assert failure(outcome).reason == "private_address"
            assert inside.seen == []

    asyncio.run(story())


def test_a_redirect_to_another_scheme_is_refused() -> None:
    async def story() -> None:
        async with site(always(b"", 302, Location="file:///etc/passwd")) as county:
            assert failure(await fetch(county.url)).reason == "scheme_refused"

    asyncio.run(story())


def test_robots_txt_cannot_lead_into_the_private_network_either() -> None:
    async def story() -> None:
        async with site(always()) as inside:
            async with site(pages(robots_txt=redirect(f"{inside.url}/robots.txt"), page=b"x")) as county:
                allowed = (f"127.0.0.1:{county.port}",)
                page(await fetch(f"{county.url}/page", obey_robots=True, allow_private=allowed))
            assert inside.seen == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("entry", "host", "port", "allowed"),
    [
        ("county.test", "county.test", 80, True),
        (" County.TEST. ", "county.test", 8080, True),
        ("county.test:8080", "county.test", 8080, True),
        ("county.test:8080", "county.test", 80, False),
        ("county.test", "www.county.test", 80, False),
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("127.0.0.1:8080", "127.0.0.1", 80, False),
        ("[::1]:8080", "::1", 8080, True),
        ("bücher.test", "xn--bcher-kva.test", 80, True),
        ("ALL", "anything", 1, True),
    ],
)
def test_an_exception_may_name_a_host(entry: str, host: str, port: int, allowed: bool) -> None:
    assert Exceptions.parse([entry]).allow_host(host, port) is allowed


@pytest.mark.parametrize(
    ("entry", "address", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "::ffff:127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("[::1]", "::1", True),
        ("10.0.0.0/8", "10.200.1.1", True),
        ("10.0.0.7/8", "10.200.1.1", True),
        ("10.0.0.0/8", "64:ff9b::10.1.1.1", True),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "fe80::1", False),
        ("all", "10.0.0.1", True),
    ],
)
def test_an_exception_may_name_an_address_or_a_network(entry: str, address: str, allowed: bool) -> None:
    assert Exceptions.parse([entry]).allow_address(ip_address(address)) is allowed


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "http://county.test", "*", "a b", "county.test/x", "h:99999"])
def test_an_exception_that_means_nothing_is_an_error_at_once(entry: str) -> None:
    with pytest.raises(InputError, match="allow private"):
        Exceptions.parse([entry])


def test_no_entry_allows_nothing() -> None:
    nothing = Exceptions.parse(["", "  "])
    assert not nothing.allow_host("localhost", 80)
    assert not nothing.allow_address(ip_address("127.0.0.1"))


def test_a_site_is_reached_over_ipv6_and_by_the_systems_own_name_service() -> None:
    async def story() -> None:
        async with site(always(), host="::1") as county:
            page(await fetch(county.url))
        async with site(always()) as county:
            page(await fetch(f"http://localhost:{county.port}/", allow_private=("localhost",)))

    asyncio.run(story())
