"""`lienworker up`: the long-running stack."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lienworker.demo.site import DemoSite
from tests.node import Node, interrupt, repeats, wait_until, write_list

pytestmark = pytest.mark.slow


@pytest.fixture
def stack(node: Node):
    process = node.start("up")
    wait_until(lambda: len(node.workers()) == 2 and node.is_up(), what="the stack to be up")
    yield process
    interrupt(process)
    output, _ = process.communicate(timeout=15)
    assert process.returncode == 0, output


def test_a_second_stack_on_the_same_folder_refuses_in_one_sentence(node: Node, stack) -> None:
    second = node.cli("up")
    assert second.returncode == 75
    assert "Another stack runs on" in second.stderr
    assert "Traceback" not in second.stderr


def test_run_beside_a_stack_hands_its_file_over_and_watches_it(
    node: Node, stack, site: DemoSite, tmp_path: Path
) -> None:
    done = node.cli("run", write_list(tmp_path / "parcels.jsonl", site.parcels(20)))
    assert done.returncode == 0, done.stderr
    assert "20 completed" in done.stdout
    assert "I watch" in done.stderr
    assert repeats(site) == 0


@pytest.mark.alone
def test_the_first_page_is_fetched_within_two_seconds_of_the_start(node: Node, site: DemoSite, tmp_path: Path) -> None:
    waits = []
    for n, row in enumerate(site.parcels(3)):
        node.cli("import", write_list(tmp_path / f"{n}.jsonl", [row]))
        began = time.monotonic()
        process = node.start("up")
        wait_until(lambda row=row: row["url"].removeprefix(site.url) in site.hits)
        waits.append(time.monotonic() - began)
        interrupt(process)
        process.communicate(timeout=15)
    print(f"\nfrom the start to the first page: {', '.join(f'{wait:.2f}' for wait in waits)} s")
    assert sorted(waits)[1] < 2.0, waits


@pytest.mark.alone
def test_a_task_added_to_an_idle_stack_is_fetched_within_half_a_second(node: Node, stack, site: DemoSite) -> None:
    waits = []
    for row in site.parcels(5):
        assert node.cli("scrape", "--queue-only", row["url"]).returncode == 0
        added = node.sql("SELECT max(created_at) FROM outbox")[0][0] / 1000 - (time.time() - time.monotonic())
        path = row["url"].removeprefix(site.url)
        wait_until(lambda path=path: path in site.hits, seconds=5)
        waits.append(next(at for seen, at in site.log if seen == path) - added)
        wait_until(lambda: set(node.statuses()) == {"completed"}, seconds=5)
    assert sorted(waits)[2] < 0.5, waits


@pytest.mark.alone
def test_an_idle_stack_uses_less_than_a_twentieth_of_a_core(node: Node, stack) -> None:
    def cpu() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in node.processes())

    wait_until(lambda: node.sql("SELECT count(*) FROM workers")[0][0] == 2)
    time.sleep(2)  # start-up work is not idleness
    before, began = cpu(), time.monotonic()
    time.sleep(5)
    share = (cpu() - before) / (time.monotonic() - began)
    assert share < 0.05, f"{share:.1%} of a core"


def test_the_private_redis_is_closed_to_the_network_and_to_others(node: Node, stack) -> None:
    redis = node.processes("-server ")[0]
    assert not redis.net_connections(kind="inet")
    socket = node.data / "redis" / "redis.sock"
    assert socket.stat().st_mode & 0o077 == 0
    assert socket.parent.stat().st_mode & 0o077 == 0


def test_a_long_data_folder_path_still_gets_a_socket(tmp_path: Path, site: DemoSite) -> None:
    node = Node(tmp_path / ("x" * 100) / "data")
    node.data.parent.mkdir()
    done = node.cli("run", write_list(tmp_path / "parcels.jsonl", site.parcels(2)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not node.processes()


def test_scrape_url_works_while_redis_is_away_and_loses_nothing(node: Node, site: DemoSite, tmp_path: Path) -> None:
    import subprocess
    import sys

    url = site.parcels(1)[0]["url"]
    code = f"from lienworker.actors import scrape_url; print(scrape_url.send({url!r}).message_id)"
    sent = subprocess.run(
        [sys.executable, "-c", code], env=node.environment(), capture_output=True, text=True, timeout=30
    )
    assert sent.returncode == 0, sent.stderr
    assert node.statuses() == {"pending": 1}
    process = node.start("up")
    wait_until(lambda: node.statuses() == {"completed": 1})
    interrupt(process)
    process.communicate(timeout=15)


def test_in_development_workers_start_again_when_a_file_changes(node: Node, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    process = node.start("up", "--watch", str(code))
    wait_until(lambda: len(node.workers()) == 2 and node.is_up(), what="the stack to be up")
    before = {worker.pid for worker in node.workers()}

    def are_others() -> bool:
        now = {worker.pid for worker in node.workers()}
        if now == before:  # Dramatiq begins to watch a moment after its workers are up
            (code / "changed.py").write_text(str(time.monotonic()))
            time.sleep(1)
        return len(now) == 2 and not now & before

    wait_until(are_others, 60, "other workers")
    interrupt(process)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0, output
