"""Pages that are built to be slow, told before they are parsed."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lienworker.errors import HeavyPageError, PageError
from lienworker.platforms.core.bounds import check_attributes, long_tags

_EACH_TAG = re.compile(r"<[a-zA-Z][^<>]{10000,}")
_AROUND_THE_LIMIT = st.sampled_from([0, 1, 50, 9_998, 9_999, 10_000, 10_001, 10_002, 25_000])
_PIECES = st.tuples(st.sampled_from(["<a", "<", "< ", "x", ">", "<b "]), st.sampled_from("x >"), _AROUND_THE_LIMIT)


@given(st.lists(_PIECES, max_size=8))
def test_leaps_find_the_same_long_tags_as_a_look_at_each_tag(pieces: list[tuple[str, str, int]]) -> None:
    text = "".join(start + filling * length for start, filling, length in pieces)
    assert list(long_tags(text)) == _EACH_TAG.findall(text)


def test_a_tag_of_many_attributes_is_slow_and_one_of_a_long_value_is_not() -> None:
    with pytest.raises(PageError, match="attributes") as problem:
        check_attributes("<p>" + "<a " + " ".join(f"x{n}=1" for n in range(5_000)) + ">", under_limits=False)
    assert not isinstance(problem.value, HeavyPageError)
    check_attributes("<p>" + f'<a data-menu="{"x " * 20_000}">', under_limits=False)


def test_a_tag_that_hides_its_attributes_behind_brackets_is_parsed_under_limits() -> None:
    text = "<p><a " + " ".join(f"x{n}<=1" for n in range(5_000)) + ">"
    with pytest.raises(HeavyPageError):
        check_attributes(text, under_limits=False)


@pytest.mark.parametrize("filling", ["x{}<=1", "x{}='>'", 'x{}="</a>"', "x{}", "x{} = '<b>'"])
def test_no_way_of_writing_attributes_hides_how_many_there_are(filling: str) -> None:
    text = "<p><a " + " ".join(filling.format(n) for n in range(30_000)) + ">"
    with pytest.raises(PageError, match="attributes") as problem:
        check_attributes(text, under_limits=True)
    assert problem.value.reason == "too_complex"
    with pytest.raises(PageError, match="attributes"):
        check_attributes(text, under_limits=False)


@pytest.mark.parametrize(
    "before", ["<a<a", "<a <b <c", "<!-- <a b='-->' ", "<a b='<c' ", "<script>a<b c='</script>' ", "<a x<b = 'c d' "]
)
def test_nothing_in_front_of_a_tag_hides_its_attributes(before: str) -> None:
    text = before + "<div " + " ".join(f"x{n}='>'" for n in range(30_000)) + ">"
    with pytest.raises(PageError, match="attributes"):
        check_attributes(text, under_limits=True)


def test_a_name_full_of_brackets_is_read_once() -> None:
    started = time.thread_time()
    check_attributes("<a" * 10_000 + "a" * 500_000, under_limits=False)
    assert time.thread_time() - started < 5


def test_a_long_script_that_compares_is_no_tag() -> None:
    check_attributes("<script>" + "if(a<b){c=1;d=2}" * 2_000 + "</script>", under_limits=False)
