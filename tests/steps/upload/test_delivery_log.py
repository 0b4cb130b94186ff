"""What the log says of delivery: a line when trouble begins, one when it ends, and one for each parked group."""

from __future__ import annotations

import logging

import pytest

from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "lienworker")
    return caplog


def about(lines: pytest.LogCaptureFixture, action: str) -> list[str]:
    return [record.getMessage() for record in lines.records if getattr(record, "action", "") == action]


def test_an_outage_is_two_lines_that_say_how_long_and_how_many(
    here: Desk, gateway: ReferenceGateway, lines: pytest.LogCaptureFixture
) -> None:
    here.add(8)
    gateway.fault("database_down", endpoint="results")
    here.upload_until_it(lambda: here.breaker("results")["is_open"])
    for _ in range(3):  # probes that fail are no news
        here.everything_is_due()
        here.upload()
    began = about(lines, "delivery")
    assert len(began) == 1
    assert began[0].startswith("the Gateway does not take results for now: ")
    assert "8 wait, nothing is lost" in began[0]
    gateway.clear_faults()
    here.everything_is_due()
    here.upload_until()
    ended = about(lines, "delivery")[1:]
    assert len(ended) == 1
    assert ended[0].startswith("the Gateway takes results again, after ")
    assert "waited" in ended[0]


def test_polls_that_fail_are_two_lines_as_well(
    here: Desk, gateway: ReferenceGateway, lines: pytest.LogCaptureFixture
) -> None:
    gateway.fault("401", endpoint="work")
    here.collect_until(lambda: here.breaker("work")["is_open"])
    gateway.clear_faults()
    here.everything_is_due()
    here.collect_until(lambda: not here.breaker("work")["is_open"])
    began, ended = about(lines, "delivery")
    assert "does not take work" in began
    assert "takes work again" in ended


def test_an_ordinary_delivery_says_nothing(
    here: Desk, gateway: ReferenceGateway, lines: pytest.LogCaptureFixture
) -> None:
    here.add(5)
    here.upload_until()
    assert [record.getMessage() for record in lines.records] == []


def test_each_parked_group_is_a_line_with_its_number_and_a_sample(
    here: Desk, gateway: ReferenceGateway, lines: pytest.LogCaptureFixture
) -> None:
    here.add(15, name="long", state="Pennsylvania")
    here.add(1, name="none", county=None)
    here.upload_until()
    long, none = sorted(about(lines, "parked"), reverse=True)
    assert "parked 15 upload_raw (key_too_long), for instance of task long1: state has 12 characters" in none + long
    assert "parked 1 upload_raw (incomplete_key), for instance of task none1: county is empty" in none + long
    assert "`lienworker outbox list --fingerprint " in long
