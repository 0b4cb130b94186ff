"""Pages that are built to be slow, told before they are parsed."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lienworker.platforms.overload import is_built_to_be_slow, long_tags

_EACH_TAG = re.compile(r"<[a-zA-Z][^<>]{10000,}")
_AROUND_THE_LIMIT = st.sampled_from([0, 1, 50, 9_998, 9_999, 10_000, 10_001, 10_002, 25_000])
_PIECES = st.tuples(st.sampled_from(["<a", "<", "< ", "x", ">", "<b "]), st.sampled_from("x >"), _AROUND_THE_LIMIT)


@given(st.lists(_PIECES, max_size=8))
def test_leaps_find_the_same_long_tags_as_a_look_at_each_tag(pieces: list[tuple[str, str, int]]) -> None:
    text = "".join(start + filling * length for start, filling, length in pieces)
    assert list(long_tags(text)) == _EACH_TAG.findall(text)


def test_a_tag_of_many_attributes_is_slow_and_one_of_a_long_value_is_not() -> None:
    assert is_built_to_be_slow("<p>" + "<a " + " ".join(f"x{n}=1" for n in range(5_000)) + ">")
    assert not is_built_to_be_slow("<p>" + f'<a data-menu="{"x " * 20_000}">')
