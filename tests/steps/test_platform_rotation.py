"""Which platforms a poll names: none starves, and few calls bring many tasks."""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise

from lienworker.steps.platform_rotation import PlatformRotation

NAMES = [f"platform-{letter}" for letter in "abcdefghijklmnopqrst"]
FIRST, LAST = NAMES[0], NAMES[-1]
Queues = dict[tuple[str, int], deque[str]]


def hand_out(queues: Queues, names: list[str], capacity: int) -> list[str]:
    """As the real Gateway does: at each name one task of each priority, until the capacity is used up."""
    served: list[str] = []
    for name in names:
        for priority in (1, 2, 3, 4):
            if len(served) < capacity and queues.get((name, priority)):
                served.append(queues[name, priority].popleft())
    return served


def queue_of(name: str, n: int) -> deque[str]:
    return deque([name] * n)


def polled(rotation: PlatformRotation, queues: Queues, capacity: int) -> Counter[str]:
    served = hand_out(queues, rotation.names(capacity), capacity)
    rotation.learn(served, capacity)
    return Counter(served)


def test_the_last_platform_has_its_share_beside_a_full_first_one() -> None:
    queues: Queues = {(FIRST, priority): queue_of(FIRST, 2500) for priority in (1, 2, 3, 4)}
    queues[LAST, 1] = queue_of(LAST, 36)
    rotation = PlatformRotation(NAMES, start=0)
    calls = 0
    while queues[LAST, 1]:
        polled(rotation, queues, 5)
        calls += 1
    assert calls <= 24, "36 tasks, of which every second call brings 3"


def test_every_platform_with_tasks_is_served_first_in_its_turn() -> None:
    busy = NAMES[3::5]
    queues: Queues = {(name, 1): queue_of(name, 1000) for name in busy}
    rotation = PlatformRotation(NAMES, start=7)
    firsts = []
    for _ in range(3 * len(busy)):
        served = hand_out(queues, rotation.names(1), 1)
        rotation.learn(served, 1)
        firsts += served
    assert Counter(firsts) == dict.fromkeys(busy, 3)
    assert all(one != other for one, other in pairwise(firsts))


def test_a_hundred_tasks_of_one_platform_are_a_few_calls() -> None:
    queues: Queues = {(LAST, 3): queue_of(LAST, 100)}
    rotation = PlatformRotation(NAMES, start=0)
    calls = 0
    while queues[LAST, 3]:
        polled(rotation, queues, 100)
        calls += 1
    assert calls == 2, "one that finds out who has tasks, and one that takes them"


def test_a_platform_that_runs_dry_is_named_once_again() -> None:
    queues: Queues = {(FIRST, 1): queue_of(FIRST, 3), (LAST, 1): queue_of(LAST, 300)}
    rotation = PlatformRotation(NAMES, start=0)
    for _ in range(3):
        polled(rotation, queues, 10)
    names = Counter(rotation.names(10))
    assert names[FIRST] == 1
    assert names[LAST] == 10


def test_a_call_never_names_more_than_a_line_can_hold() -> None:
    queues: Queues = {(name, 1): queue_of(name, 1000) for name in NAMES}
    rotation = PlatformRotation(NAMES)
    for _ in range(30):
        polled(rotation, queues, 100)
        assert len(rotation.names(100)) <= 100 + 2 * len(NAMES)
