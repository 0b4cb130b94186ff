"""A minute of chaos: the short form of `make chaos`, and the parts that it relies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.__main__ import Asked, chaos
from chaos.plan import KINDS, make_plan
from chaos.witness import Witness
from lienworker.outbox.claims import Rules, claim
from lienworker.outbox.closing import end
from lienworker.outbox.registration import register_in_transaction
from lienworker.store.database import open_store, write
from lienworker.store.tasks import NewTask

#: Another one each time would be found out by nobody else; `make chaos SEED=…` is for that.
_SEED = 7


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_a_minute_of_chaos_loses_nothing_and_doubles_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():  # aloud: what was skipped on this machine is to be seen
        print()
        made = chaos(Asked(float(os.environ.get("CHAOS_SECONDS", "60")), _SEED, 200), tmp_path)
        print("\n".join(made.in_words()))
    assert made.lost == []
    assert made.doubled == []
    assert made.wrong == []


def test_a_seed_repeats_the_plan_and_every_fault_is_in_it() -> None:
    assert make_plan(3, 600) == make_plan(3, 600)
    assert make_plan(3, 600) != make_plan(4, 600)
    assert {event.kind for event in make_plan(3, 60)} == set(KINDS)


def test_the_witness_tells_what_is_asked_for_in_time_from_what_is_asked_for_again(tmp_path: Path) -> None:
    """A test that could not fail would prove nothing."""
    open_store(tmp_path)
    url = "http://a.example/parcel/1"
    with write("test"):
        register_in_transaction([NewTask("cli", url)])
    witness = Witness(tmp_path)
    witness.page_is_asked_for(url)
    (row,) = claim("fetch", 1, "me.1", Rules(0.0, 1))
    witness.page_is_asked_for(url)
    assert witness.sightings.all == []
    with write("test"):
        end(row)
    witness.page_is_asked_for(url)
    witness.page_is_asked_for("http://a.example/parcel/2")
    witness.row_is_sent("upload_raw", row.task_id)
    witness.result_is_sent(row.task_id)
    assert len(witness.sightings.doubled_pages) == 1
    assert len(witness.sightings.doubled_sends) == 2
    assert len(witness.sightings.too_early) == 2
    witness.close()
