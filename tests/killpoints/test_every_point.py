"""kill -9 at every point that the code names: the world stops there, goes on, and every promise holds.

Which scenario reaches which point is found by running each of them once; a point that none reaches fails its test.
`WALK_SEED=n` chooses other scenarios and later times of the same point, where there are several.
"""

from __future__ import annotations

import json
import os
import random
import time
import timeit
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker import failpoints
from lienworker.data_folder import one_at_a_time
from tests.harness.descriptors import needs_proc
from tests.killpoints.points import all_points, unguarded_calls
from tests.killpoints.scenarios import KILLED, SCENARIOS, Day, Discard, Flows, LookedAt, Scenario, UnsafeFlow
from tests.killpoints.stage import Stage, Theatre, copy_of, theatre

POINTS = all_points()
SEED = int(os.environ.get("WALK_SEED", "0"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    with theatre(tmp_path_factory.mktemp("templates")) as running:
        yield running


@pytest.fixture(scope="module")
def seen(house: Theatre, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """How often each scenario reaches each point: found once, and each process of the tests finds a part of it."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # nothing of an earlier run
    folder = tmp_path_factory.mktemp("traces")
    found = {}
    for scenario in _in_turn():
        with one_at_a_time(shared / f"{scenario.name}.lock"):
            file = shared / f"{scenario.name}.json"
            if not file.exists():
                file.write_text(json.dumps(_trace(house, scenario, folder / scenario.name)))
        found[scenario.name] = json.loads(file.read_text())
    return found


def _in_turn() -> list[Scenario]:
    """All scenarios; each process of the tests begins with another, so that few wait for the one that traces it."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = worker * len(SCENARIOS) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return SCENARIOS[first:] + SCENARIOS[:first]


def _trace(house: Theatre, scenario: Scenario, root: Path) -> dict[str, int]:
    """One run without a kill, which must come out right itself."""
    trace = root / "trace.json"
    with _Entered(house, scenario, root) as here:
        assert scenario.act(here, trace=str(trace)) == scenario.exit_code, here.said.read_text()[-3000:]
        scenario.again(here)
        scenario.check(here, "")
        here.assert_promises()
    counts: dict[str, int] = json.loads(trace.read_text())
    return counts


class _Entered:
    """A stage with a copy of the scenario's folder, which is made when it is needed first."""

    def __init__(self, house: Theatre, scenario: Scenario, root: Path) -> None:
        template = house.templates / scenario.name
        if not template.exists():
            with house.stage(template) as making:
                scenario.prepare(making)
        copy_of(template, root)
        self._stage = house.stage(root)
        self._scenario = scenario

    def __enter__(self) -> Stage:
        here = self._stage.__enter__()
        self._scenario.enter(here)
        return here

    def __exit__(self, *problem: object) -> None:
        self._stage.__exit__(*problem)  # type: ignore[arg-type]


def test_there_are_many_points_and_each_has_its_name() -> None:
    assert len(POINTS) >= 100
    assert {"collect.after_commit", "gateway_raw.after_reply", "raw_file.before_rename", "fetch.after_send"} <= set(
        POINTS
    )


def test_no_rename_and_no_transaction_goes_without_its_points() -> None:
    assert unguarded_calls() == []


@pytest.mark.parametrize("point", POINTS)
def test_killed_there_nothing_is_lost_and_nothing_done_twice(
    house: Theatre, seen: dict[str, dict[str, int]], tmp_path: Path, point: str
) -> None:
    able = [scenario for scenario in SCENARIOS if point in seen[scenario.name]]
    assert able, f"no scenario reaches {point}: give it one in tests/killpoints/scenarios.py"
    dice = random.Random(f"{SEED} {point}")
    scenario = able[0] if SEED == 0 else dice.choice(able)
    # Not every run reaches a point as often as the other: the second half of the times is left out.
    hit = 1 if SEED == 0 else dice.randint(1, max(1, seen[scenario.name][point] // 2))
    if _survives(house, scenario, tmp_path / "once", point, hit):  # some get there by chance, or not as often
        assert not _survives(house, able[0], tmp_path / "again", point, 1), f"{point} was not reached"


def _survives(house: Theatre, scenario: Scenario, root: Path, point: str, hit: int) -> bool:
    """Kills, goes on, and looks whether every promise holds; True where the point was not reached."""
    with _Entered(house, scenario, root) as here:
        if scenario.act(here, at=point, hit=hit) != KILLED:
            return True
        scenario.again(here)
        scenario.check(here, point)
        here.assert_promises()
    return False


@pytest.mark.parametrize(
    "point", ["gateway_raw.after_reply", "gateway_results.after_reply", "gateway_task.after_reply"]
)
def test_replies_that_were_lost_and_then_a_kill(house: Theatre, tmp_path: Path, point: str) -> None:
    """The Gateway has stored what it never said it had: it gets it once more, and nothing is parked for it."""
    scenario = Day()
    with _Entered(house, scenario, tmp_path / "stage") as here:
        for endpoint in ("raw", "results", "fail", "complete"):
            here.gateway.fault("lost_reply", endpoint=endpoint, count=1)
        assert scenario.act(here, at=point, hit=2) == KILLED
        scenario.again(here)
        parked = here.sql("SELECT task_id, topic, reason FROM outbox WHERE state = 'parked'")
        assert set(parked) == Day.parked
        assert max(len(versions) for versions in here.gateway.state.history.values()) <= 4
        scenario.find_the_lost_page(here)
        here.assert_promises()


@pytest.mark.parametrize(
    ("point", "hit"),
    [
        *(("flow.between_steps", n) for n in (1, 2, 3, 5, 8, 12)),
        *(("fetch.before_request", n) for n in (2, 4, 9)),
        *((f"fetch.{moment}_commit", n) for moment in ("before", "after") for n in (1, 2, 3)),
        *((f"upload_raw.{moment}_commit", n) for moment in ("before", "after") for n in (1, 2)),
        *(("gateway_raw.after_reply", n) for n in (1, 2, 4)),
    ],
)
def test_killed_at_any_step_of_a_flow(house: Theatre, tmp_path: Path, point: str, hit: int) -> None:
    """Session stored or not, parts stored or not, a part acknowledged or not: the flow is walked again, no more."""
    assert not _survives(house, Flows(), tmp_path / "stage", point, hit), "not reached"


@pytest.mark.parametrize("hit", range(1, 8))
def test_killed_around_a_post_that_must_not_be_sent_twice(house: Theatre, tmp_path: Path, hit: int) -> None:
    assert not _survives(house, UnsafeFlow(), tmp_path / "stage", "flow.between_steps", hit)


@needs_proc
@pytest.mark.parametrize("point", ["collect.after_commit", "fetch.before_commit", "upload_result.after_commit"])
def test_killed_while_people_look(house: Theatre, tmp_path: Path, point: str) -> None:
    scenario = LookedAt()
    with _Entered(house, scenario, tmp_path / "stage") as here:
        assert scenario.act(here, at=point, hit=1) == KILLED
        scenario.again(here)
        scenario.check(here, point)
        here.assert_promises()


@pytest.mark.parametrize("point", ["rows_by_hand.before_commit", "rows_by_hand.after_commit"])
def test_a_discard_that_was_killed(house: Theatre, tmp_path: Path, point: str) -> None:
    scenario = Discard()
    with _Entered(house, scenario, tmp_path / "stage") as here:
        assert scenario.act(here, at=point) == KILLED
        scenario.again(here)
        scenario.check(here, point)
        here.assert_promises()


def test_a_point_costs_nothing_in_production() -> None:
    assert failpoints._hook is None
    failpoint = failpoints.failpoint
    times = timeit.repeat(lambda: failpoint("point", "moment"), timer=time.thread_time, number=100_000, repeat=5)
    seconds = min(times) / 100_000
    print(f"\na point that nobody watches: {1e9 * seconds:.0f} ns")
    assert seconds < 2e-6
