"""Doubts in the scrape step: stored beside the record, compared with the county's others, never sent."""

from __future__ import annotations

import json

import pytest

from lienworker.db.database import all_rows
from lienworker.platforms.core.doubts import Doubt
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import each_result, list_results
from lienworker.steps.ranges import ENOUGH, Ranges, out_of_range, sizes_of, take_in
from lienworker.store.history import Place, ranges_of
from lienworker.store.pending import item
from lienworker.store.results import result
from tests.harness.shelf import Shelf, page


def known(*values: float, name: str = "market_value") -> Ranges:
    ranges: Ranges = {}
    for value in values:
        take_in(ranges, sizes_of({name: value}))
    return ranges


USUAL = tuple(80_000.0 + 3_000 * n for n in range(ENOUGH))


@pytest.mark.parametrize("value", [4_000.0, 90_000.0, 3_000_000.0, 0.0, -5.0, None, "90000", True])
def test_what_is_like_the_others_or_no_number_is_in_range(value: object) -> None:
    assert out_of_range(known(*USUAL), {"market_value": value}) == []


@pytest.mark.parametrize("value", [2.0, 25_000_000_000.0])
def test_what_is_unlike_all_others_is_doubted(value: float) -> None:
    (doubt,) = out_of_range(known(*USUAL), {"market_value": value})
    assert (doubt.check, doubt.field) == ("out_of_range", "market_value")


def test_too_few_others_say_nothing() -> None:
    assert out_of_range(known(*USUAL[1:]), {"market_value": 2.0}) == []


def test_a_county_of_equal_lots_is_no_reason_to_doubt_one_twice_as_large() -> None:
    ranges = known(*[0.25] * 500, name="acres")
    assert out_of_range(ranges, {"acres": 0.5}) == []
    assert out_of_range(ranges, {"acres": 10_890.0}) != []


def test_a_wide_county_gets_its_own_range() -> None:
    wide = known(*[10.0 ** (n % 7) for n in range(700)])
    assert out_of_range(wide, {"market_value": 10_000_000.0}) == []


def test_old_pages_fade(shelf: Shelf) -> None:
    ranges = known(*[100.0] * 5000, *[1_000_000.0] * 9000)
    assert ranges["market_value"][0] <= 2000
    assert out_of_range(ranges, {"market_value": 900_000.0}) == []


def _owned_by(owner: str) -> str:
    return page(1).replace("OTTER NO 1", owner)


def test_a_doubt_is_stored_beside_the_record_and_changes_nothing(shelf: Shelf) -> None:
    shelf.add("Marsh", {"fine": page(1), "odd": _owned_by("go() { return }")})
    shelf.work()
    stored = {row["data"]["owner_name"]: row for row in each_result(TaskFilter())}
    assert stored["OTTER NO 1"]["doubts"] == []
    odd = stored["go() { return }"]
    assert odd["doubts"] == [Doubt("code_in_text", "owner_name", "go() { return }")._asdict()]
    assert "doubts" not in odd["data"]
    assert all_rows("SELECT count(*) FROM results WHERE doubts IS NULL") == [(1,)]


def test_what_goes_to_the_gateway_has_no_doubts(shelf: Shelf) -> None:
    shelf.add("Marsh", {"odd": _owned_by("go() { return }")})
    shelf.work()
    ((task_id, path),) = all_rows("SELECT task_id, json_path FROM results")
    stored = result(task_id)
    assert stored is not None
    assert stored["doubts"]
    assert "doubts" not in item(stored)
    assert "code_in_text" not in (shelf.runtime.folder.root / path).read_text()


def test_only_the_doubtful_are_listed(shelf: Shelf) -> None:
    shelf.add("Marsh", {str(n): page(n) for n in range(5)} | {"odd": _owned_by("{}")})
    shelf.work()
    wanted = TaskFilter(doubtful=True)
    assert [row["data"]["owner_name"] for row in each_result(wanted)] == ["{}"]
    (row,) = list_results(wanted).rows
    assert row["doubts"][0]["check"] == "code_in_text"
    assert len(list_results(TaskFilter()).rows) == 6
    assert wanted.in_words() == "doubtful"


def test_a_parcel_unlike_its_county_is_doubted_and_that_of_another_is_not(shelf: Shelf) -> None:
    shelf.add("Marsh", {str(n): page(n) for n in range(ENOUGH)})
    shelf.work()
    place = Place("quarry", "XX", "Marsh", "marsh.quarry.example")
    assert ranges_of(place)["market_value"][0] == ENOUGH
    large = page(1).replace("$1001", "$900,000,000")
    for county in ("Marsh", "Heath"):
        shelf.add(county, {"large": large})
    shelf.work()
    doubtful = list(each_result(TaskFilter(doubtful=True)))
    assert [(row["county"], row["doubts"][0]["field"]) for row in doubtful] == [("Marsh", "market_value")]


def test_a_reparse_that_mends_the_record_takes_the_doubt_away(shelf: Shelf) -> None:
    shelf.add("Marsh", {"odd": _owned_by("{}</p><p id='name'>OTTER")})
    shelf.work()
    assert json.loads(all_rows("SELECT doubts FROM results")[0][0])
    shelf.teach(owner="#name", version="2")
    assert shelf.reparse().changed == 1
    assert all_rows("SELECT doubts FROM results") == [(None,)]
