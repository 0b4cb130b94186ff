"""Sites that break the rules of HTTP, or the connection, or our patience. None may raise, hang or leak."""

from __future__ import annotations

import asyncio
import gzip
import random
import shutil
import socket
import ssl
import subprocess
import zlib
from pathlib import Path

import pytest
from fetching_servers import (
    OPTIONS,
    PAGE,
    always,
    failure,
    fetch,
    fetcher,
    listening,
    names,
    never_answers,
    page,
    refused_port,
    replying,
    site,
)

from lienworker.fetching import FetchFailed, FetchRequest

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hang up so that the other side sees a reset, not an end."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    writer.transport.abort()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


def fetched_from(talk: object, **changes: object) -> FetchFailed:
    async def story() -> FetchFailed:
        async with listening(talk) as port:  # type: ignore[arg-type]
            return failure(await fetch(f"http://127.0.0.1:{port}/", **changes))

    return asyncio.run(story())


@pytest.mark.parametrize(
    "talk",
    [
        pytest.param(replying(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), id="another protocol"),
        pytest.param(replying(b"HTTP/1.1 abc Nonsense\r\n\r\n"), id="garbage status line"),
        pytest.param(replying(b"\x00" * 5000), id="zeros"),
        pytest.param(replying(), id="hangs up without a word"),
        pytest.param(replying(then=reset), id="resets without a word"),
        pytest.param(replying(HEAD), id="hangs up within the headers"),
        pytest.param(replying(HEAD + b"Content-Length: 100\r\n\r\nshort"), id="less than announced"),
        pytest.param(replying(HEAD + b"Content-Length: 100\r\n\r\nshort", then=reset), id="resets mid-body"),
        pytest.param(replying(HEAD + b"Content-Length: 5\r\n\r\nhello and more"), id="more than announced"),
        pytest.param(replying(HEAD + b"Content-Length: -1\r\n\r\nx"), id="negative length"),
        pytest.param(replying(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), id="two lengths"),
        pytest.param(replying(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"), id="chunk breaks off"),
        pytest.param(replying(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"), id="no chunk size"),
        pytest.param(replying(HEAD + b"X: " + b"a" * 200_000 + b"\r\n\r\n"), id="endless header"),
        pytest.param(replying(HEAD + b"X: a\r\n" * 10_000 + b"\r\n"), id="too many headers"),
        pytest.param(replying(HEAD + b"Bad Header Name\r\n\r\nx"), id="broken header"),
        pytest.param(replying(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), id="redirect to nowhere"),
    ],
)
def test_a_reply_against_the_rules_is_a_protocol_error(talk: object) -> None:
    failed = fetched_from(talk)
    assert (failed.reason, failed.retryable, failed.host_fault) == ("protocol_error", True, False)


def test_a_body_that_ends_with_the_connection_is_a_page() -> None:
    async def story() -> None:
        async with listening(replying(HEAD + b"\r\nhello")) as port:
            assert page(await fetch(f"http://127.0.0.1:{port}/")).body == b"hello"

    asyncio.run(story())


def test_odd_bytes_in_headers_spoil_nothing() -> None:
    async def story() -> None:
        head = b'HTTP/1.1 200 \xff\r\nContent-Type: \xff/\xff\r\nETag: "\xff"\r\nX-County: \xe9\r\n'
        talk = replying(head + b"Content-Length: 5\r\n\r\nhello")
        async with listening(talk) as port:
            got = page(await fetch(f"http://127.0.0.1:{port}/"))
        assert (got.body, got.etag, got.content_type) == (b"hello", None, "")

    asyncio.run(story())


def test_a_page_that_drips_for_ever_is_cut_by_the_total_time_out() -> None:
    failed = fetched_from(replying(HEAD + b"\r\n", then=drip), total_timeout=1.5)  # the headers come in time
    assert (failed.reason, failed.retryable, failed.host_fault) == ("timeout", True, False)
    assert 1_400 <= failed.elapsed_ms < 20_000


def test_redirects_that_drip_share_one_total_time_out() -> None:
    async def hop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.15)
        path = request.split(b" ")[1]
        writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + path + b"x\r\n\r\n")
        await writer.drain()

    failed = fetched_from(hop, total_timeout=0.4, max_redirects=50)
    assert failed.reason == "timeout"
    assert failed.elapsed_ms < 7000  # fifty of them take longer


def test_a_site_that_stops_sending_is_cut_by_the_read_time_out() -> None:
    failed = fetched_from(replying(HEAD + b"\r\nhello", then=never_answers), read_timeout=1.0)  # the same
    assert (failed.reason, failed.host_fault) == ("timeout", False)
    assert failed.elapsed_ms < 20_000


def test_a_site_that_never_answers_is_cut_by_the_read_time_out() -> None:
    assert fetched_from(never_answers, read_timeout=0.1).reason == "timeout"


def test_headers_that_drip_for_ever_are_cut_by_the_total_time_out() -> None:
    assert fetched_from(replying(HEAD + b"X: ", then=drip), total_timeout=0.4).reason == "timeout"


def test_interim_replies_without_end_are_cut_by_the_total_time_out() -> None:
    async def interim(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    assert fetched_from(interim, total_timeout=0.4).reason == "timeout"


def test_an_endless_body_is_cut_by_the_cap() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    assert fetched_from(replying(HEAD + b"\r\n", then=endless)).reason == "too_large"


def test_what_the_site_said_survives_an_error_page_that_never_ends() -> None:
    head = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n\r\nDown for repairs"
    failed = fetched_from(replying(head, then=never_answers), total_timeout=1.5)
    assert (failed.reason, failed.retry_after, failed.body) == ("http_503", 7.0, b"Down for repairs")


def test_what_the_site_said_survives_an_error_page_that_breaks_off() -> None:
    head = b"HTTP/1.1 500 Oops\r\nContent-Length: 900\r\n\r\nStack trace:"
    failed = fetched_from(replying(head, then=reset))
    assert failed.reason == "http_500"


def test_an_upgrade_that_nobody_asked_for_is_a_failure() -> None:
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    assert fetched_from(replying(head, then=never_answers)).reason in ("http_101", "protocol_error")


def test_a_refused_connection_is_the_sites_fault() -> None:
    async def story() -> None:
        failed = failure(await fetch(f"http://127.0.0.1:{await refused_port()}/"))
        assert (failed.reason, failed.retryable, failed.host_fault) == ("connect_failed", True, True)
        assert "refused" in failed.detail

    asyncio.run(story())


def test_a_connection_that_is_never_taken_is_the_sites_fault_too() -> None:
    async def story() -> None:
        # A full backlog: the kernel answers nobody any more.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
            address = server.getsockname()
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(address)
            failed = failure(await fetch(f"http://127.0.0.1:{address[1]}/", connect_timeout=0.3))
            for filler in fillers:
                filler.close()
        assert (failed.reason, failed.host_fault) == ("connect_failed", True)

    asyncio.run(story())


def test_an_unknown_name_is_the_sites_fault() -> None:
    failed = failure(asyncio.run(fetch("http://county.test/", lookup=names())))
    assert (failed.reason, failed.retryable, failed.host_fault) == ("dns_failed", True, True)


def test_a_site_that_does_not_speak_tls_is_a_tls_failure() -> None:
    async def story() -> None:
        async with site(always()) as county:
            failed = failure(await fetch(f"https://127.0.0.1:{county.port}/"))
        assert (failed.reason, failed.host_fault) == ("tls_failed", True)

    asyncio.run(story())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_certificate_that_nobody_signed_is_a_tls_failure(tmp_path: Path) -> None:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=county.test -keyout key -out cert"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def story() -> None:
        server = await asyncio.start_server(never_answers, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        failed = failure(await fetch(f"https://127.0.0.1:{port}/"))
        server.close()
        assert failed.reason == "tls_failed"
        assert "self-signed" in failed.detail

    asyncio.run(story())


def test_a_cancelled_fetch_is_cancelled() -> None:
    async def story() -> None:
        reached = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            reached.set()
            await reader.read()

        async with listening(talk) as port, fetcher() as one:
            task = asyncio.create_task(one.fetch(FetchRequest(f"http://127.0.0.1:{port}/")))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(story())


def mutated(seed: int) -> bytes:
    """A reply with some of its bytes changed, doubled, lost or replaced by what parsers stumble over."""
    dice = random.Random(seed)
    encoding, body = dice.choice([("gzip", gzip.compress(PAGE)), ("deflate", zlib.compress(PAGE)), ("br", PAGE)])
    status = dice.choice([200, 200, 206, 302, 404, 503])
    head = f"HTTP/1.1 {status} X\r\nContent-Encoding: {encoding}\r\nLocation: http://a:b@127.0.0.1:1/x\r\n"
    head += "Set-Cookie: a=b; Path=/\r\nRetry-After: 5\r\nContent-Type: text/html; charset=utf-8\r\n"
    reply = bytearray(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    for _ in range(dice.randint(1, 4)):
        start = dice.randrange(len(reply))
        junk = dice.choice([b"", b"\x00", b"\xff", b"\r\n", b"\r\n\r\n", b":", b"%", b"9" * 30, b"\xc3", b"//"])
        reply[start : start + dice.randint(0, 6)] = junk
    return bytes(reply)


def test_no_mutated_reply_raises_or_is_unforeseen(caplog: pytest.LogCaptureFixture) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        writer.write(mutated(zlib.crc32(request.split(b" ")[1])))

    async def story() -> None:
        async with listening(talk) as port, fetcher() as one:
            requests = [FetchRequest(f"http://127.0.0.1:{port}/{seed}") for seed in range(1500)]
            outcomes = await asyncio.gather(*map(one.fetch, requests))
        failures = [outcome for outcome in outcomes if isinstance(outcome, FetchFailed)]
        assert {"bad_encoding", "protocol_error", "http_503"} <= {failed.reason for failed in failures}

    asyncio.run(story())
    assert [record for record in caplog.records if record.name.startswith("lienworker")] == []


def test_many_broken_sites_leave_no_connection_behind() -> None:
    async def story() -> None:
        closed = 0

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal closed
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + b"\r\n" + b"x" * 5000)
            await reader.read()
            closed += 1

        async with listening(talk) as port, fetcher(max_bytes=100) as one:
            requests = [FetchRequest(f"http://127.0.0.1:{port}/{number}") for number in range(20)]
            outcomes = await asyncio.gather(*map(one.fetch, requests))
            assert {failure(outcome).reason for outcome in outcomes} == {"too_large"}
            while closed < 20:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(story(), OPTIONS.total_timeout))
