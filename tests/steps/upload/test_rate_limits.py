"""Some 429 among successes: their rows wait as asked, the others go on; many of them, and the endpoint pauses."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import outage
from lienworker.db.database import one_row, write
from lienworker.operator.replay import replay, rows_to_replay
from lienworker.operator.rows import RowFilter
from lienworker.outbox import breaker
from lienworker.outbox.breaker import Failure
from lienworker.outbox.outcomes import report_failure
from lienworker.outbox.uploads import is_open
from lienworker.steps.upload.verdict import MANY_LIMITED
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk, desk, desk_settings
from tests.steps.upload.test_failure_reports import book
from tests.steps.upload.test_uploading import no_attempt_is_lost

#: As in real life, where a breaker that opens by our own measure stays open for so long, s.
REAL = {"LIENWORKER_GATEWAY_RETRY": "30"}


@pytest.mark.parametrize("fault", ["429", "503", "reset"])
def test_one_failure_among_successes_makes_only_its_own_raw_file_wait(
    tmp_path: Path, gateway: ReferenceGateway, fault: str
) -> None:
    with desk(tmp_path / "data", gateway, **REAL) as here:
        here.add(20, name="before")
        here.upload()
        before = here.runtime.bounds.raw.now
        gateway.fault(fault, endpoint="raw", seconds=60, count=1)
        here.add(1, name="unlucky")
        here.upload()
        assert here.runtime.bounds.raw.now == before // 2
        here.add(40)
        here.upload()
        assert here.states("upload_raw") == {"delivered": 60, "waiting": 1}
        assert not here.breaker("raw")["is_open"]
        no_attempt_is_lost()


def test_one_429_makes_only_the_results_of_its_batch_wait_and_for_as_long_as_asked(
    tmp_path: Path, gateway: ReferenceGateway
) -> None:
    with desk(tmp_path / "data", gateway, **REAL) as here:
        here.add(5, name="before")
        here.upload()
        here.add(8, name="unlucky")
        here.send_raws()
        gateway.fault("429", endpoint="results", seconds=2, count=1)
        here.upload()
        batch = here.runtime.bounds.result.now
        here.add(30)
        here.upload()
        assert here.states("upload_result") == {"delivered": 35, "waiting": 8}
        assert here.runtime.bounds.result.now == batch  # smaller ones would be more calls
        here.upload_until()  # long before our own 30 s
        assert gateway.state.too_early() == []
        no_attempt_is_lost()


def test_one_429_makes_only_its_own_report_wait(tmp_path: Path, gateway: ReferenceGateway) -> None:
    with desk(tmp_path / "data", gateway, **REAL) as here:
        book(here, gateway, *2 * [f"bad{n}-1" for n in range(20)])  # once for the result, once for the report
        for n in range(20):
            here.add(1, name=f"bad{n}-", platform="atlantis")
            with write("test"):
                report_failure(f"bad{n}-1", "http_404")
        gateway.fault("429", endpoint="fail", seconds=60, count=1)
        here.upload()
        here.upload()
        assert here.states("report_failure") == {"delivered": 19, "waiting": 1}


@pytest.mark.parametrize("fault", ["429", "500"])
def test_one_failed_poll_among_answered_ones_is_no_outage(
    tmp_path: Path, gateway: ReferenceGateway, fault: str
) -> None:
    with desk(tmp_path / "data", gateway, **REAL) as here:
        gateway.configure(retry_without_tasks=0)
        here.collect_until(lambda: len(gateway.state.calls("work")) >= 10)
        gateway.fault(fault, endpoint="work", seconds=1, count=1)
        here.collect_until(lambda: any(call.fault for call in gateway.state.calls("work")))
        here.collect_until(lambda: not gateway.state.calls("work")[-1].fault)
        assert not here.breaker("work")["is_open"]
        assert here.breaker("work")["failures"] == 0


def test_many_429_pause_the_endpoint_for_exactly_what_was_asked(tmp_path: Path, gateway: ReferenceGateway) -> None:
    with desk(tmp_path / "data", gateway, **REAL) as here:
        here.add(30, name="before")
        here.upload()
        here.add(100)
        gateway.fault("429", endpoint="raw", probability=0.4, seconds=20, seed=1)
        here.upload()
        told = [call.finished for call in gateway.state.calls("raw") if call.status == 429]
        paused = here.breaker("raw")
        assert (paused["is_open"], paused["kind"], paused["failures"]) == (1, "rate_limited", 0)
        assert 19.9 <= paused["retry_at"] / 1000 - min(filter(None, told)) < 30  # ours would be 24 s at the least
        assert here.states("upload_raw")["waiting"] > 50
        assert len(gateway.state.calls("raw")) < 60
        no_attempt_is_lost()


def test_the_next_start_knows_of_the_429_before_it(tmp_path: Path, gateway: ReferenceGateway) -> None:
    for n in range(MANY_LIMITED):
        with desk(tmp_path / "data", gateway, **REAL) as here:
            gateway.clear_faults()
            here.add(2, name=f"well{n}-")
            here.upload()
            gateway.fault("429", endpoint="raw", seconds=60)
            here.add(1, name=f"unlucky{n}-")
            assert not here.breaker("raw")["is_open"]
            here.upload()
    with desk(tmp_path / "data", gateway, **REAL) as here:
        assert here.breaker("raw")["is_open"]


def test_a_pause_is_kept_by_another_process_that_has_files_in_hand(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(20)
    with here.runtime.holder.lease() as token:
        lane = here.uploader(token).raws
        lane._in_flight._open_lanes = lambda: None  # type: ignore[method-assign]  # it has not come to sending yet
        assert lane.set_out() == 20
        with write("another process"):
            breaker.pause("raw", Failure("rate_limited", "HTTP 429", 60.0), 30.0)
        lane.set_out()
        assert not lane
    assert is_open("upload_raw")
    assert one_row("SELECT count(*) FROM outbox WHERE topic = 'upload_raw' AND state = 'waiting'") == (20,)


def test_a_persons_replay_waits_for_what_was_asked_and_sends_the_rest(here: Desk, gateway: ReferenceGateway) -> None:
    here.add(30)
    gateway.fault("429", endpoint="raw", seconds=1, probability=0.3, seed=1)
    everything = RowFilter()
    settings = desk_settings(here.runtime.folder.root, gateway, **REAL)
    done = replay(settings, rows_to_replay(everything, include_held=False).ids, everything, lambda *_: None)
    assert done.is_complete
    assert gateway.state.too_early() == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_few_429_cost_little_and_no_row_goes_before_its_own_wait_is_over(tmp_path: Path) -> None:
    """Small, so no rate: the few seconds that were asked for would be most of it."""
    assert outage.limited(tmp_path, n=300, bar=0.0)
