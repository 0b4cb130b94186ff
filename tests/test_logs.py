"""Logs: one shape for everybody, fields that stay, one line a task, secrets never."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import SettingsError
from lienworker.logs import ALWAYS, SOMETIMES, Redactor, about_task, setup_logging
from lienworker.settings import Settings
from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, write_list

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hooks = root.handlers[:], root.level, (sys.excepthook, threading.excepthook)
    names = ("dramatiq", "periodiq", "asyncio", "aiohttp", "lienworker.hubs.gateway")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(False)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_the_fields_that_are_promised_in_their_order() -> None:
    stream = io.StringIO()
    setup_logging(Settings(), "worker", stream)

    extra = about_task("failed", "t1", "fetch", reason="http_404", platform="demo", county="Juniper")
    logging.getLogger("lienworker.x").info("failed %s", "t1", extra=extra)
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("lienworker.x").exception("it broke")

    first, second = lines(stream)
    assert ALWAYS == ("at", "level", "part", "pid", "logger", "message")
    assert SOMETIMES == ("action", "task_id", "topic", "reason", "platform", "county", "trace")
    assert list(first) == [*ALWAYS, *SOMETIMES[:-1]]
    assert list(second) == [*ALWAYS, "trace"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["at"])
    assert (first["level"], first["part"], first["pid"]) == ("info", "worker", os.getpid())
    assert "ValueError: no" in second["trace"]


def test_the_fields_are_documented() -> None:
    text = (DOCS / "operations.md").read_text()
    assert [name for name in (*ALWAYS, *SOMETIMES) if f"| `{name}` |" not in text] == []


def test_libraries_warnings_and_what_nobody_caught_have_the_same_shape() -> None:
    stream = io.StringIO()
    setup_logging(Settings(), "worker", stream)

    logging.getLogger("dramatiq.worker").warning("from %s", "dramatiq")
    warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

    found = lines(stream)
    assert [line["logger"] for line in found] == ["dramatiq.worker", "py.warnings", "lienworker"]
    assert "ZeroDivisionError" in found[2]["trace"]


def test_levels_are_set_for_all_and_for_some() -> None:
    stream = io.StringIO()
    settings = Settings.from_mapping(
        {"LIENWORKER_LOG_LEVEL": "warning", "LIENWORKER_LOG_LEVELS": "lienworker.hubs.gateway=debug, dramatiq=info"}
    )
    setup_logging(settings, "worker", stream)

    for name in ("lienworker.outbox", "lienworker.hubs.gateway.client", "dramatiq.worker"):
        logging.getLogger(name).info("at info")
        logging.getLogger(name).debug("at debug")

    assert [(line["logger"], line["level"]) for line in lines(stream)] == [
        ("lienworker.hubs.gateway.client", "info"),
        ("lienworker.hubs.gateway.client", "debug"),
        ("dramatiq.worker", "info"),
    ]


@pytest.mark.parametrize("value", ["lienworker", "lienworker=loud", "=debug"])
def test_wrong_levels_are_refused_by_name(value: str) -> None:
    with pytest.raises(SettingsError, match=r"LIENWORKER_LOG_LEVELS.*logger=level"):
        Settings.from_mapping({"LIENWORKER_LOG_LEVELS": value})


def test_levels_and_formats_reach_child_processes() -> None:
    values = {"LIENWORKER_LOG_LEVELS": "a=debug,b=info", "LIENWORKER_LOG_FORMAT": "json"}
    settings = Settings.from_mapping(values)
    assert Settings.from_mapping(settings.to_environment()) == settings


def test_a_person_gets_readable_lines_that_cannot_move_the_cursor() -> None:
    stream = io.StringIO()
    setup_logging(Settings(log_format="text"), "worker", stream)
    logging.getLogger("x").warning("a\x1b[2Jb\nc")
    assert re.fullmatch(r"\d\d:\d\d:\d\d WARNING a\\x1b\[2Jb c\n", stream.getvalue())


def test_a_trace_cannot_move_the_cursor_either() -> None:
    stream = io.StringIO()
    setup_logging(Settings(log_format="text"), "worker", stream)
    try:
        raise ValueError("a\x1b[2Jb\rc\u2028d")
    except ValueError:
        logging.getLogger("x").exception("oh")
    lines = stream.getvalue().split("\n")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-2:] == ["ValueError: a\\x1b[2Jb\\x0dc\\u2028d", ""]
    assert all(line.isprintable() for line in lines)


def test_secrets_are_blotted_out_wherever_they_turn_up() -> None:
    stream = io.StringIO()
    settings = Settings(
        gateway_token="geheim-123",
        web_token="besuch-456",
        redis_url="redis://me:p%40ss-789@redis:6379/0",
        proxy="http://you:hunter-222@proxy:8080",
    )
    setup_logging(settings, "worker", stream)

    logger = logging.getLogger("aiohttp.client")
    logger.warning("header X-Worker-Token: %s, cookie %s", "geheim-123", "besuch-456")
    logger.warning("cannot reach redis://me:p%40ss-789@redis:6379/0, password p@ss-789")
    logger.warning("a task's own: http://him:whatever@elsewhere:1/ and hunter-222")
    try:
        raise ValueError("trouble with geheim-123")
    except ValueError:
        logger.exception("oh")

    text = stream.getvalue()
    for secret in ("geheim", "besuch", "p%40ss", "p@ss", "hunter", "whatever"):
        assert secret not in text
    assert "redis://***@redis:6379/0" in text


PROXY, REDIS = "http://user:p@ssword@proxy:80", "redis://h/0?password=a%20b%2Bcd&db=1"


@pytest.mark.parametrize(
    ("settings", "text", "blotted"),
    [
        ({"LIENWORKER_PROXY": PROXY}, f"cannot reach {PROXY}/x", "cannot reach http://***@proxy:80/x"),
        ({}, f"a task's own: {PROXY}/x@y", "a task's own: http://***@proxy:80/x@y"),
        ({}, f"'{PROXY}' and a@b", "'http://***@proxy:80' and a@b"),
        ({"REDIS_URL": REDIS}, f"{REDIS}: 'a b+cd'", "redis://h/0?password=***&db=1: '***'"),
        ({}, "unix:///run/redis.sock?db=1&password=x, x", "unix:///run/redis.sock?db=1&password=*** x"),
    ],
)
def test_no_end_of_a_password_is_left(settings: dict[str, str], text: str, blotted: str) -> None:
    assert Redactor(Settings.from_mapping(settings))(text) == blotted


def test_no_secrets_cost_nothing_and_short_ones_blot_out_no_words() -> None:
    assert Redactor(Settings())("a line") == "a line"
    assert Redactor(Settings(web_token="a"))("a cat") == "a cat"


def test_each_task_has_one_line_at_info(node: Node, site: DemoSite, tmp_path: Path) -> None:
    """From a whole run: what ended, and how, is in the log once."""
    write_list(tmp_path / "parcels.jsonl", [*site.parcels(6), *site.odd_parcels()[:1]])
    node.cli("run", str(tmp_path / "parcels.jsonl"))

    found = [json.loads(line) for line in (node.data / "logs" / "run.log").read_text().splitlines() if line]

    assert all(list(line)[: len(ALWAYS)] == list(ALWAYS) for line in found)
    ends = [(line["task_id"], line["action"]) for line in found if line.get("action") in {"completed", "failed"}]
    statuses = dict(node.sql("SELECT task_id, status FROM tasks"))
    assert len(ends) == len(statuses) == 7
    assert dict(ends) == statuses
