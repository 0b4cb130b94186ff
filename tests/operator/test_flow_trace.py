"""What a person sees of a walk: each step, and none of the session's secrets."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lienworker.fetching import Fetched, Jar
from lienworker.operator.flow_trace import FlowTrace
from lienworker.platforms.flows import Ask, Capture, Flow, Step

TOKEN, COOKIE, KEY = "tok-5d41402abc", "sid-098f6bcd46", "key-ad0234829205"
FLOW = Flow(
    settings={"base_url": "https://a.example", "api_key": KEY},
    headers={"x-api-key": "{api_key}"},
    session=60.0,
    open=(Step(get="{base_url}/in", capture={"token": Capture(re=r"token=(\S+)")}),),
    steps=(
        Step(get="{base_url}/search?t={token}", capture={"detail": Capture(re=r"see=(\S+)")}),
        Step(get="{base_url}/{detail}", headers={"Authorization": "{token}"}, keep="page"),
    ),
)


def ask(label: str, url: str, body: bytes | None = None) -> Ask:
    return Ask("POST" if body else "GET", url, {}, body, True, label)


def fetched(url: str, text: str) -> Fetched:
    return Fetched(url, 200, text.encode(), "text/html", "utf-8", None, None, 0, 5)


def walked(*, in_full: bool) -> tuple[FlowTrace, list[str]]:
    """Two steps as they are told; on an event loop, where jars are."""
    return asyncio.run(_walked(in_full=in_full))


async def _walked(*, in_full: bool) -> tuple[FlowTrace, list[str]]:
    jar = Jar([{"host": "a.example", "path": "/", "name": "sid", "value": COOKIE}])
    lines: list[str] = []
    trace = FlowTrace(FLOW, lines.append, in_full=in_full)
    trace(ask("open 1", "https://a.example/in"), fetched("https://a.example/in", f"token={TOKEN} "), jar)
    found = fetched("https://a.example/search", f"see=parcel/7 {TOKEN} {COOKIE} {KEY}")
    trace(ask("step 1", f"https://a.example/search?t={TOKEN}", b"a=1&b=2"), found, jar)
    return trace, lines


def test_each_request_is_a_line_with_its_step_and_its_reply() -> None:
    _, lines = walked(in_full=False)
    assert lines == [
        "open 1   GET https://a.example/in: 200, 21 bytes",
        f"step 1   POST https://a.example/search?t=[secret]: 200, {13 + len(TOKEN + COOKIE + KEY) + 2} bytes",
    ]


def test_in_full_it_tells_what_is_sent_and_captured_but_no_secret() -> None:
    _, lines = walked(in_full=True)
    said = "\n".join(lines)
    assert "captured token: [secret]" in said
    assert "captured detail: parcel/7" in said
    assert "sent 2 fields: a, b" in said
    assert not any(secret in said for secret in (TOKEN, COOKIE, KEY))


def test_the_page_of_the_last_step_is_saved_without_secrets(tmp_path: Path) -> None:
    trace, _ = walked(in_full=True)
    place = trace.save(tmp_path, "sunny")
    assert place == tmp_path / "sunny-step-1.html"
    assert place.read_text() == "see=parcel/7 [secret] [secret] [secret]"
