"""The requests of a flow: POST, headers and cookies that a session shares, and what redirects do to them."""

from __future__ import annotations

import asyncio

from aiohttp import web

from lienworker.fetching import Fetched, Fetcher, FetchFailed, FetchRequest, Jar
from tests.fetching.fetching_servers import OPTIONS, site


def run(work: object) -> object:
    return asyncio.run(work)  # type: ignore[arg-type]


def test_a_post_is_sent_with_its_body_its_headers_and_the_cookies_of_its_session() -> None:
    async def talk() -> None:
        async def handler(request: web.BaseRequest) -> web.Response:
            body = (await request.read()).decode()
            shown = f"{request.method} {body} {request.headers.get('X-Token')} {request.headers.get('Cookie')}"
            reply = web.Response(text=shown, headers={"X-Reply": "yes"})
            reply.set_cookie("id", "s3cret", path="/")
            return reply

        async with site(handler) as here:
            fetcher, jar = Fetcher(OPTIONS), Jar()
            ask = FetchRequest(
                f"{here.url}/search",
                method="POST",
                body=b"a=1",
                headers={"X-Token": "t", "Content-Type": "application/x-www-form-urlencoded"},
                jar=jar,
            )
            first, second = await fetcher.fetch(ask), await fetcher.fetch(ask)
            await fetcher.close()
            assert isinstance(first, Fetched)
            assert isinstance(second, Fetched)
            assert first.body == b"POST a=1 t None"
            assert second.body == b"POST a=1 t id=s3cret"
            assert first.headers["X-Reply"] == "yes"
            again = Jar(jar.dump())
            assert again.dump() == jar.dump()
            assert "s3cret" not in repr((ask, again))

    run(talk())


def test_a_redirect_after_a_post_is_a_get_and_another_host_gets_neither_headers_nor_cookies() -> None:
    async def talk() -> None:
        async def other(request: web.BaseRequest) -> web.Response:
            token, cookie = request.headers.get("X-Token"), request.headers.get("Cookie")
            return web.Response(text=f"{request.method} {await request.text()}{token} {cookie}")

        async with site(other) as elsewhere:

            async def handler(request: web.BaseRequest) -> web.Response:
                place = f"http://localhost:{elsewhere.port}/" if request.path == "/away" else "/here"
                if request.path == "/here":
                    return await other(request)
                reply = web.Response(status=302, headers={"Location": place})
                reply.set_cookie("id", "1")
                return reply

            async with site(handler) as here:
                options = OPTIONS.__class__(**{**_values(OPTIONS), "allow_private": ("127.0.0.1", "localhost")})
                fetcher = Fetcher(options)
                asked = {"method": "POST", "body": b"a=1", "headers": {"X-Token": "t", "Content-Type": "text/plain"}}
                there = await fetcher.fetch(FetchRequest(f"{here.url}/away", jar=Jar(), **asked))  # type: ignore[arg-type]
                same = await fetcher.fetch(FetchRequest(f"{here.url}/x", jar=Jar(), **asked))  # type: ignore[arg-type]
                await fetcher.close()
                assert isinstance(there, Fetched)
                assert isinstance(same, Fetched)
                assert there.body == b"GET None None"
                assert same.body == b"GET t id=1"

    run(talk())


def _values(options: object) -> dict[str, object]:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}  # type: ignore[attr-defined]


def test_a_step_may_have_an_empty_reply_and_a_page_may_not() -> None:
    async def talk() -> None:
        async def handler(request: web.BaseRequest) -> web.Response:
            return web.Response(body=b"", headers={"X-Token": "t"})

        async with site(handler) as here:
            fetcher = Fetcher(OPTIONS)
            step = await fetcher.fetch(FetchRequest(here.url, jar=Jar()))
            page = await fetcher.fetch(FetchRequest(here.url))
            await fetcher.close()
            assert isinstance(step, Fetched)
            assert step.body == b""
            assert isinstance(page, FetchFailed)
            assert page.reason == "empty_body"

    run(talk())


def test_a_site_cannot_fill_a_jar_without_end() -> None:
    async def talk() -> None:
        async def handler(request: web.BaseRequest) -> web.Response:
            reply = web.Response(text="x")
            for n in range(100):
                reply.set_cookie(f"c{n}", "v" * (5000 if n == 0 else 5))
            return reply

        async with site(handler) as here:
            fetcher, jar = Fetcher(OPTIONS), Jar()
            await fetcher.fetch(FetchRequest(here.url, jar=jar))
            await fetcher.close()
            kept = jar.dump()
            assert len(kept) == 50
            assert all(len(cookie["value"]) < 100 for cookie in kept)

    run(talk())
