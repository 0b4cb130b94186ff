"""Pages made to break a parser or to hold it up: a record or a reason, soon, from every platform."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import PAGES

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry

PAGES_OF_COUNTIES = Path(__file__).parents[1] / "fixtures" / "pages"
SMALL, LARGE = 100_000, 400_000


def _type_of(name: str) -> str:
    return {"json": "application/json", "csv": "text/csv"}.get(name.split()[0], "text/html")


def parsing_seconds(name: str, size: int, platform: str | None) -> float:
    """Processor time, so that a busy machine says nothing; anything but a record or a reason is raised."""
    body = PAGES[name](size)
    target = Target(platform, "FL", "Lee", "12-34", "http://county.example/12-34", {})
    started = time.thread_time()
    page = Page("http://county.example/12-34", body, _type_of(name), None, 200)
    page.under_limits = True  # the parsers themselves are asked, also about what would be parsed elsewhere
    with contextlib.suppress(PageError, RecursionError):
        default_registry().parse(page, target)
    return time.thread_time() - started


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """Or each full collection walks over all that earlier tests have left in this process."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("platform", [None, *default_registry().names()])
def test_no_hostile_page_breaks_or_holds_up_a_parser(platform: str | None) -> None:
    for name in PAGES:
        assert parsing_seconds(name, 10_000, platform) < 5, name


@pytest.mark.parametrize("name", PAGES)
def test_four_times_the_page_takes_about_four_times_as_long(name: str) -> None:
    """Not sixteen times: then a page of the largest size would hold a worker for hours."""
    ratios = []
    while not ratios or (min(ratios) >= 9 and len(ratios) < 4):  # a busy machine may disturb one measurement
        large = parsing_seconds(name, LARGE, "generic")
        ratios.append(large / parsing_seconds(name, SMALL, "generic") if large >= 0.4 else 1.0)
    assert min(ratios) < 9, ratios


@pytest.mark.parametrize("name", ["deep and open", "half tags", "many attributes"])
def test_a_page_that_is_built_to_be_slow_is_refused_at_once(name: str) -> None:
    body = PAGES[name](8_000_000)
    started = time.thread_time()
    with pytest.raises(PageError) as problem:
        default_registry().parse(Page("http://county.example/", body, "text/html", None, 200), Target("generic"))
    assert problem.value.reason == "too_complex"
    assert not problem.value.retryable
    assert time.thread_time() - started < 5


def test_a_number_of_rooms_without_end_is_read_once() -> None:
    page = (PAGES_OF_COUNTIES / "leepa.html").read_bytes().replace(b"2 / 3.0", b"1" * 30_000)
    started = time.thread_time()
    parsed = default_registry().parse(Page("http://county.example/", page, "text/html", None, 200), Target("leepa"))
    assert "bedrooms" not in parsed.record
    assert time.thread_time() - started < 5


def test_a_long_picture_in_an_attribute_is_no_attack() -> None:
    picture = "<img alt='' src='data:image/png;base64," + "A" * 500_000 + "'>"
    page = Page("http://county.example/", f"<html><body>{picture}<p>Owner: X</p>".encode(), "text/html", None, 200)
    assert page.selector.css("p::text").get() == "Owner: X"
