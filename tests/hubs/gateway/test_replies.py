"""What a reply proves, and how long it asks to wait."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from lienworker.hubs.gateway.wire import (
    HeartbeatReply,
    RawFailure,
    RawReply,
    error_words,
    parse_closed,
    parse_heartbeat,
    parse_raw,
    parse_results,
    plain_words,
    retry_after,
    scrubber,
)
from tests.hubs.gateway.test_work_parsing import ANY_JSON


def _counts(inserted: Any = 0, updated: Any = 0, failed: Any = 0, errors: Any = None) -> dict[str, Any]:
    return {"inserted": inserted, "updated": updated, "failed": failed, "errors": errors}


@pytest.mark.parametrize(
    ("counts", "proven"),
    [
        (_counts(3), True),
        (_counts(1, 2), True),
        (_counts(2, 0, 1, ["x"]), False),
        (_counts(2), False),
        (_counts(0, 0, 3), False),
    ],
)
def test_only_inserted_plus_updated_equal_to_sent_proves_that_all_is_stored(counts: Any, proven: bool) -> None:
    reply = parse_results(counts, 3)
    assert reply is not None
    assert reply.all_stored is proven


@pytest.mark.parametrize(
    "value",
    [
        _counts(4),
        _counts(3, 0, 1),
        _counts(0),
        _counts(-1, 4),
        _counts(3.0),
        _counts(True, 2),
        _counts("3"),
        {"inserted": 3},
        {"error": {}},
        [],
        None,
        "ok",
    ],
)
def test_counts_that_cannot_be_true_are_no_reply(value: Any) -> None:
    assert parse_results(value, 3) is None


@pytest.mark.parametrize(("errors", "read"), [(None, ()), (["a", {"b": 1}], ("a", '{"b":1}')), ("one", ("one",))])
def test_errors_may_be_null_a_list_or_anything(errors: Any, read: tuple[str, ...]) -> None:
    reply = parse_results(_counts(1, 0, 1, errors), 2)
    assert reply is not None
    assert reply.errors == read


def test_a_raw_reply_is_a_success_only_with_status_ok() -> None:
    assert parse_raw({"status": "ok", "path": "raw/x"}) == RawReply("raw/x")
    assert parse_raw({"status": "error", "message": "disk full"}) == RawFailure("disk full")
    assert parse_raw({"status": "queued"}) == RawFailure("queued")
    assert parse_raw({"path": "x"}) is None


@given(ANY_JSON)
def test_no_reply_makes_a_parser_raise(value: Any) -> None:
    for parse in (parse_raw, parse_closed, parse_heartbeat, lambda v: parse_results(v, 2)):
        parse(value)


def test_closing_is_answered_with_true_or_false() -> None:
    for success in (True, False):
        closed = parse_closed({"status": "reported", "success": success})
        assert closed is not None
        assert closed.success is success
    assert parse_closed({"success": "yes"}) is None


@pytest.mark.parametrize(
    ("commands", "names"),
    [
        (None, ()),
        ([], ()),
        (["Pause ", {"command": "resume"}, {"type": "x"}, 7, None], ("pause", "resume", "x")),
        ("pause", ("pause",)),
    ],
)
def test_commands_may_be_null_or_a_list_of_words_or_objects(commands: Any, names: tuple[str, ...]) -> None:
    reply = parse_heartbeat({"acknowledged": True, "commands": commands})
    assert reply is not None
    assert reply.command_names == names


def test_a_heartbeat_reply_without_commands_is_fine() -> None:
    assert parse_heartbeat({"acknowledged": True}) == HeartbeatReply(True)
    assert parse_heartbeat({"ok": True}) is None


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"Retry-After": formatdate(NOW + 60, usegmt=True)}, 60),
        ({"Retry-After": formatdate(NOW - 60, usegmt=True)}, 0),
        ({"Retry-After": "-5"}, 0),
        ({"Retry-After": "1e99"}, 86400),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "soon", "X-RateLimit-Reset": "30"}, 30),
        ({"X-RateLimit-Reset": str(NOW + 45)}, 45),
        ({"X-RateLimit-Reset": str(int((NOW + 45) * 1000))}, 45),
        ({"Retry-After": "nan"}, None),
        ({}, None),
        # This side's clock is an hour wrong: the reply's own date counts.
        ({"Date": formatdate(NOW + 3600, usegmt=True), "Retry-After": formatdate(NOW + 3610, usegmt=True)}, 10),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(CIMultiDict(headers), NOW) == seconds


@given(st.dictionaries(st.sampled_from(["Retry-After", "X-RateLimit-Reset", "Date"]), st.text()))
def test_no_header_makes_it_raise(headers: dict[str, str]) -> None:
    seconds = retry_after(CIMultiDict(headers), NOW)
    assert seconds is None or 0 <= seconds <= 86400


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("", "", ""),
        ("failed to get tasks\n", "text/plain", "failed to get tasks"),
        ('{"error":{"code":"UNAUTHORIZED","message":"no"}}', "application/json", "UNAUTHORIZED: no"),
        ('{"error":"boom"}', "", "boom"),
        ('{"message":"m"}', "", "m"),
        ("[1,2]", "", "[1,2]"),
        ("<html><title>502 Bad\nGateway</title>", "text/html", "an HTML page: 502 Bad Gateway"),
        ("<!DOCTYPE html><p>Hi <b>you</b>", "", "an HTML page: Hi you"),
        ("a\x1b[31m\0b", "", "a [31m b"),
    ],
)
def test_an_error_body_becomes_one_line_of_words(body: str, kind: str, words: str) -> None:
    assert error_words(body, kind) == words


def test_words_are_short() -> None:
    assert len(plain_words("x " * 10_000)) <= 500


def test_secrets_are_taken_out_the_longest_first() -> None:
    scrub = scrubber(("abc", "abcdef", ""))
    assert scrub("token abcdef and abc") == "token [secret] and [secret]"
