"""Names of counties that are the same, and those that are not."""

from __future__ import annotations

import pytest

from lienworker.places import STATE_FIPS, county_key, county_keys, split_place


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("St. Mary's", "SAINT MARYS COUNTY"),
        ("Miami-Dade", "miami dade"),
        ("DeKalb", "De Kalb County"),
        ("Doña Ana", "Dona Ana"),
        ("Wrangell City and Borough", "Wrangell"),
        ("St. James Parish", "St James"),
        ("Ste. Genevieve", "Sainte Genevieve"),
    ],
)
def test_spellings_of_a_county_are_one(one: str, other: str) -> None:
    assert county_key(one) == county_key(other)


@pytest.mark.parametrize(("one", "other"), [("Baltimore", "Baltimore City"), ("James City", "James"), ("Lee", "Leon")])
def test_two_counties_are_two(one: str, other: str) -> None:
    assert county_key(one) != county_key(other)


def test_a_city_of_its_own_goes_by_its_bare_name_unless_a_county_has_it() -> None:
    assert county_keys("Chesapeake") == ["chesapeake", "chesapeakecity"]
    assert county_keys("Chesapeake City") == ["chesapeakecity", "chesapeake"]
    assert county_keys("Richmond") == ["richmond"]
    assert county_keys("Baltimore City") == ["baltimorecity"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("FL Dixie", ("FL", "Dixie")),
        ("fl St. Johns", ("FL", "St. Johns")),
        ("12029", ("FL", "12029")),
        ("FL", ("FL", None)),
        ("Dixie", None),
        ("", None),
        ("99999", None),
    ],
)
def test_a_place_is_a_state_and_a_county_or_a_code(text: str, place: tuple[str, str | None] | None) -> None:
    assert split_place(text) == place


def test_every_state_has_one_code() -> None:
    assert len(STATE_FIPS) == len(set(STATE_FIPS.values())) == 56
