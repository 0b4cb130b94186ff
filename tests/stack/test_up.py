"""`lienworker up`: the long-running stack."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, interrupt, repeats, wait_until, write_list
from tests.harness.pace import assert_within

pytestmark = pytest.mark.slow


@pytest.fixture
def stack(node: Node):
    process = node.start("up")
    wait_until(lambda: len(node.workers()) == 2 and node.is_up(), what="the stack to be up")
    yield process
    interrupt(process)
    output, _ = process.communicate(timeout=60)
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
    rows = iter(site.parcels(100))

    def first_page() -> float:
        row = next(rows)
        path = row["url"].removeprefix(site.url)
        node.cli("import", write_list(tmp_path / "one.jsonl", [row]))
        began = time.monotonic()
        process = node.start("up")
        wait_until(lambda: path in site.hits)
        interrupt(process)
        process.communicate(timeout=60)
        return next(at for seen, at in site.log if seen == path) - began

    assert_within(2.0, first_page, times=3)


@pytest.mark.alone
def test_a_task_added_to_an_idle_stack_is_fetched_within_half_a_second(node: Node, stack, site: DemoSite) -> None:
    urls = iter(row["url"] for row in site.parcels(100))

    def wait_for_a_page() -> float:
        url = next(urls)
        path = url.removeprefix(site.url)
        assert node.cli("scrape", "--queue-only", url).returncode == 0
        wait_until(lambda: path in site.hits)
        sql = "SELECT o.created_at FROM outbox o JOIN tasks USING (task_id) WHERE url = ? AND topic = 'fetch'"
        added = node.sql(sql, url)[0][0] / 1000 - (time.time() - time.monotonic())
        wait_until(lambda: set(node.statuses()) == {"completed"})
        return next(at for seen, at in site.log if seen == path) - added

    assert_within(0.5, wait_for_a_page, times=5)


def test_an_idle_stack_uses_less_than_a_twentieth_of_a_core(node: Node, stack) -> None:
    """By its own processor time, which does not depend on what else runs here."""

    def share() -> float:
        before, began = cpu(), time.monotonic()
        time.sleep(5)
        return (cpu() - before) / (time.monotonic() - began)

    def cpu() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in node.processes())

    wait_until(lambda: node.sql("SELECT count(*) FROM workers")[0][0] == 2)
    shares = []
    while len(shares) < 6 and min(shares, default=1) >= 0.05:  # start-up work, at first, is not idleness
        shares.append(share())
    assert min(shares) < 0.05, [f"{share:.1%} of a core" for share in shares]


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
    process.communicate(timeout=60)


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
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
