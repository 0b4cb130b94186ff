"""Kill anything, anywhere: nothing is lost, no committed page is fetched again, the outbox balances."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import sysconfig
from pathlib import Path

import psutil
import pytest
import redis

from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.node import Node, fetched_after_commit, interrupt, repeats, wait_until, write_list

pytestmark = pytest.mark.slow

#: The walk (tests/killpoints) takes every point, with one worker; here are some with a whole stack around it.
WORKER_POINTS = [
    "fetch.after_reply",
    "raw_file.after_rename",
    "fetch.before_send",
    "beat.before_commit",
    "holder_start.after_commit",
]


def assert_all_is_well(node: Node, site: DemoSite, n: int) -> None:
    assert node.statuses() == {"completed": n}
    assert node.sql("SELECT count(*) FROM results") == [(n,)]
    assert list(fetched_after_commit(node, site)) == []
    assert node.sql("SELECT count(*) FROM outbox WHERE topic = 'upload_result'") == [(n,)]
    node.doctor()


@pytest.mark.parametrize("point", WORKER_POINTS)
def test_a_worker_killed_at_any_point_costs_nothing_but_work_in_hand(
    node: Node, site: DemoSite, tmp_path: Path, point: str
) -> None:
    site.latency = 2.0 if point.startswith("beat") else 0.0  # the first beat comes after three seconds
    n = 96 if point.startswith("beat") else 60
    file = write_list(tmp_path / "parcels.jsonl", site.parcels(n))
    mark = tmp_path / "struck"
    done = node.cli("run", file, LIENWORKER_CRASH_AT=point, LIENWORKER_CRASH_MARK=str(mark))
    assert mark.exists(), "the point was never reached"
    assert done.returncode == 0, done.stdout + done.stderr
    assert_all_is_well(node, site, n)
    assert repeats(site) <= 4 * 16  # what one process can have in the air


def _random_victim(node: Node, seed: random.Random) -> None:
    victims = [p for p in node.processes() if "run" not in p.cmdline()]
    if victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            seed.choice(victims).kill()


def test_random_kills_of_any_part_during_a_run(node: Node, tmp_path: Path) -> None:
    seed = random.Random(7)
    with demo_site(latency=0.02) as site:
        file = write_list(tmp_path / "parcels.jsonl", site.parcels(600))
        process = node.start("run", file)
        for share in (50, 150, 300):
            wait_until(lambda share=share: len(site.log) > share or process.poll() is not None)
            _random_victim(node, seed)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
        assert_all_is_well(node, site, 600)
        assert repeats(site) <= 3 * 4 * 16


def test_everything_killed_at_once_and_started_again(node: Node, tmp_path: Path) -> None:
    with demo_site(latency=0.02) as site:
        file = write_list(tmp_path / "parcels.jsonl", site.parcels(300))
        process = node.start("run", file)
        wait_until(lambda: len(site.log) > 80, what="fetching to begin")
        node.kill_everything()
        process.wait()
        in_the_air = node.sql("SELECT count(*) FROM outbox WHERE topic = 'fetch' AND state = 'leased'")[0][0]
        done = node.cli("run", file)
        assert done.returncode == 0, done.stdout + done.stderr
        assert_all_is_well(node, site, 300)
        assert repeats(site) <= in_the_air


@pytest.mark.alone
def test_a_killed_supervisor_leaves_no_process_behind(node: Node, site: DemoSite) -> None:
    process = node.start("up")
    wait_until(lambda: len(node.workers()) == 2 and node.processes("-server "), what="the stack to start")
    process.kill()
    process.wait()
    wait_until(lambda: not node.processes(), seconds=5, what="everything to be gone")


def test_a_killed_master_is_replaced_and_its_workers_are_gone(node: Node, site: DemoSite, tmp_path: Path) -> None:
    process = node.start("up")
    wait_until(lambda: len(node.workers()) == 2, what="the workers")
    old = node.workers()
    psutil.Process(old[0].ppid()).kill()
    wait_until(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in old))
    wait_until(lambda: len(node.workers()) == 2, what="new workers")
    node.cli("import", write_list(tmp_path / "parcels.jsonl", site.parcels(5)))
    wait_until(lambda: node.statuses() == {"completed": 5}, what="work to go on")
    interrupt(process)
    process.communicate(timeout=60)


@pytest.mark.parametrize("disaster", ["killed", "flushed"])
def test_a_redis_that_is_lost_costs_a_moment(node: Node, tmp_path: Path, disaster: str) -> None:
    with demo_site(latency=0.02) as site:
        file = write_list(tmp_path / "parcels.jsonl", site.parcels(400))
        process = node.start("run", file)
        wait_until(lambda: len(site.log) > 80, what="fetching to begin")
        if disaster == "killed":
            node.processes("-server ")[0].kill()
        else:
            redis.Redis(unix_socket_path=str(node.data / "redis" / "redis.sock")).flushall()
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        assert_all_is_well(node, site, 400)
        assert repeats(site) == 0


def test_damaged_redis_data_is_thrown_away(node: Node, site: DemoSite, tmp_path: Path) -> None:
    node.cli("run", write_list(tmp_path / "a.jsonl", site.parcels(3)))
    for path in (node.data / "redis").rglob("*"):
        if path.is_file():
            path.write_bytes(b"this is not what Redis wrote")
    done = node.cli("run", write_list(tmp_path / "b.jsonl", site.parcels(6)))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_live_workers_slow_page_is_not_fetched_by_another(node: Node, tmp_path: Path) -> None:
    with demo_site(latency=6.0) as site:  # two beats, many looks of the other process
        done = node.cli("run", write_list(tmp_path / "parcels.jsonl", site.parcels(3)), LIENWORKER_ROBOTS="ignore")
        assert done.returncode == 0, done.stdout + done.stderr
        assert repeats(site) == 0


def test_a_page_that_kills_its_worker_is_found_out_and_its_neighbours_complete(
    node: Node, site: DemoSite, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin"
    _install_killer_platform(plugin)
    rows = site.parcels(30)
    rows[7]["platform"] = "killer"
    done = node.cli("run", write_list(tmp_path / "parcels.jsonl", rows), PYTHONPATH=str(plugin), timeout=170)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "29 completed, 1 failed" in done.stdout
    assert "too_complex" in done.stdout


def _install_killer_platform(folder: Path) -> None:
    """A third party's package, found by its entry point, whose parser takes the process down."""
    about = folder / "killer-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: killer\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[lienworker.platforms]\nkiller = killer:PLATFORM\n")
    (folder / "killer.py").write_text(
        "import os, signal\n"
        "from lienworker.platforms import Platform\n"
        "class Killer(Platform):\n"
        "    name = 'killer'\n"
        "    version = '1'\n"
        "    def matches_url(self, url): return False\n"
        "    def recognises(self, page): return False\n"
        "    def parse(self, page, target): os.kill(os.getpid(), signal.SIGKILL)\n"
        "PLATFORM = Killer()\n"
    )


def test_parts_run_by_hand_do_the_same_job(node: Node, site: DemoSite, tmp_path: Path) -> None:
    from lienworker.stack.redis_server import server_program

    socket = tmp_path / "own.sock"
    server = subprocess.Popen([server_program(), "--port", "0", "--unixsocket", str(socket), "--save", ""])
    environment = node.environment(REDIS_URL=f"unix://{socket}")
    programs = Path(sysconfig.get_path("scripts"))
    parts = [
        subprocess.Popen(
            [programs / name, "lienworker.actors"], env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        for name in ("dramatiq", "periodiq")
    ]
    try:
        url = site.parcels(1)[0]["url"]
        code = f"from lienworker.actors import scrape_url; print(scrape_url.send({url!r}).message_id)"
        sent = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
        assert sent.returncode == 0, sent.stderr
        assert len(sent.stdout.strip()) == 36
        wait_until(lambda: node.statuses() == {"completed": 1})
    finally:
        for process in parts:
            process.terminate()
        for process in parts:
            process.wait(timeout=60)
        server.terminate()
        server.wait(timeout=60)
