"""A parcel of several pages: one record of all of them."""

from __future__ import annotations

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Platform, Record, Registry, Target


class Cards(Platform):
    """Pages that are their record, as JSON."""

    name = "cards"

    def parse(self, page: Page, target: Target) -> Record:
        found: Record = page.json()
        if "parcel_id" not in found:
            raise PageError("not_a_parcel", "a page without a parcel")
        return found


def parsed(**parts: str) -> Record:
    registry = Registry({})
    registry.add(Cards())
    pages = {name: Page("http://a.example/", text.encode(), "application/json") for name, text in parts.items()}
    first, *others = pages
    page = pages[first]
    page.part, page.more = first, {name: pages[name] for name in others}
    return registry.parse(page, Target(platform="cards")).record


def test_what_the_first_page_says_stands_and_the_others_add_to_it() -> None:
    record = parsed(
        profile='{"parcel_id": "1", "owner_name": "A", "sales": [{"price": 1}], "fields": {"x": "1"}}',
        values='{"parcel_id": "1", "owner_name": "B", "market_value": 5, "fields": {"x": "2", "y": "3"}}',
        sales='{"parcel_id": "1", "sales": [{"price": 1}, {"price": 2}]}',
    )
    assert record == {
        "parcel_id": "1",
        "owner_name": "A",
        "market_value": 5,
        "sales": [{"price": 1}, {"price": 2}],
        "fields": {"x": "1", "y": "3"},
    }


def test_a_part_without_a_parcel_adds_nothing() -> None:
    assert parsed(profile='{"parcel_id": "1", "owner_name": "A"}', map='{"scale": 3}')["owner_name"] == "A"


def test_a_part_of_another_parcel_is_refused() -> None:
    with pytest.raises(PageError) as caught:
        parsed(profile='{"parcel_id": "1", "owner_name": "A"}', values='{"parcel_id": "2", "market_value": 5}')
    assert (caught.value.reason, caught.value.retryable) == ("unexpected_page", True)


def test_a_parcel_of_one_part_is_parsed_as_a_page() -> None:
    assert parsed(profile='{"parcel_id": "1", "owner_name": "A"}')["parcel_id"] == "1"
