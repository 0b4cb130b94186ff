"""Torn and corrupted files: each is said in a sentence, put aside where that is possible, and the rest goes on."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lienworker.cli import cli as lienworker
from lienworker.data_folder import DataFolder, try_lock
from lienworker.db import database
from lienworker.errors import LienworkerError
from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.node import Node, wait_until, write_list

pytestmark = pytest.mark.slow

SCRAPED, WAITING = 30, 12
#: What the program says in one sentence; anything else would be a trace.
_SAID = (type(None), SystemExit, LienworkerError, *database.DATABASE_TROUBLE)


@pytest.fixture(scope="module")
def county() -> Iterator[DemoSite]:
    with demo_site() as running:
        yield running


@pytest.fixture(scope="module")
def stocked(county: DemoSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results, a failure, and tasks that wait; made once, copied by each test."""
    base = tmp_path_factory.mktemp("stocked")
    node = Node(base / "data")
    done = node.cli("run", write_list(base / "a.jsonl", [*county.parcels(SCRAPED), county.odd_parcels()[0]]))
    assert done.returncode == 1, done.stderr
    more = county.parcels(WAITING, start=500)
    assert node.cli("import", write_list(base / "b.jsonl", more)).returncode == 0
    return node.data


@pytest.fixture
def damaged(stocked: Path, node: Node) -> Node:
    shutil.copytree(stocked, node.data)
    return node


def say(node: Node, *arguments: str, stdin: str = "") -> Result:
    """A command in this process: dozens of them are needed."""
    done = CliRunner().invoke(lienworker, list(arguments), env=node.environment(), input=stdin)
    database.close()
    return done


def repair(node: Node, *more: str) -> str:
    done = node.cli("doctor", "--repair", "--yes", *more)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == (1 if "Repaired: database: lost" in done.stderr else 0), done.stdout + done.stderr
    assert "BAD" not in done.stdout
    again = node.cli("doctor", "--repair", "--yes", *more)
    assert (again.returncode, again.stderr) == (0, "Nothing to repair.\n"), "a second repair does nothing"
    return done.stderr


def finish(node: Node, county: DemoSite, tmp_path: Path) -> None:
    """The folder works on to the end, whatever it went through."""
    rows = [*county.parcels(SCRAPED), *county.parcels(WAITING, start=500)]
    done = node.cli("run", write_list(tmp_path / "all.jsonl", rows))
    assert done.returncode == 0, done.stdout + done.stderr
    assert node.sql("SELECT count(*) FROM results") == [(SCRAPED + WAITING,)]
    node.doctor()


def raw_files(node: Node) -> list[Path]:
    return sorted((node.data / "raw").rglob("*.gz"))


def test_a_sound_folder_needs_no_repair(damaged: Node) -> None:
    damaged.doctor()
    done = damaged.cli("doctor", "--repair")
    assert (done.returncode, done.stderr) == (0, "Nothing to repair.\n")


def test_a_truncated_log_costs_what_was_in_it_and_no_more(damaged: Node, county: DemoSite, tmp_path: Path) -> None:
    """SQLite takes the log up to the last whole transaction; pages of lost rows belong to nobody."""
    sql = "UPDATE tasks SET last_error = 'x' WHERE rowid = ?"
    with contextlib.closing(sqlite3.connect(damaged.data / "lienworker.db")) as writer:
        for n in range(20):
            writer.execute(sql, (n,))
            writer.commit()
        log = damaged.data / "lienworker.db-wal"
        torn = log.read_bytes()[: log.stat().st_size * 2 // 3 + 7]
        copy = shutil.copytree(damaged.data, tmp_path / "torn")
    (copy / "lienworker.db-wal").write_bytes(torn)
    (copy / "lienworker.db-shm").unlink()
    torn_node = Node(copy)
    torn_node.doctor()
    assert 0 < torn_node.sql("SELECT count(*) FROM tasks WHERE last_error = 'x'")[0][0] < 20
    finish(torn_node, county, tmp_path)


def zero_page(path: Path, number: int) -> None:
    with path.open("r+b") as file:
        file.seek((number - 1) * 4096)
        file.write(bytes(4096))


def pages_of(node: Node, table: str) -> list[int]:
    """The pages that a table's rows lie on."""
    with contextlib.closing(sqlite3.connect(node.data / "lienworker.db")) as connection:
        try:
            rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))
            return [row[0] for row in rows]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite does not tell where its pages are")


@pytest.mark.parametrize("table", ["tasks", "outbox", "results", "sqlite_autoindex_tasks_1"])
def test_a_zeroed_page_is_said_and_repaired_and_the_folder_works_on(
    damaged: Node, county: DemoSite, tmp_path: Path, table: str
) -> None:
    zero_page(damaged.data / "lienworker.db", pages_of(damaged, table)[-1])
    found = damaged.cli("doctor")
    assert found.returncode == 1
    assert "BAD  database: damaged" in found.stdout
    assert "doctor --repair" in found.stdout
    said = repair(damaged)
    assert "To repair: database" in said
    assert damaged.sql("SELECT count(*) FROM audit WHERE action = 'repair'")[0][0] >= 1
    if table in {"tasks", "outbox"}:
        finish(damaged, county, tmp_path)


def zero_roots(node: Node, *tables: str) -> None:
    """Without its first page nothing of a table can be read."""
    for table in tables:
        ((page,),) = node.sql("SELECT rootpage FROM sqlite_master WHERE name = ?", table)
        zero_page(node.data / "lienworker.db", page)


def test_lost_tasks_and_pages_are_made_again_from_results_and_steps(
    damaged: Node, county: DemoSite, tmp_path: Path
) -> None:
    before = damaged.sql("SELECT * FROM results ORDER BY task_id")
    shown = sorted((damaged.data / "pending").iterdir())
    zero_roots(damaged, "tasks", "pages")
    said = repair(damaged)
    all_tasks = SCRAPED + WAITING + 1
    assert (
        f"lost an unknown number of pages, the address of {all_tasks} tasks; saved 0 tasks, {SCRAPED} results" in said
    )
    assert f"rebuilt {all_tasks} tasks and {SCRAPED} pages." in said
    assert damaged.sql("SELECT * FROM results ORDER BY task_id") == before
    assert damaged.statuses() == {"completed": SCRAPED, "failed": WAITING + 1}
    reasons = dict(damaged.sql("SELECT reason, count(*) FROM tasks WHERE reason IS NOT NULL GROUP BY 1"))
    assert reasons == {"http_404": 1, "address_lost": WAITING}
    assert damaged.sql("SELECT DISTINCT source FROM tasks") == [("local_file",)]
    assert sorted((damaged.data / "pending").iterdir()) == shown
    for path in damaged.data.glob("lienworker.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert damaged.cli("reparse").returncode == 0
    assert "0 tasks" in damaged.cli("tasks", "retry", "--all").stdout, "nobody knows what to ask for"
    finish(damaged, county, tmp_path)


def test_lost_tasks_are_as_far_as_their_steps_say(damaged: Node) -> None:
    """Ids that we do not make are the Gateway's, and what it has was completed; no more than that is claimed."""
    with contextlib.closing(sqlite3.connect(damaged.data / "lienworker.db")) as rude:
        rude.execute("PRAGMA foreign_keys = 0")
        rude.executemany(
            "INSERT INTO outbox (topic, task_id, generation, queue, priority, state, reason, due_at, created_at)"
            " VALUES (?, ?, 1, 'urgent', 2, ?, ?, 1, 1)",
            [
                ("fetch", "g-failed", "delivered", "captcha"),
                ("upload_result", "g-done", "delivered", None),
                ("fetch", "g-waiting", "waiting", None),
            ],
        )
        rude.commit()
    zero_roots(damaged, "tasks")
    repair(damaged)
    found = damaged.sql("SELECT task_id, source, status, reason FROM tasks WHERE task_id LIKE 'g-%' ORDER BY 1")
    assert found == [
        ("g-done", "gateway", "completed", None),
        ("g-failed", "gateway", "failed", "captcha"),
        ("g-waiting", "gateway", "failed", "address_lost"),
    ]
    reported = damaged.sql("SELECT task_id, state FROM outbox WHERE topic = 'report_failure' ORDER BY 1")
    assert reported == [("g-failed", "held"), ("g-waiting", "held")]


def test_lost_results_are_made_again_from_their_pages_and_no_site_is_asked(damaged: Node) -> None:
    sql = "SELECT task_id, data FROM results ORDER BY task_id"
    before = damaged.sql(sql)
    shown = {path.name: path.read_bytes() for path in (damaged.data / "pending").iterdir()}
    zero_roots(damaged, "results")
    said = repair(damaged)
    assert f"database: lost {SCRAPED} results; saved {SCRAPED + WAITING + 1} tasks" in said
    kept = {path.name: path.read_bytes() for path in (damaged.data / "quarantine").rglob("pending/*.json")}
    assert kept == shown, "the second copy of each result is put aside, not deleted"
    waiting = dict(damaged.sql("SELECT topic, count(*) FROM outbox WHERE state = 'waiting' GROUP BY 1"))
    assert waiting == {"fetch": WAITING, "scrape": SCRAPED}
    assert damaged.cli("pause", "--fetch").returncode == 0
    process = damaged.start("up")
    try:
        wait_until(lambda: damaged.sql("SELECT count(*) FROM results") == [(SCRAPED,)], what="the results")
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert damaged.sql(sql) == before
    damaged.doctor()


def test_any_zeroed_page_is_survived(stocked: Path, tmp_path: Path) -> None:
    """Every tenth page or so, by chance; what can be saved balances, and nothing ends in a trace.

    Where the page says which tables there are, nothing can be read.
    """
    schema = {1, *pages_of(Node(stocked), "sqlite_schema")}
    size = (stocked / "lienworker.db").stat().st_size // 4096
    chance = random.Random(6)
    for number in [1, 2, *chance.sample(range(3, size + 1), 12)]:
        node = Node(shutil.copytree(stocked, tmp_path / f"page-{number}"))
        zero_page(node.data / "lienworker.db", number)
        for command in (["status"], ["tasks", "list"], ["results", "export"], ["doctor"]):
            assert isinstance(say(node, *command).exception, _SAID), (number, command)
        done = say(node, "doctor", "--repair", "--yes")
        assert isinstance(done.exception, _SAID), (number, done.exception)
        if number in schema:
            assert "Restore a backup" in str(done.exception)
        else:
            assert done.exit_code == (1 if "Repaired: database: lost" in done.output else 0), (number, done.output)
        shutil.rmtree(node.data)


def test_a_county_whose_history_is_damaged_is_looked_at_without_it(stocked: Path, tmp_path: Path) -> None:
    """A zeroed page in the middle of a long value: SQLite finds nothing wrong with it."""
    node = Node(shutil.copytree(stocked, tmp_path / "history"))
    with contextlib.closing(sqlite3.connect(node.data / "lienworker.db")) as connection:
        assert connection.execute("UPDATE field_history SET counts = substr(counts, 1, 5)").rowcount
        connection.commit()
    assert say(node, "status").exit_code == 0


def test_damage_that_sqlite_tells_in_several_lines_is_one_line_of_the_doctors(damaged: Node) -> None:
    """The head of the file counts free pages that are not there."""
    with (damaged.data / "lienworker.db").open("r+b") as file:
        file.seek(36)
        file.write((7).to_bytes(4, "big"))
    found = damaged.cli("doctor")
    assert "BAD  database: damaged (" in found.stdout
    assert all(line.startswith(("ok   ", "BAD  ")) for line in found.stdout.splitlines())


def test_a_stack_stops_on_a_damaged_database_and_says_so_once(damaged: Node, county: DemoSite, tmp_path: Path) -> None:
    for number in pages_of(damaged, "tasks"):
        zero_page(damaged.data / "lienworker.db", number)
    process = damaged.start("up")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 4, output
    assert "lienworker doctor --repair" in output
    assert "Traceback" not in output
    refused = damaged.cli("up")
    assert refused.returncode == 4
    assert "is damaged" in refused.stderr
    repair(damaged)
    finish(damaged, county, tmp_path)


def test_a_repair_that_was_killed_is_finished_by_the_next_one(damaged: Node, county: DemoSite, tmp_path: Path) -> None:
    folder = DataFolder(damaged.data)
    shutil.copy(folder.database, folder.salvaged)
    folder.database.rename(tmp_path / "was-moved-already")
    refused = damaged.cli("status")
    assert refused.returncode == 3
    assert "was interrupted" in refused.stderr
    repair(damaged)
    finish(damaged, county, tmp_path)


def test_a_repair_refuses_where_a_stack_runs(damaged: Node) -> None:
    process = damaged.start("up")
    try:
        wait_until(damaged.is_up, what="the stack")
        done = damaged.cli("doctor", "--repair", "--yes")
        assert done.returncode == 75
        assert "A stack runs" in done.stderr
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_a_repair_refuses_where_somebody_has_the_database_open(damaged: Node) -> None:
    with contextlib.closing(sqlite3.connect(damaged.data / "lienworker.db")) as mine:
        mine.execute("SELECT count(*) FROM tasks").fetchone()
        done = damaged.cli("doctor", "--repair", "--yes")
    assert done.returncode == 75
    assert f"is in use by process {os.getpid()}" in done.stderr


def test_it_is_said_first_and_done_only_if_wanted(damaged: Node) -> None:
    victim = raw_files(damaged)[0]
    victim.write_bytes(b"another page")
    done = damaged.cli("doctor", "--repair", stdin="n\n")
    assert done.returncode == 130
    assert "To repair: raw pages: 1 raw pages are missing or damaged" in done.stderr
    assert victim.read_bytes() == b"another page"


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def swap_content(path: Path) -> None:
    path.write_bytes(gzip.compress(b"<html>somebody else's page</html>"))


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [tear, swap_content, empty, Path.unlink])
def test_a_lost_raw_page_is_named_put_aside_and_fetched_again_on_request(
    damaged: Node, county: DemoSite, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    victim = raw_files(damaged)[3]
    harm(victim)
    found = damaged.cli("doctor")
    assert found.returncode == 1
    assert f"1 raw pages are missing or damaged, such as {victim.relative_to(damaged.data)}" in found.stdout
    done = damaged.cli("doctor", "--repair", "--refetch", "--yes")
    assert done.returncode == 1, "the page is on its way, not there"
    assert not victim.exists()
    put_aside = list((damaged.data / "quarantine").rglob("*.gz"))
    assert len(put_aside) == (0 if harm is Path.unlink else 1)
    again = damaged.cli("doctor", "--repair", "--refetch", "--yes")
    assert again.stderr == "Nothing to repair.\n", "it waits to be fetched: once is enough"
    if harm in (swap_content, Path.unlink):
        finish(damaged, county, tmp_path)
        assert victim.is_file()


def test_commands_that_need_a_lost_raw_page_say_so_and_go_on(damaged: Node) -> None:
    swap_content(raw_files(damaged)[3])
    done = damaged.cli("reparse")
    assert "Traceback" not in done.stderr
    assert "29 as before, 1 without a record" in done.stdout


def test_broken_pending_files_are_made_again(damaged: Node) -> None:
    torn, gone, *_ = sorted((damaged.data / "pending").glob("*.json"))
    tear(torn)
    gone.unlink()
    with contextlib.closing(sqlite3.connect(damaged.data / "lienworker.db")) as connection:
        # What is missing of this minute would be nothing wrong: it may be delivered any moment.
        connection.execute("UPDATE results SET scraped_at = '2026-01-02T03:04:05.678Z' WHERE task_id = ?", (gone.stem,))
        connection.commit()
    (damaged.data / "pending" / "nobodys.json").write_text("{}")
    found = damaged.cli("doctor")
    assert "BAD  pending files: 3 differ" in found.stdout
    assert "pending files" in repair(damaged)
    assert [path.name for path in (damaged.data / "quarantine").rglob("*.json")] == ["nobodys.json"]


def test_an_archive_of_a_broken_pending_file_holds_the_result_all_the_same(damaged: Node) -> None:
    tear(min((damaged.data / "pending").glob("*.json")))
    done = damaged.cli("results", "archive", "--compress")
    assert done.returncode == 0, done.stderr
    damaged.doctor()


@pytest.mark.parametrize("harm", [tear, empty])
def test_a_damaged_archive_goes_to_quarantine(damaged: Node, harm: Callable[[Path], object]) -> None:
    assert damaged.cli("results", "archive", "--compress").returncode == 0
    (archive,) = (damaged.data / "archive").iterdir()
    harm(archive)
    found = damaged.cli("doctor")
    assert f"BAD  archives: 1 damaged, such as {archive}" in found.stdout
    repair(damaged)
    assert [path.name for path in (damaged.data / "quarantine").rglob("*.tar.gz")] == [archive.name]


def test_old_leftovers_go_and_young_ones_stay(damaged: Node) -> None:
    place = raw_files(damaged)[0].parent
    old = [
        DataFolder(damaged.data).aside / ".0123.part",
        damaged.data / "pending" / ".4567.part",
        damaged.data / "archive" / ".x.tar.part",
    ]
    young = DataFolder(damaged.data).aside / ".89ab.part"
    nobodys = place / "NOBODYS.0123456789abcdef.html.gz"
    for path in (*old, young, nobodys):
        path.write_bytes(b"half")
    for path in (*old, nobodys):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    found = damaged.cli("doctor")
    assert "BAD  raw files: 1 that no row names, 3 half-written ones" in found.stdout
    repair(damaged)
    assert not any(path.exists() for path in (*old, nobodys))
    assert young.exists()
    assert [path.name for path in (damaged.data / "quarantine").rglob("*.gz")] == [nobodys.name]


def test_counts_and_rows_that_somebody_changed_are_put_right(damaged: Node, county: DemoSite, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(damaged.data / "lienworker.db")) as rude:
        rude.execute("UPDATE tally SET n = n + 5")
        rude.execute("DELETE FROM backlog")
        rude.execute("UPDATE set_aside SET n = 0")
        rude.execute("DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE state = 'waiting' LIMIT 3)")
        rude.execute("DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE topic = 'upload_raw' LIMIT 2)")
        rude.execute("DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE topic = 'upload_result' LIMIT 4)")
        rude.execute("DELETE FROM results WHERE task_id = (SELECT max(task_id) FROM results)")
        rude.execute("DELETE FROM tasks WHERE task_id = (SELECT min(task_id) FROM results)")
        rude.commit()
    assert damaged.cli("doctor").returncode == 1
    said = repair(damaged)
    for check in ("references", "tasks", "deliveries", "outbox balance", "tallies"):
        assert f"Repaired: {check}." in said, said
    finish(damaged, county, tmp_path)
    assert damaged.sql("SELECT count(*) FROM outbox WHERE topic = 'upload_raw' AND state = 'held'")[0][0] >= SCRAPED


def test_a_start_during_a_repair_is_refused_with_a_code_that_services_try_again(damaged: Node) -> None:
    with contextlib.closing(try_lock(DataFolder(damaged.data).lock, shared=False)):
        refused = damaged.cli("up")
    assert refused.returncode == 75
