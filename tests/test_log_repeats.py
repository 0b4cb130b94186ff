"""A failure that repeats is one line a minute with a count, whoever logs it."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from lienworker.logs import QUIET_SECONDS, JsonLines, Repeats, setup_logging
from lienworker.settings import Settings


class Log:
    """A handler as `setup_logging` makes it, with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)
        self.handler.setFormatter(JsonLines("worker", str))  # type: ignore[arg-type]
        self.handler.addFilter(Repeats(lambda: self.now))

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def messages(self) -> list[str]:
        return [line["message"] for line in self.lines()]


@pytest.fixture
def log() -> Iterator[Log]:
    here, root = Log(), logging.getLogger()
    root.addHandler(here.handler)
    yield here
    root.removeHandler(here.handler)


def fail(name: str, problem: Exception, template: str = "it failed for %s", *args: object) -> None:
    try:
        raise problem
    except Exception:
        logging.getLogger(name).critical(template, *(args or ("x",)), exc_info=True)


@pytest.mark.parametrize("name", ["dramatiq.worker.ConsumerThread(fetch)", "periodiq", "redis.connection"])
def test_a_thousand_failures_in_a_minute_are_one_line_and_their_number_comes_with_the_next(log: Log, name: str) -> None:
    for n in range(1000):
        log.now = n * QUIET_SECONDS / 1001
        fail(name, ValueError("no"), "it failed for %s", f"message-{n}")
    assert log.messages() == ["it failed for message-0"]
    log.now = QUIET_SECONDS
    fail(name, ValueError("no"), "it failed for %s", "message-1000")
    assert log.messages()[1] == "it failed for message-1000 (and 999 times more since the last line)"


def test_another_failure_has_its_own_line(log: Log) -> None:
    for problem in (ValueError("a"), ValueError("b"), KeyError("c")):
        fail("dramatiq.worker", problem)
    fail("dramatiq.worker", ValueError("a"), "something else %s")
    fail("dramatiq.broker", ValueError("a"))
    assert len(log.lines()) == 4


def test_the_threads_of_all_queues_fail_together(log: Log) -> None:
    for queue in ("fetch", "scrape", "beat"):
        logging.getLogger(f"dramatiq.worker.ConsumerThread({queue})").critical("a connection error: %s", queue)
    assert log.messages() == ["a connection error: fetch"]


def test_what_is_to_be_expected_has_no_trace_and_a_bug_has(log: Log) -> None:
    fail("dramatiq.worker", redis.ResponseError("MISCONF no writes"), "the consumer failed for %s")
    fail("dramatiq.worker", TimeoutError("slow"), "slow for %s")
    fail("dramatiq.worker", ZeroDivisionError("ours"), "bug in %s")
    first, second, third = log.lines()
    assert first["message"] == "the consumer failed for x ResponseError: MISCONF no writes"
    assert "trace" not in first
    assert "trace" not in second
    assert "ZeroDivisionError" in third["trace"]


def test_our_own_lines_are_told_apart_by_what_they_name(log: Log) -> None:
    logger = logging.getLogger("lienworker.stack.supervisor")
    for part in ("redis", "workers", "redis"):
        for pause in (0.2, 0.5):
            logger.warning("%s died; starting it again in %.1f s", part, pause)
    assert log.messages() == ["redis died; starting it again in 0.2 s", "workers died; starting it again in 0.2 s"]


def test_every_task_keeps_its_line_and_information_is_never_held_back(log: Log) -> None:
    logger = logging.getLogger("lienworker.steps.fetch")
    logger.setLevel(logging.INFO)
    for n in range(5):
        logger.warning("parked %d", n, extra={"task_id": f"t{n}"})
        logger.info("the same")
    logger.setLevel(logging.NOTSET)
    assert len(log.lines()) == 10


def test_memory_does_not_grow_with_the_number_of_failures(log: Log) -> None:
    for n in range(3_000):
        logging.getLogger("somebody").error("a template of its own" + "x" * n)
    (repeats,) = log.handler.filters
    assert len(repeats._told) <= 500  # type: ignore[union-attr]


def test_all_logs_of_a_process_go_through_it() -> None:
    root = logging.getLogger()
    handlers, level, hooks = root.handlers[:], root.level, (sys.excepthook, threading.excepthook)
    stream = io.StringIO()
    try:
        setup_logging(Settings(), "worker", stream)
        for _ in range(3):
            logging.getLogger("dramatiq.worker").critical("Consumer encountered a connection error: %s", "gone")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        sys.excepthook, threading.excepthook = hooks
        logging.captureWarnings(False)
    assert len(stream.getvalue().splitlines()) == 1
