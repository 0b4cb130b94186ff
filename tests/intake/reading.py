"""What the intake tests share: reading from text, and telling rows from rejects."""

from __future__ import annotations

import io
from typing import Any

import pytest

from lienworker.errors import InputError
from lienworker.intake import Layout, ParcelRow, Reject, read_parcels


def read(content: str | bytes, *, format: str | None = None, **options: Any) -> list[ParcelRow | Reject]:  # noqa: A002
    if format:
        options["layout"] = Layout(format=format)
    data = content.encode() if isinstance(content, str) else content
    return list(read_parcels(io.BytesIO(data), **options))


def rows(content: str | bytes, **options: Any) -> list[ParcelRow]:
    """All of it, with the promise that nothing was rejected."""
    found = read(content, **options)
    rejected = [item for item in found if isinstance(item, Reject)]
    assert not rejected
    return [item for item in found if isinstance(item, ParcelRow)]


def outline(content: str | bytes, **options: Any) -> list[tuple[int, str]]:
    """(line, "ok" or the reason) of each row."""
    return [(item.line, item.reason if isinstance(item, Reject) else "ok") for item in read(content, **options)]


def sentence(content: str | bytes, **options: Any) -> str:
    """The one sentence with which the whole file is refused."""
    with pytest.raises(InputError) as caught:
        read(content, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text
