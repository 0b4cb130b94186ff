"""Messages come from whoever can write to Redis: what they carry is checked before anything is done with it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dramatiq.middleware import SkipMessage

from lienworker.intake.rows import BadRowError
from lienworker.steps.messages import MessageCheck, parcel_of

GOOD = "https://county.example/parcel/1"


def check(actor: str, *args: Any, **kwargs: Any) -> None:
    MessageCheck().before_process_message(None, SimpleNamespace(actor_name=actor, args=args, kwargs=kwargs))


def test_tokens_and_addresses_pass() -> None:
    for actor in ("fetch", "scrape", "upload", "relay", "collect", "heartbeat", "upkeep"):
        check(actor)
    check("scrape_url", GOOD)
    check("scrape_url", GOOD, "demo", "urgent")
    check("scrape_url", url=GOOD, platform=None)
    assert parcel_of(GOOD, "Demo").platform == "demo"


@pytest.mark.parametrize("actor", ["fetch", "scrape", "upload", "relay", "heartbeat"])
def test_a_token_with_anything_in_it_is_dropped(actor: str) -> None:
    with pytest.raises(SkipMessage):
        check(actor, "x")
    with pytest.raises(SkipMessage):
        check(actor, task_id="x")


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("",),
        (None,),
        (5,),
        ({"a": 1},),
        ([GOOD],),
        ("file:///etc/passwd",),
        ("gopher://x/",),
        ("http://u:p@county.example/",),
        (GOOD + "x" * 10_000,),
        (GOOD + "\n",  {"a": 1}),
        (GOOD, "../../etc"),
        (GOOD, "x" * 100),
        (GOOD, ["demo"]),
        (GOOD, None, "mine"),
        (GOOD, None, 7),
        (GOOD, None, "default", "more"),
    ],
)  # fmt: skip
def test_an_address_that_no_import_would_take_is_dropped(args: tuple[Any, ...]) -> None:
    with pytest.raises(SkipMessage):
        check("scrape_url", *args)


def test_the_sender_is_told_what_is_wrong() -> None:
    with pytest.raises(BadRowError, match="queue"):
        parcel_of(GOOD, None, "mine")


def test_every_message_is_checked_before_its_actor_runs() -> None:
    from lienworker.actors import broker

    kinds = [type(middleware) for middleware in broker.middleware]
    assert MessageCheck in kinds
