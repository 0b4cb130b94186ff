"""Counters never fall: what `other` has counted stays there, whatever becomes more frequent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from lienworker.db.database import all_rows, close, database, execute, execute_many, open_store, write
from lienworker.outbox.registration import register_task
from lienworker.settings import Settings
from lienworker.store.tasks import NewTask
from lienworker.web.metrics import metrics
from lienworker.web.names import Names
from lienworker.web.pages import Place
from tests.harness.node import Node
from tests.web.monitor import monitor
from tests.web.seed import seed

_COUNTED = re.compile(r"^(\w+_(?:total|bucket|sum|count)(?:\{.*\})?) (\S+)$", re.M)
_ALL = range(40)
#: Seen from the beginning, but too rare for a name of its own.
_RARE = 39


def counters(text: str) -> dict[str, float]:
    return {series: float(n) for series, n in _COUNTED.findall(text)}


def fallen(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """A series that is gone has fallen, too."""
    return {series: (n, after.get(series, 0)) for series, n in before.items() if after.get(series, 0) < n}


def count(counts: Mapping[int, int]) -> None:
    """So many more pages of a platform, failures for a reason, and visits to a host, by its number."""
    with write("test"):
        for name, key in (("fetch", "platform{}"), ("try", "fetch|reason{}"), ("try", "upload_raw|reason{}")):
            execute_many(
                "INSERT INTO rollups VALUES (?, ?, 1, ?, 0) ON CONFLICT DO UPDATE SET n = n + excluded.n",
                ((name, key.format(number), n) for number, n in counts.items()),
            )
        execute_many(
            "INSERT INTO hosts (host, served, failed) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET"
            " served = served + excluded.served, failed = failed + 1",
            ((f"www.county{number}.example", n) for number, n in counts.items()),
        )


def count_in(root: Path, counts: Mapping[int, int]) -> None:
    open_store(root)
    count(counts)
    close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(Settings(), open_store(tmp_path / "data"), read_only=False)


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--read-only",)])
def test_no_counter_falls_when_another_value_becomes_more_frequent(seeded: Node, how: tuple[str, ...]) -> None:
    count_in(seeded.data, {number: 100 - number for number in _ALL})
    with monitor(seeded, *how) as here:
        before = counters(here.metrics())
        assert before['lienworker_fetches_total{host_class="other",outcome="served"}'] > 0
        count_in(seeded.data, {_RARE: 1000, 77: 5000})
        after = counters(here.metrics())
    assert fallen(before, after) == {}
    assert sum(after.values()) > sum(before.values())


@pytest.mark.slow
def test_no_counter_falls_when_the_monitor_starts_again(seeded: Node) -> None:
    count_in(seeded.data, {number: 100 - number for number in _ALL})
    with monitor(seeded) as here:
        before = counters(here.metrics())
    count_in(seeded.data, {_RARE: 1000, 77: 5000})
    for how in ((), ("--read-only",)):
        with monitor(seeded, *how) as here:
            assert fallen(before, counters(here.metrics())) == {}


def test_the_labels_stay_bounded_but_every_reason_of_an_upload_has_its_name(place: Place) -> None:
    names = Names(may_write=True)
    for number in _ALL:
        count({number: 1 + number})
        found = counters(metrics(place, names))
    served = [series for series in found if 'outcome="served"' in series]
    assert len(served) == 31
    assert len([series for series in found if "pages_fetched" in series]) == 31
    assert len([series for series in found if 'topic="fetch"' in series]) == 30
    assert found['lienworker_tries_failed_total{topic="other",reason="other"}'] == sum(range(31, 41))
    assert len([series for series in found if 'topic="upload_raw"' in series]) == len(_ALL)
    assert sum(found[series] for series in served) == sum(range(1, 41)), "nothing is counted twice, nothing left out"


def test_of_names_that_are_new_together_the_most_frequent_are_taken(place: Place) -> None:
    count({number: 1 + number for number in _ALL})
    found = metrics(place, Names(may_write=True))
    assert 'platform="platform39"' in found
    assert 'platform="platform9"' not in found


def test_a_scrape_writes_only_when_a_name_is_new(place: Place) -> None:
    def rows_written(names: Names) -> int:
        before = database.connection().total_changes
        metrics(place, names)
        return database.connection().total_changes - before

    names = Names(may_write=True)
    count(dict.fromkeys(range(5), 1))
    assert rows_written(names) == 3
    count(dict.fromkeys(range(5), 1000))
    assert rows_written(names) == 0
    assert rows_written(Names(may_write=True)) == 0, "after a restart"
    count(dict.fromkeys(_ALL, 1))
    assert rows_written(names) == 3
    count({77: 5000})
    assert rows_written(names) == 0, "there is no room for another name"


def test_a_read_only_monitor_writes_nothing(place: Place) -> None:
    count({1: 1})
    metrics(place, Names(may_write=False))
    assert all_rows("SELECT name FROM facts WHERE name LIKE 'metric_names_%'") == []


def test_where_nothing_can_be_written_names_are_kept_in_mind_until_it_can(place: Place) -> None:
    names = Names(may_write=True)
    count({number: 100 - number for number in _ALL})
    with write("test"):
        execute("CREATE TEMP TRIGGER full BEFORE INSERT ON facts BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    before = counters(metrics(place, names))
    count({_RARE: 1000})
    after = counters(metrics(place, names))
    assert fallen(before, after) == {}
    with write("test"):
        execute("DROP TRIGGER full")
    metrics(place, names)
    assert fallen(after, counters(metrics(place, Names(may_write=True)))) == {}


#: What dashboards and alerts ask for: a name, kind or label that changes breaks them.
_SERIES = """
breaker_open gauge endpoint
counties_paused gauge
data_max_bytes gauge
disk_free_bytes gauge
fetch_seconds histogram le
fetches_total counter host_class,outcome
forecast_end_timestamp_seconds gauge queue
forecast_stuck_tasks gauge cause
gateway_accepted_total counter endpoint
gateway_calls_total counter endpoint,outcome
oldest_waiting_seconds gauge topic
outbox_rows gauge topic,state
pages_fetched_total counter platform
paused gauge lane
stack_up gauge
task_seconds histogram le
tasks gauge status
tasks_ended_total counter status
tries_failed_total counter topic,reason
workers gauge
"""


def test_names_kinds_and_labels_stay_as_they_are(tmp_path: Path) -> None:
    seed(tmp_path / "data")
    place = Place(Settings(data_max_mb=1000), open_store(tmp_path / "data"), read_only=False)
    count({1: 1})
    register_task(NewTask("cli", "http://county.example/waiting", task_id="waiting"))
    with write("test"):
        execute("INSERT INTO breakers (endpoint) VALUES ('results')")
        execute("INSERT INTO rollups VALUES ('gateway', 'results|accepted', 1, 1, 0)")
    text = metrics(place, Names(may_write=True))
    found = [re.sub('="[^"]*"', "", series) for series in re.findall(r"^lienworker_(.*) \S+$", text, re.M)]
    labels = dict(re.fullmatch(r"(\w+?)(?:_bucket)?(?:\{(.*)\})?", series).groups("") for series in found)
    kinds = re.findall(r"^# TYPE lienworker_(\w+) (\w+)$", text, re.M)
    assert sorted(f"{name} {kind} {labels[name]}".strip() for name, kind in kinds) == _SERIES.split("\n")[1:-1]
