"""The monitor's door, looked at closely: comparisons that take the same time, and headers of any shape."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from lienworker.web.guard import Guard, Verdict

ODD = ["", "\udcff", "é", "\0", "a" * 100_000]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes]]:
    """Every comparison that takes the same time whatever is compared."""
    seen: list[tuple[bytes, bytes]] = []
    true = hmac.compare_digest

    def compare(one: Any, other: Any) -> bool:
        seen.append((one, other))
        return true(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    return seen


def test_secrets_are_compared_in_constant_time(compared: list[tuple[bytes, bytes]]) -> None:
    guard = Guard("127.0.0.1", "sesame")
    assert guard.judge("sesame") is Verdict.RIGHT
    assert guard.judge("sesamf") is Verdict.WRONG
    assert guard.is_ours(guard.csrf)
    assert not guard.is_ours("x")
    assert guard.is_sealed("done", guard.seal("done"))
    assert not guard.is_sealed("done", "x")
    assert len(compared) == 6


@pytest.mark.parametrize("offered", ODD)
def test_no_offered_secret_breaks_the_door(offered: str) -> None:
    guard = Guard("127.0.0.1", "sesame")
    assert guard.judge(offered) is Verdict.WRONG
    assert not guard.is_ours(offered)
    assert not guard.is_sealed(offered, offered)
    assert not guard.knows_host(offered)


def test_the_token_is_in_no_repr() -> None:
    assert "sesame" not in repr(Guard("127.0.0.1", "sesame"))
