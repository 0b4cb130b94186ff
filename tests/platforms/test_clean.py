"""Cleaning: a blank is absent, a zero is zero, and nothing is guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lienworker.platforms.core import clean


@pytest.mark.parametrize(
    ("shown", "amount"),
    [
        ("$1,234.50", 1234.5),
        ("$ 0", 0.0),
        ("0.00", 0.0),
        ("(12.00)", -12.0),
        ("-$5.25", -5.25),
        ("$-5.25", -5.25),
        ("12.00 CR", -12.0),
        (".055", 0.055),
        ("3324.7300", 3324.73),
        (1279000, 1279000.0),
        ("", None),
        ("\xa0", None),
        ("N/A", None),
        ("$12 as of 2024", None),
        (None, None),
        (True, None),
    ],
)
def test_money(shown: object, amount: float | None) -> None:
    assert clean.money(shown) == amount


@pytest.mark.parametrize(
    ("shown", "iso"),
    [
        ("07/25/2017", "2017-07-25"),
        ("7/5/17", "2017-07-05"),
        ("02/19/13", "2013-02-19"),
        ("6/1/68", "1968-06-01"),
        ("2017-07-25T00:00:00Z", "2017-07-25"),
        ("7/25/2017 12:00:00 AM", "2017-07-25"),
        ("Jul 25, 2017", "2017-07-25"),
        ("July 25th 2017", "2017-07-25"),
        ("Sept. 5, 2020", "2020-09-05"),
        ("25-JUL-2017", "2017-07-25"),
        ("08/May/2023", "2023-05-08"),
        ("20170725", "2017-07-25"),
        ("13/45/2017", None),
        ("02/30/2017", None),
        ("7/2017", None),
        ("2017", None),
        ("", None),
        (None, None),
    ],
)
def test_dates(shown: object, iso: str | None) -> None:
    assert clean.iso_date(shown) == iso


def test_text_is_single_spaced_with_entities_decoded() -> None:
    assert clean.text(" O&#39;MERE\xa0 &amp;\n DAUGHTERS\u200b ") == "O'MERE & DAUGHTERS"
    assert clean.text(" \xa0 ") is None


def test_an_ampersand_without_its_semicolon_is_a_letter_of_the_legal_description() -> None:
    assert clean.text("LOT 3 &LT 4 &COPY 5") == "LOT 3 &LT 4 &COPY 5"


def test_ids_keep_leading_zeros_and_inner_spaces() -> None:
    assert clean.identifier(" 00248 011  000\xa0") == "00248 011  000"
    assert clean.identifier("L9NE4C\n\t\t20 2") == "L9NE4C 20 2"
    assert clean.identifier("0") == "0"
    assert clean.identifier(" -- ") is None


def test_acres_and_square_feet_are_not_taken_for_each_other() -> None:
    assert clean.acres(".055 AC") == 0.055
    assert clean.acres("10,890 sq ft") is None
    assert clean.acres("10,890 SF (0.25 acres)") == 0.25
    assert clean.square_feet("10,890 sqft") == 10890.0
    assert clean.square_feet("0.25 Acres") is None


def test_years_integers_and_yes_or_no() -> None:
    assert clean.year("2023 Certified") == 2023
    assert clean.year("20231") is None
    assert clean.integer("1,234") == 1234
    assert clean.integer("1.5") is None
    assert (clean.yes_no("Y"), clean.yes_no("No"), clean.yes_no("maybe")) == (True, False, None)


def test_epoch_milliseconds_before_and_after_1970() -> None:
    assert clean.epoch_date(1_500_940_800_000) == "2017-07-25"
    assert clean.epoch_date(-86_400_000) == "1969-12-31"
    assert clean.epoch_date(10**18) is None
    assert clean.epoch_date("1") is None


def test_compact_drops_blanks_at_every_depth_and_keeps_zero_and_false() -> None:
    record = {"a": None, "b": "", "c": [None, {"x": ""}], "d": 0, "e": False, "f": [{"g": 0.0, "h": None}]}
    assert clean.compact(record) == {"d": 0, "e": False, "f": [{"g": 0.0}]}


@given(st.one_of(st.text(), st.none(), st.integers(), st.floats(allow_nan=False)))
def test_no_input_breaks_a_cleaner(value: object) -> None:
    for wash in (clean.money, clean.iso_date, clean.text, clean.identifier, clean.acres, clean.year, clean.number):
        wash(value)


@given(st.dates(min_value=__import__("datetime").date(1800, 1, 1)))
def test_a_date_in_american_order_comes_back_as_itself(day: object) -> None:
    assert clean.iso_date(f"{day:%m/%d/%Y}") == str(day)


@given(st.decimals(min_value=0, max_value=10**9, places=2))
def test_an_amount_in_dollars_comes_back_as_itself(amount: object) -> None:
    assert clean.money(f"${amount:,.2f}") == float(str(amount))
