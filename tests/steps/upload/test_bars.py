"""The bars of on-demand mode, small; `make bench-outage` runs them at full size."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import outage
from lienworker.cli import cli as lienworker
from lienworker.db.database import execute, write
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk, desk
from tests.steps.upload.test_uploading import no_attempt_is_lost

STEP_MS = 10_000


@pytest.mark.slow
def test_what_was_made_during_an_outage_arrives_when_it_is_over(tmp_path: Path) -> None:
    assert "40 results" in outage.outage(tmp_path, n=40)


@pytest.mark.slow
def test_after_a_short_absence_of_the_gateway_the_rest_goes_on(tmp_path: Path) -> None:
    assert "of 40, " in outage.back(tmp_path, n=40, away=0.0, bar=0.0)


@pytest.mark.slow
def test_one_that_is_refused_is_parked_and_the_others_arrive(tmp_path: Path) -> None:
    assert outage.refused(tmp_path, n=60).startswith("59 delivered, 1 parked")


def pass_time(here: Desk, steps: int) -> None:
    """The clock goes on by some seconds at a time, and at each step the lane is looked at."""
    for _ in range(steps):
        with write("test"):
            execute("UPDATE breakers SET retry_at = retry_at - ?", (STEP_MS,))
            execute("UPDATE outbox SET due_at = due_at - ? WHERE state = 'waiting' AND due_at < 9e14", (STEP_MS,))
        here.upload()


def test_a_token_that_is_refused_for_an_hour_costs_nothing_and_is_said_in_words(
    tmp_path: Path, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    with desk(tmp_path / "data", gateway, LIENWORKER_GATEWAY_RETRY="30") as here:
        here.add(120)
        gateway.fault("401")
        pass_time(here, steps=3600 * 1000 // STEP_MS)
        assert here.states() == {"waiting": 240}
        no_attempt_is_lost()
        # Four at first, then a probe after 30 s, 1, 2, 4 and every 5 minutes.
        assert 10 <= len(gateway.state.calls("raw")) <= 24
        monkeypatch.setenv("LIENWORKER_DATA_DIR", str(here.runtime.folder.root))
        said = CliRunner().invoke(lienworker, ["outbox", "status"]).output
        assert "401" in said
        gateway.clear_faults()
        pass_time(here, steps=40)  # by itself, at the next probe
        here.upload_until()
        assert here.states() == {"delivered": 240}
