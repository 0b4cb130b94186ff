"""Stored data is sent as it lies there, unless something in it needs mending; either way the Gateway gets the same."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lienworker.hubs.gateway.sanitize import (
    FitResult,
    Unfit,
    WrittenItem,
    fit_result,
    fit_stored,
    is_plain_object,
    results_body,
)
from lienworker.hubs.gateway.wire import MAX_DEPTH
from tests.harness.gateway_calls import item
from tests.hubs.gateway.test_work_parsing import ANY_JSON

#: Values with which something is wrong, and their neighbours with which nothing is.
TEXTS = ("\0", "\\u0000", "\ud800", "\U0001f600", "NaN", "1234567890123456789", "[" * 200, '"', "\\")
NUMBERS = (2**53, 2**53 + 1, -(2**53) - 1, 10**15, 10**400, 1e300, 1.2345678901234567)
ODD = st.sampled_from((*TEXTS, *NUMBERS, float("nan"), float("inf"), -float("inf")))
DATA = st.dictionaries(st.text() | st.just("k\0"), ANY_JSON | ODD | st.lists(ODD) | st.dictionaries(st.text(), ODD))


@settings(deadline=None)
@given(DATA)
def test_the_gateway_gets_the_same_whether_data_was_decoded_or_not(data: dict[str, Any]) -> None:
    text = json.dumps(data)
    about = item()
    stored, decoded = fit_stored(about, text), fit_result({**about, "data": json.loads(text)})
    assert type(stored) is type(decoded)
    if isinstance(stored, FitResult) and isinstance(decoded, FitResult):
        assert json.loads(results_body([stored.item])) == json.loads(results_body([decoded.item]))
        assert stored.changes == decoded.changes


def test_an_ordinary_record_is_not_decoded() -> None:
    text = json.dumps({"owner": "Zoë", "apn": "0123456789012345678", "due": 12.5, "taxes": [{"year": 2025}] * 90})
    fitted = fit_stored(item(), text)
    assert isinstance(fitted, FitResult)
    assert isinstance(fitted.item, WrittenItem)
    assert text in fitted.item.text


@pytest.mark.parametrize(
    "data",
    [
        {"a": "x\0y"},
        {"a\0": 1},
        {"a": "\ud800"},
        {"a": float("nan")},
        {"a": [1, -float("inf")]},
        {"a": 2**53 + 1},
        {"a": [-(2**60)]},
    ],
)
def test_what_needs_mending_is_seen(data: dict[str, Any]) -> None:
    assert not is_plain_object(json.dumps(data))


@pytest.mark.parametrize("text", ["[1]", "null", "", ' {"a": 1}', '{"a": "ü"}'])
def test_text_that_the_store_does_not_write_is_looked_at(text: str) -> None:
    assert not is_plain_object(text)


def test_a_long_text_is_passed_over_in_little_memory() -> None:
    text = json.dumps({"wide": [[]] * 300, "legal_description": "LOT 3 " * 200_000})
    tracemalloc.start()
    try:
        assert is_plain_object(text)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("levels", "is_fit"), [(MAX_DEPTH - 1, True), (MAX_DEPTH + 2, False)])
def test_depth_is_told_from_width_and_from_brackets_in_text(levels: int, is_fit: bool) -> None:
    deep: Any = "]" * 300
    for _ in range(levels):
        deep = [deep, "}{"]
    text = json.dumps({"wide": [[]] * 300, "deep": deep})
    assert isinstance(fit_stored(item(), text), FitResult if is_fit else Unfit)


def test_a_key_that_is_missing_is_found_though_the_data_is_plain() -> None:
    fitted = fit_stored(item(county=None), "{}")
    assert isinstance(fitted, Unfit)
    assert fitted.reason == "incomplete_key"
