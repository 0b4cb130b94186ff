"""One verdict for all who ask: the page, `status`, the API and `/readyz`."""

from __future__ import annotations

import html
import re
from contextlib import ExitStack

import pytest

from lienworker.queries.chance import at_least, has_dropped
from tests.harness.node import Node
from tests.web.conftest import ONDEMAND
from tests.web.monitor import monitor
from tests.web.situations import SITUATIONS, Situation, make


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name.replace(" ", "-"))
def test_all_who_ask_get_the_verdict_that_an_operator_would_give(node: Node, situation: Situation) -> None:
    node.settings |= ONDEMAND if situation.mode == "ondemand" else {}
    with ExitStack() as ending:
        make(situation, node, ending)
        told = node.json("status")["health"]
        with monitor(node) as here:
            api = here.ask("/api/overview").json["health"]
            page = html.unescape(here.ask("/").text)
            ready = here.ask("/readyz")
            unknown = here.as_stranger.ask("/readyz")
    shown = re.search(r'<p class="health (\w+)" id="health">(.*?)</p>', page)
    assert shown
    level, _, line = ready.text.partition(": ")
    assert [told["level"], api["level"], shown[1], level] == [situation.level] * 4, told
    for words in (told["words"], api["words"], re.sub("<.*?>", "", shown[2]), line):
        assert situation.says in words.lower()
        assert situation.never_says not in words.lower()
    assert ready.status == unknown.status == (503 if situation.level == "bad" else 200)
    assert unknown.text == f"{situation.level}\n", "strangers read no names"


def test_the_words_of_status_are_those_of_the_page(node: Node) -> None:
    silent = next(situation for situation in SITUATIONS if situation.name == "all workers are silent")
    with ExitStack() as ending:
        make(silent, node, ending)
        assert "2 of 2 workers give no sign of life; nothing waits to be scraped." in node.cli("status").stdout


@pytest.mark.parametrize(
    ("before", "now", "fell"),
    [
        ((850, 1000), (14, 20), False),
        ((60, 60), (10, 20), True),
        ((1000, 1000), (11, 20), True),
        ((1000, 1000), (19, 20), False),
        ((950, 1000), (17, 20), False),
        ((10, 20), (18, 20), False),
        ((0, 0), (0, 20), False),
        ((20, 20), (20, 20), False),
    ],
)
def test_a_field_has_fallen_only_where_chance_is_no_excuse(
    before: tuple[int, int], now: tuple[int, int], fell: bool
) -> None:
    assert has_dropped(before, now) is fell


def test_a_few_failures_say_less_than_many() -> None:
    assert at_least(3, 3) < 0.5 < at_least(20, 20)
    assert at_least(4, 100) < 0.1 < at_least(30, 100)
    assert at_least(0, 0) == 0
