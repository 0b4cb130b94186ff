"""Results are made fit before they are sent, or kept back with a reason."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lienworker.hubs.gateway.sanitize import FitResult, Unfit, fit_result, with_raw
from lienworker.hubs.gateway.transport import raw_listing
from lienworker.hubs.gateway.wire import heartbeat_body, raw_name, result_item, task_segment
from lienworker.testing.gateway.decoding import decode_results
from lienworker.testing.gateway.storage import database_error, flat_name
from tests.harness.gateway_calls import item
from tests.hubs.gateway.test_work_parsing import ANY_JSON


def _fit(**changes: Any) -> FitResult:
    result = fit_result(item(**changes))
    assert isinstance(result, FitResult), result
    return result


def _unfit(**changes: Any) -> str:
    result = fit_result(item(**changes))
    assert isinstance(result, Unfit), result
    assert result.detail
    return result.reason


def test_a_good_item_is_not_touched() -> None:
    good = item(raw_html_hash="ab" * 32, data={"a": [1, 2.5, None, True, {"b": "ü"}]})
    assert fit_result(good) == FitResult(good, ())


ODD_ITEM = st.fixed_dictionaries({}, optional=dict.fromkeys([*item(), "raw_html_hash", "extra"], ANY_JSON))
GOOD_WITH_ODD_DATA = st.builds(lambda data: item(data=data), st.dictionaries(st.text(), ANY_JSON))


@settings(deadline=None)
@given(ODD_ITEM | GOOD_WITH_ODD_DATA | ANY_JSON)
def test_whatever_is_found_fit_is_taken_by_the_gateway(value: Any) -> None:
    result = fit_result(value)
    if isinstance(result, FitResult):
        (row,) = decode_results(json.dumps([result.item], allow_nan=False).encode())
        assert database_error(row) == ""
        assert row.key == tuple(result.item[name] for name in ("parcel_id", "platform", "state", "county"))


@settings(deadline=None)
@given(GOOD_WITH_ODD_DATA)
def test_fitting_twice_changes_nothing_more(value: Any) -> None:
    once = fit_result(value)
    assert isinstance(once, FitResult)
    assert fit_result(once.item) == FitResult(once.item, ())


@pytest.mark.parametrize(
    ("value", "fit", "words"),
    [
        ("x\0y", "xy", "NUL removed"),
        ("\ud800", "\ufffd", "half a character"),
        (float("nan"), None, "made null"),
        (float("-inf"), None, "made null"),
        (2**53, 2**53, ""),
        (2**53 + 1, str(2**53 + 1), "made text"),
        (-(2**60), str(-(2**60)), "made text"),
        ((1, 2), [1, 2], ""),
        (date(2026, 1, 2), "2026-01-02", "made text"),
    ],
)
def test_values_in_data_that_the_gateway_would_choke_on_are_mended(value: Any, fit: Any, words: str) -> None:
    result = _fit(data={"deep": [{"x": value}]})
    assert result.item["data"] == {"deep": [{"x": fit}]}
    assert [change.startswith("data.deep[0].x: ") and words in change for change in result.changes] == [True] * bool(
        words
    )


def test_names_that_become_one_keep_both_values() -> None:
    assert _fit(data={"a": 1, "a\0": 2, 7: 3}).item["data"] == {"a": 1, "a_2": 2, "7": 3}


def test_a_long_list_of_changes_is_cut_short() -> None:
    changes = _fit(data={str(n): "\0" for n in range(100)}).changes
    assert len(changes) == 21
    assert changes[-1] == "and 80 more"


@pytest.mark.parametrize("name", ["parcel_id", "platform", "state", "county"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "incomplete_key"),
        ("  ", "incomplete_key"),
        (None, "incomplete_key"),
        ("x" * 256, "key_too_long"),
        ("a\0", "key_not_storable"),
        ("\ud800", "key_not_storable"),
        (True, "key_not_text"),
        (1.5, "key_not_text"),
        (["a"], "key_not_text"),
    ],
)
def test_a_key_is_never_mended(name: str, value: Any, reason: str) -> None:
    assert _unfit(**{name: value}) == reason


@pytest.mark.parametrize(("name", "limit"), [("state", 8), ("platform", 64), ("parcel_id", 255), ("county", 255)])
def test_keys_may_be_as_long_as_the_gateway_takes(name: str, limit: int) -> None:
    _fit(**{name: "ü" * limit})
    assert _unfit(**{name: "ü" * (limit + 1)}) == "key_too_long"


def test_a_number_as_a_key_is_written_as_text() -> None:
    assert _fit(parcel_id=12345).item["parcel_id"] == "12345"


@pytest.mark.parametrize(
    ("value", "fit"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.5Z"),
        ("2026-01-02T03:04:05.123Z", "2026-01-02T03:04:05.123Z"),
        ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04:05Z", "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T03:00:00Z"),
        (datetime(2026, 1, 2, 5, tzinfo=UTC), "2026-01-02T05:00:00Z"),
    ],
)
def test_scraped_at_becomes_strict_rfc_3339(value: Any, fit: str) -> None:
    assert _fit(scraped_at=value).item["scraped_at"] == fit


@pytest.mark.parametrize("value", ["2026-01-02T03:04:05", "today", None, 7, "", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_cannot_be_known_is_not_guessed(value: Any) -> None:
    assert _unfit(scraped_at=value) == "scraped_at_unreadable"


@pytest.mark.parametrize(
    ("value", "fit"),
    [
        (12, 12),
        (12.0, 12),
        (12.6, 13),
        ("12", 12),
        (-4, 0),
        (None, 0),
        (float("nan"), 0),
        (True, 0),
        (2**40, 2**31 - 1),
        ([], 0),
    ],
)
def test_the_duration_is_a_whole_number(value: Any, fit: int) -> None:
    made = _fit(parse_duration_ms=value).item["parse_duration_ms"]
    assert (made, type(made)) == (fit, int)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"data": [1]}, "data_not_object"),
        ({"data": None}, "data_not_object"),
        ({"task_id": ""}, "task_id_missing"),
        ({"task_id": None}, "task_id_missing"),
    ],
)
def test_what_cannot_be_mended_is_kept_back(changes: dict[str, Any], reason: str) -> None:
    assert _unfit(**changes) == reason


def test_absurd_nesting_is_kept_back() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"x": deep}
    assert _unfit(data=deep) == "too_deep"


def test_what_the_contract_does_not_have_is_left_out() -> None:
    result = _fit(colour="red", raw_html_hash=None)
    assert set(result.item) == set(item())
    assert result.changes == ("colour: not in the contract, left out",)


def test_an_item_is_built_with_the_names_of_the_contract() -> None:
    assert result_item(**item()) == item()
    assert result_item(**item(), raw_html_hash="ab")["raw_html_hash"] == "ab"


def test_extra_fields_of_a_heartbeat_never_replace_those_of_the_contract() -> None:
    body = heartbeat_body(
        active_tasks=True,
        completed_last_minute=0,
        failed_last_minute=0,
        platforms=("demo",),
        cpu_percent=1,
        memory_percent=2,
        extra={"active_tasks": 1.5, "queue": {"pending": 3}},
    )
    assert (body["active_tasks"], body["queue"], body["platforms"]) == (1, {"pending": 3}, ["demo"])
    assert type(body["active_tasks"]) is int


Parts = tuple[str, str, str, str, str, str]
PART = st.text(max_size=6)
PARTS = st.tuples(PART, PART, PART, PART, PART, PART)


@given(PARTS, PARTS)
def test_two_raw_files_share_a_name_only_if_all_their_parts_are_equal(one: Parts, other: Parts) -> None:
    names = {raw_name(*parts, ".html.gz") for parts in (one, other)}
    assert len(names) == (1 if one == other else 2)


LONG = st.text(max_size=300)


@given(LONG, LONG, LONG, LONG, LONG, st.sampled_from([".html.gz", ".abcdefgh.abcdefgh.abcdefgh", "x/y"]))
def test_the_gateway_keeps_a_raw_name_as_it_is(
    platform: str, state: str, county: str, parcel_id: str, part: str, ext: str
) -> None:
    name = raw_name(platform, state, county, parcel_id, part, "ab" * 32, ext)
    assert flat_name(name, now=0) == name
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", name)
    assert re.search(r"[0-9a-f]{24}\.[a-z0-9.]+$", name)
    assert name.endswith((ext, ".bin"))


def test_a_person_finds_a_parcel_by_its_raw_name() -> None:
    name = raw_name("qpublic", "NM", "Doña Ana", "02-4-012.5/A", "tax bill", "ab" * 32, ".html.gz")
    assert name.startswith("qpublic_NM_Dona-Ana_02-4-012.5-A_tax-bill_")


def test_files_that_were_sent_under_a_hash_keep_that_name() -> None:
    page = {"platform": "demo", "state": "FL", "county": "J", "parcel_id": "P", "part": "page", "sha256": "ab"}
    page |= {"path": "raw/x.html.gz"}
    digest = hashlib.sha256(b'["demo", "FL", "J", "P", "ab"]').hexdigest()
    assert raw_listing([{**page, "sent_name": None}]) == [{"part": "page", "name": f"{digest}.html.gz", "sha256": "ab"}]
    assert raw_listing([{**page, "sent_name": "as-sent"}])[0]["name"] == "as-sent"


@pytest.mark.parametrize("data", ["{}", '{"a": 1}', '{"a":{"_raw": 5}}', '{"_raw": 5, "b": [1]}'])
def test_the_raw_files_are_added_to_the_data_that_is_sent(data: str) -> None:
    listing = [{"part": "page", "name": "x.gz", "sha256": "ab"}]
    assert json.loads(with_raw(data, listing)) == {**json.loads(data), "_raw": listing}
    assert with_raw(data, []) == data


@pytest.mark.parametrize(
    ("ext", "kept"),
    [
        ("html.gz", ".html.gz"),
        (".CSV.gz", ".csv.gz"),
        ("", ".bin"),
        ("../x", ".bin"),
        (".a b", ".bin"),
        (".toolongextension", ".bin"),
    ],
)
def test_an_extension_that_is_none_becomes_bin(ext: str, kept: str) -> None:
    assert raw_name("a", "b", "c", "d", "e", "f", ext)[len("a_b_c_d_e_") + 24 :] == kept


@pytest.mark.parametrize("task_id", ["a/b", "/", "", ".", "..", "\ud800"])
def test_ids_that_no_url_can_name_have_no_segment(task_id: str) -> None:
    assert task_segment(task_id) is None


@pytest.mark.parametrize(
    ("task_id", "segment"),
    [
        ("a b", "a%20b"),
        ("ü?#%2F", "%C3%BC%3F%23%252F"),
        ("a:b", "a:b"),
        ("$&+,:;=@", "$&+,:;=@"),
        ("!'()*[]", "%21%27%28%29%2A%5B%5D"),
        ("...", "..."),
    ],
)
def test_ids_with_odd_characters_are_encoded_as_go_encodes_a_path(task_id: str, segment: str) -> None:
    assert task_segment(task_id) == segment
