"""Two who are in a hurry at a time: the last one who leaves puts the interpreter's usual pace back."""

from __future__ import annotations

import sys

from lienworker.steps.lane import short_switch_interval


def test_the_usual_pace_is_back_when_the_last_one_has_left() -> None:
    usual = sys.getswitchinterval()
    first, second = short_switch_interval(), short_switch_interval()
    first.__enter__()
    second.__enter__()
    assert sys.getswitchinterval() < usual
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() < usual
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == usual
