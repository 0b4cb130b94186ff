"""`lienworker run`: from a file of parcels to results, with real processes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, interrupt, repeats, wait_until, write_list

pytestmark = pytest.mark.slow


def test_a_run_completes_every_parcel_and_asks_for_each_page_once(node: Node, site: DemoSite, tmp_path: Path) -> None:
    file = write_list(tmp_path / "parcels.jsonl", site.parcels(200))
    done = node.cli("run", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 completed, 0 failed" in done.stdout
    assert node.statuses() == {"completed": 200}
    assert len(site.hits) == 201  # and robots.txt
    assert repeats(site) == 0
    node.doctor()


def test_what_a_run_leaves_is_laid_out_as_designed(node: Node, site: DemoSite, tmp_path: Path) -> None:
    row = site.parcels(1)[0]
    node.cli("run", write_list(tmp_path / "one.jsonl", [row]))
    html_path, json_path, sha256 = node.sql("SELECT html_path, json_path, raw_sha256 FROM results")[0]
    assert html_path == f"raw/demo/{row['state']}/{row['county']}/{row['parcel_id']}.{sha256[:16]}.html.gz"
    body = gzip.decompress((node.data / html_path).read_bytes())
    assert row["parcel_id"].encode() in body
    pending = json.loads((node.data / json_path).read_text())
    assert pending["parcel_id"] == row["parcel_id"]
    assert pending["raw_html_hash"] == sha256
    assert pending["data"]["owner_name"]
    held = node.sql("SELECT topic, state, reason FROM outbox WHERE topic LIKE 'upload%' ORDER BY topic")
    assert held == [("upload_raw", "held", "standalone"), ("upload_result", "held", "standalone")]
    assert node.data.stat().st_mode & 0o077 == 0


def test_failures_are_listed_by_reason_and_the_exit_code_is_1(node: Node, site: DemoSite, tmp_path: Path) -> None:
    file = write_list(tmp_path / "parcels.jsonl", site.parcels(3) + site.odd_parcels())
    done = node.cli("run", file)
    assert done.returncode == 1
    assert "5 completed, 2 failed" in done.stdout
    assert "captcha" in done.stdout
    assert "http_404" in done.stdout


def test_the_same_file_again_fetches_nothing(node: Node, site: DemoSite, tmp_path: Path) -> None:
    file = write_list(tmp_path / "parcels.jsonl", site.parcels(20))
    node.cli("run", file)
    again = node.cli("run", file)
    assert again.returncode == 0
    assert "20 rows: 0 new, 20 already known" in again.stderr
    assert repeats(site) == 0


def test_a_refresh_confirms_unchanged_pages_and_goes_no_further(node: Node, site: DemoSite, tmp_path: Path) -> None:
    file = write_list(tmp_path / "parcels.jsonl", site.parcels(10))
    node.cli("run", file)
    again = node.cli("run", file, "--refresh")
    assert again.returncode == 0, again.stderr
    assert repeats(site) == 10
    assert node.sql("SELECT count(*) FROM results WHERE confirmed_at IS NOT NULL") == [(10,)]
    assert node.sql("SELECT count(*) FROM outbox WHERE topic = 'upload_result'") == [(10,)]


def test_ctrl_c_stops_cleanly_and_the_next_run_goes_on(node: Node, tmp_path: Path) -> None:
    from lienworker.testing.county.site import demo_site

    with demo_site(latency=0.1) as site:
        file = write_list(tmp_path / "parcels.jsonl", site.parcels(400))
        process = node.start("run", file)
        wait_until(lambda: len(site.log) > 100, what="fetching to begin")
        interrupt(process)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130, output
        assert "Nothing is lost" in output
        assert not node.processes()
        assert node.sql("SELECT count(*) FROM outbox WHERE state = 'leased'") == [(0,)]
        done = node.cli("run", file)
        assert done.returncode == 0, done.stdout + done.stderr
        assert repeats(site) == 0  # what was in the air had time to land


@pytest.mark.alone
def test_a_second_ctrl_c_stops_at_once(node: Node, tmp_path: Path) -> None:
    from lienworker.testing.county.site import demo_site

    with demo_site(latency=60.0) as site:
        file = write_list(tmp_path / "parcels.jsonl", site.parcels(50))
        process = node.start("run", file, LIENWORKER_ROBOTS="ignore")  # they would take as long as a page
        wait_until(lambda: len(site.log) > 10, what="fetching to begin")
        interrupt(process)
        assert process.stdout
        next(line for line in process.stdout if "Stopping" in line)
        interrupt(process)
        process.wait(timeout=4)  # a stop in good order waits longer for what is in the air
        assert process.returncode == 130
        wait_until(lambda: not node.processes())


def test_a_file_that_cannot_be_read_is_one_sentence(node: Node, tmp_path: Path) -> None:
    done = node.cli("run", str(tmp_path / "nothing.csv"))
    assert done.returncode == 2
    assert "nothing.csv" in done.stderr
    assert "Traceback" not in done.stderr


def test_urgent_parcels_overtake_a_long_queue(node: Node, tmp_path: Path) -> None:
    from lienworker.testing.county.site import demo_site

    node.settings["LIENWORKER_HOST_CONCURRENCY"] = "4"
    node.settings["LIENWORKER_LOG_LEVEL"] = "warning"  # a line a task would fill the pipe that nobody reads
    with demo_site(latency=0.02) as site:
        node.cli("import", write_list(tmp_path / "many.jsonl", site.parcels(2000)))
        process = node.start("up")
        wait_until(lambda: len(site.log) > 100, what="fetching to begin")
        urgent = site.parcels(5, start=50_000)
        node.cli("import", write_list(tmp_path / "urgent.jsonl", urgent), "--queue", "urgent")
        before = len(site.log)
        wanted = {row["url"].removeprefix(site.url) for row in urgent}
        wait_until(lambda: wanted <= set(site.hits), what="the urgent ones")
        log = [path for path, _ in site.log]
        last = max(n for n, path in enumerate(log) if path in wanted)
        between = [path for path in log[before:last] if path not in wanted]
        assert len(between) < 150, f"{len(between)} others were fetched first"
        interrupt(process)
        process.communicate(timeout=60)


def test_the_demo_comes_out_as_it_should_and_leaves_nothing(node: Node) -> None:
    done = node.cli("demo", "--parcels", "10")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 completed, 2 failed" in done.stdout
    assert "As it should be" in done.stderr
    assert not node.data.exists()


def test_a_folder_of_any_name_has_its_private_redis(site: DemoSite, tmp_path: Path) -> None:
    node = Node(tmp_path / "50% of\t#1?" / "data")
    node.data.parent.mkdir()
    done = node.cli("run", write_list(tmp_path / "few.jsonl", site.parcels(3)))
    assert done.returncode == 0, done.stderr
    assert node.statuses() == {"completed": 3}


@pytest.mark.parametrize("option", ["hunter222=1", "socket_timeout=hunter222", "protocol=9", "cache_config=1"])
def test_an_option_that_redis_does_not_take_is_one_sentence(node: Node, option: str) -> None:
    done = node.cli("up", REDIS_URL=f"redis://127.0.0.1:1/0?{option}")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: REDIS_URL: has an option that the Redis client does not")
    assert len(done.stderr.splitlines()) == 1
    assert "hunter222" not in done.stderr
