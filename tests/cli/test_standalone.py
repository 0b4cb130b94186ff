"""What an operator does by hand, with no stack running."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from lienworker.stack.redis_server import server_program
from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.node import Node, repeats, wait_until, write_list

STATUS_TASKS = {"pending", "processing", "completed", "failed", "expired"}
STATUS_OUTBOX = {"waiting", "leased", "held", "delivered", "superseded", "parked", "discarded"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two results and a failure, made without a stack; made once, copied by each test."""
    node = Node(tmp_path_factory.mktemp("scraped") / "data")
    with demo_site() as site:
        for row in site.parcels(2):
            assert node.cli("scrape", row["url"]).returncode == 0
        assert node.cli("scrape", site.odd_parcels()[0]["url"]).returncode == 1
    return node.data


@pytest.fixture
def scraped(template: Path, node: Node) -> Node:
    shutil.copytree(template, node.data)
    return node


def test_scrape_fetches_parses_stores_and_prints(node: Node, site: DemoSite) -> None:
    row = site.parcels(1)[0]
    done = node.cli("scrape", row["url"])
    assert done.returncode == 0, done.stderr
    assert row["parcel_id"] in done.stdout
    assert "html_path" in done.stdout
    assert node.statuses() == {"completed": 1}
    assert node.sql("SELECT source FROM tasks") == [("cli",)]
    node.doctor()


def test_scrape_shows_what_the_parser_saw_when_it_fails(node: Node, site: DemoSite) -> None:
    captcha = site.odd_parcels()[1]["url"]
    done = node.cli("scrape", captcha)
    assert done.returncode == 1
    assert "captcha" in done.stderr
    assert "Verify you are human" in done.stdout
    assert repeats(site) == 0  # somebody waits: no second try


def test_a_private_address_is_refused_unless_it_is_named(node: Node, site: DemoSite) -> None:
    del node.settings["LIENWORKER_ALLOW_PRIVATE_HOSTS"]
    done = node.cli("scrape", site.parcels(1)[0]["url"])
    assert done.returncode == 1
    assert "private_address" in done.stderr
    assert site.log == []


def test_queue_only_leaves_the_work_to_the_stack(node: Node, site: DemoSite) -> None:
    done = node.cli("scrape", "--queue-only", site.parcels(1)[0]["url"])
    assert done.returncode == 0
    assert node.statuses() == {"pending": 1}
    assert site.log == []


@pytest.mark.parametrize("url", ["not a url", "ftp://county.example/1", "http://", "file:///etc/passwd", ""])
def test_a_bad_url_is_one_sentence(node: Node, url: str) -> None:
    done = node.cli("scrape", url)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_status_has_the_promised_shape(scraped: Node) -> None:
    facts = scraped.json("status")
    assert facts["mode"] == "standalone"
    assert set(facts["tasks"]) == STATUS_TASKS
    assert set(facts["outbox"]) == STATUS_OUTBOX
    assert set(facts["queues"]) == {"urgent", "default"}
    assert facts["tasks"]["completed"] == 2
    assert facts["tasks"]["failed"] == 1
    assert facts["outbox"]["held"] == 4


def test_status_for_people_says_how_it_is(scraped: Node) -> None:
    done = scraped.cli("status")
    assert "no stack runs on this folder" in done.stdout
    assert "http_404" in done.stdout


def test_tasks_are_listed_shown_retried_and_cancelled(scraped: Node) -> None:
    failed = scraped.json("tasks", "list", "--status", "failed")
    assert [task["reason"] for task in failed] == ["http_404"]
    story = scraped.json("tasks", "show", failed[0]["task_id"])
    assert story["attempts"][0]["reason"] == "http_404"
    assert "1 task to be tried again" in scraped.cli("tasks", "retry", "--reason", "http_404").stdout
    assert scraped.statuses() == {"completed": 2, "pending": 1}
    assert "1 task cancelled" in scraped.cli("tasks", "cancel", failed[0]["task_id"]).stdout
    assert scraped.sql("SELECT status, reason FROM tasks WHERE reason IS NOT NULL") == [("failed", "cancelled")]
    assert [row[0] for row in scraped.sql("SELECT action FROM audit ORDER BY id")] == ["retry", "cancel"]
    scraped.doctor()


def test_retry_without_saying_which_is_refused(scraped: Node) -> None:
    done = scraped.cli("tasks", "retry")
    assert done.returncode == 2
    assert "Say which tasks" in done.stderr


def test_cancelling_many_asks_first(scraped: Node) -> None:
    scraped.cli("tasks", "retry", "--all")
    assert scraped.cli("tasks", "cancel", "--all", stdin="n\n").returncode == 130
    assert scraped.statuses()["pending"] == 1
    assert scraped.cli("tasks", "cancel", "--all", stdin="y\n").returncode == 0
    assert "pending" not in scraped.statuses()


def test_an_unknown_task_is_one_sentence(scraped: Node) -> None:
    for group in ("tasks", "results"):
        done = scraped.cli(group, "show", "nobody")
        assert done.returncode != 0
        assert "nobody" in done.stderr


def test_exports_hold_every_result(scraped: Node, tmp_path: Path) -> None:
    ids = {row["task_id"] for row in scraped.json("results", "list")}
    for form in ("json", "jsonl", "csv"):
        out = tmp_path / f"out.{form}"
        assert scraped.cli("results", "export", "--format", form, "--output", str(out)).returncode == 0
        text = out.read_text()
        rows = {
            "json": json.loads,
            "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
            "csv": lambda text: list(csv.DictReader(io.StringIO(text))),
        }[form](text)
        assert {row["task_id"] for row in rows} == ids
    assert not list(tmp_path.glob(".*part"))


def test_an_export_to_a_place_that_is_not_there_is_one_sentence(scraped: Node, tmp_path: Path) -> None:
    done = scraped.cli("results", "export", "--output", str(tmp_path / "nowhere" / "out.jsonl"))
    assert done.returncode == 1
    assert "cannot be written" in done.stderr


def test_an_archive_is_verified_before_the_files_go(scraped: Node) -> None:
    names = {path.name for path in (scraped.data / "pending").iterdir()}
    assert len(names) == 2
    done = scraped.cli("results", "archive", "--compress")
    assert done.returncode == 0, done.stderr
    (archive,) = (scraped.data / "archive").iterdir()
    with tarfile.open(archive) as packed:
        assert set(packed.getnames()) == names
    assert not list((scraped.data / "pending").iterdir())
    scraped.doctor()


def test_an_archive_killed_on_the_way_loses_no_file(scraped: Node) -> None:
    for point in ("archive.before_rename", "archive.before_commit"):
        scraped.cli("results", "archive", LIENWORKER_CRASH_AT=point)
        assert len(list((scraped.data / "pending").iterdir())) == 2


def test_analyze_says_what_was_collected(scraped: Node) -> None:
    facts = scraped.json("analyze", str(scraped.data))
    assert facts["fields"]["demo"]["owner_name"] == 1.0
    assert facts["failures"][0]["reason"] == "http_404"
    assert facts["timings"]["fetch_ms"]["max"] >= 0


def test_analyze_of_another_folder_is_one_sentence(scraped: Node, tmp_path: Path) -> None:
    done = scraped.cli("analyze", str(tmp_path))
    assert done.returncode == 2
    assert "not a data folder" in done.stderr


def test_the_doctor_finds_a_row_that_was_deleted_behind_our_back(scraped: Node) -> None:
    connection = sqlite3.connect(scraped.data / "lienworker.db")
    connection.execute("DELETE FROM outbox WHERE id = (SELECT max(id) FROM outbox WHERE topic = 'upload_raw')")
    connection.commit()
    done = scraped.cli("doctor")
    assert done.returncode == 1
    assert "BAD  outbox balance" in done.stdout


def test_the_doctor_finds_a_missing_raw_page(scraped: Node) -> None:
    next((scraped.data / "raw").rglob("*.gz")).unlink()
    done = scraped.cli("doctor")
    assert done.returncode == 1
    assert "BAD  raw pages" in done.stdout


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://:hunter222@127.0.0.1:1/0", "refused"),
        ("unix://:hunter222@/nowhere/redis.sock", "No such file"),
        ("redis://127.0.0.1:1/0?password=hunter222&db=hunter222", "Invalid value"),
        ("redis://127.0.0.1:1/0?hunter222=1&password=hunter222", "unexpected"),
    ],
)
def test_the_doctor_tries_a_redis_of_ones_own(node: Node, url: str, words: str) -> None:
    done = node.cli("doctor", REDIS_URL=url)
    (line,) = [line for line in done.stdout.splitlines() if "redis:" in line]
    assert done.returncode == 1
    assert line.startswith("BAD  redis: REDIS_URL cannot be used: ")
    assert words in line
    assert "hunter222" not in done.stdout + done.stderr


def test_the_doctor_is_content_with_a_redis_that_answers(node: Node, tmp_path: Path) -> None:
    socket = tmp_path / "own.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--requirepass", "hunter222"]
    server = subprocess.Popen([server_program(), *options], stdout=subprocess.DEVNULL)
    try:
        wait_until(socket.exists, what="the server to listen")
        assert (
            "ok   redis: REDIS_URL takes writes: " in node.cli("doctor", REDIS_URL=f"unix://:hunter222@{socket}").stdout
        )
        assert "BAD  redis" in node.cli("doctor", REDIS_URL=f"unix://{socket}").stdout, "it wants a password"
    finally:
        server.terminate()
        server.wait(60)


def test_a_file_that_is_no_database_is_one_sentence(node: Node) -> None:
    node.data.mkdir()
    (node.data / "lienworker.db").write_text("this is not a database, it is a text of some length" * 100)
    for command in (["status"], ["import", "-"], ["tasks", "list"]):
        done = node.cli(*command)
        assert done.returncode == 4, done.stderr
        assert "Traceback" not in done.stderr
        assert "lienworker.db" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LIENWORKER_HOST_DELAY", "fast"),
        ("LIENWORKER_HOST_DELAY", "nan"),
        ("LIENWORKER_THREADS", "0"),
        ("STANDALONE", "perhaps"),
        ("REDIS_URL", "localhost"),
        ("GATEWAY_URL", "gateway.example"),
        ("LIENWORKER_LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_setting_is_one_sentence_that_names_it(node: Node, name: str, value: str) -> None:
    done = node.cli("status", **{name: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {name}: ")
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_secret_in_a_wrong_setting_is_not_shown(node: Node) -> None:
    done = node.cli("status", REDIS_URL="hunter2@localhost")
    assert "hunter2" not in done.stdout + done.stderr


def test_settings_are_read_from_a_dotenv_file(node: Node) -> None:
    (node.data.parent / ".env").write_text("LIENWORKER_HOST_CONCURRENCY=many\n")
    del node.settings["LIENWORKER_HOST_CONCURRENCY"]
    assert "LIENWORKER_HOST_CONCURRENCY" in node.cli("status").stderr


def test_a_dry_run_touches_nothing(node: Node, site: DemoSite, tmp_path: Path) -> None:
    file = write_list(tmp_path / "parcels.jsonl", site.parcels(3))
    done = node.cli("import", file, "--dry-run")
    assert done.returncode == 0
    assert "3 rows: 3 new" in done.stderr
    assert not node.data.exists()


def test_import_from_standard_input_and_under_its_longer_name(node: Node, site: DemoSite) -> None:
    text = "".join(f"{row['url']}\n" for row in site.parcels(3))
    done = node.cli("bulk", "import", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    assert "3 rows: 3 new, 0 already known" in done.stderr


def test_bad_rows_go_to_a_rejects_file_with_line_and_reason(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "parcels.csv"
    file.write_text("url,priority\nhttp://county.example/1,1\nnot-a-url,1\nhttp://county.example/2,9\n")
    done = node.cli("import", str(file))
    assert done.returncode == 1
    assert "3 rows: 1 new, 0 already known, 2 rejected" in done.stderr
    (rejects,) = (node.data / "rejects").iterdir()
    rows = list(csv.DictReader(rejects.open()))
    assert [(row["line"], row["reason"]) for row in rows] == [("3", "bad_url"), ("4", "bad_priority")]
    assert node.sql("SELECT rows, added, rejected, status FROM imports") == [(3, 1, 2, "done")]


def test_a_second_file_of_the_same_name_leaves_the_first_ones_rejects_alone(node: Node, tmp_path: Path) -> None:
    for folder in ("may", "june"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "parcels.csv").write_text(f"url\nnot-a-url-of-{folder}\n")
        node.cli("import", str(tmp_path / folder / "parcels.csv"))
    paths = [Path(path) for (path,) in node.sql("SELECT rejects_path FROM imports ORDER BY id")]
    assert ["not-a-url-of-may" in paths[0].read_text(), "not-a-url-of-june" in paths[1].read_text()] == [True, True]


def test_strict_stops_at_the_first_bad_row(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "parcels.csv"
    file.write_text("url\nhttp://county.example/1\nnot-a-url\nhttp://county.example/2\n")
    done = node.cli("import", str(file), "--strict")
    assert done.returncode == 2
    assert "line 3" in done.stderr


def test_a_row_without_url_needs_a_platform_that_can_build_one(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "parcels.csv"
    file.write_text("platform,state,county,parcel_id\ngeneric,FL,Dixie,1\nnosuch,FL,Dixie,2\n")
    done = node.cli("import", str(file))
    assert "2 rejected" in done.stderr
    (rejects,) = (node.data / "rejects").iterdir()
    assert [row["reason"] for row in csv.DictReader(rejects.open())] == ["no_url", "unknown_platform"]


def test_help_is_quick() -> None:
    """By its own processor time, which does not depend on what else runs here."""
    took = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, "-m", "lienworker", "--help"], check=True, capture_output=True)
        after = os.times()
        took.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(took) < 0.3, took


def test_an_import_with_rejects_exits_1_and_takes_the_rest(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("platform,state,county,parcel_id\nqpublic,,,\n")
    assert node.cli("import", str(file)).returncode == 1
    file.write_text("url\nhttp://county.example/1\nnot an address\n")
    done = node.cli("import", str(file))
    assert done.returncode == 1, done.stderr
    assert "1 new" in done.stderr
