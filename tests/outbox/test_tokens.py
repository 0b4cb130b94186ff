"""Tokens in Redis: a process takes no more of them than it has places for."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.broker import BEAT, FETCH, SCRAPE, UPLOAD, setup_broker
from lienworker.settings import Settings


@pytest.mark.parametrize(("queue", "taken"), [(FETCH, 2), (SCRAPE, 2), (UPLOAD, 12), (BEAT, 12)])
def test_a_process_takes_no_more_tokens_of_a_lane_than_it_has_places(tmp_path: Path, queue: str, taken: int) -> None:
    broker = setup_broker(Settings(data_dir=tmp_path))
    broker.places = 2
    assert broker.consume(queue, prefetch=12).prefetch == taken
