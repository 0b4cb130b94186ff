"""Lists: their parcels become tasks, they themselves stay here; and files of auctions."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.db.database import all_rows, execute, write
from lienworker.outbox.registration import register_in_transaction
from lienworker.platforms import Page, Target, default_registry
from lienworker.platforms.catalog.lists import listed_parcels, parcel_links
from lienworker.steps.follow import ask_to_follow, follow_stored
from lienworker.store.pending import rebuild
from lienworker.store.results import get_unsynced_results
from lienworker.store.tasks import NewTask
from tests.harness.node import Node
from tests.harness.shelf import Shelf

LIST = (
    "<html><h1>Parcels for sale</h1><table><tr><th>Parcel ID</th><th>Owner Name</th><th>Amount Due</th></tr>"
    "<tr><td><a href='/parcel/00-1'>00-1</a></td><td>OTTER IDA</td><td>$10.00</td></tr>"
    "<tr><td>00-2</td><td><a href='/parcel?id=00-2'>HERON JO</a></td><td>$20.00</td></tr>"
    "<tr><td>00-3</td><td>FINCH AL</td><td>$30.00</td></tr></table></html>"
)
SITE = "https://marsh.quarry.example"


@pytest.fixture
def listed(shelf: Shelf) -> str:
    """The id of a list's task, scraped."""
    shelf.add("Marsh", {"list": LIST}, platform="generic")
    shelf.work()
    return str(all_rows("SELECT task_id FROM tasks")[0][0])


def test_a_list_stays_here(shelf: Shelf, listed: str) -> None:
    assert all_rows("SELECT status FROM tasks WHERE task_id = ?", (listed,)) == [("completed",)]
    assert shelf.rows("upload_raw") == shelf.rows("upload_result") == {}


def test_its_parcels_become_tasks_where_it_links_to_them(shelf: Shelf, listed: str) -> None:
    followed = follow_stored(shelf.runtime.folder, shelf.runtime.registry, listed, {"county": "Marsh", "state": "XX"})
    assert followed is not None
    items, done = followed
    assert (items, done.added) == (3, 2)
    wanted = {(f"{SITE}/parcel/00-1", "00-1", "Marsh"), (f"{SITE}/parcel?id=00-2", "00-2", "Marsh")}
    assert set(all_rows("SELECT url, parcel_id, county FROM tasks WHERE task_id <> ?", (listed,))) == wanted


def test_following_again_adds_nothing(shelf: Shelf, listed: str) -> None:
    for added in (2, 0):
        followed = follow_stored(shelf.runtime.folder, shelf.runtime.registry, listed, {})
        assert followed is not None
        assert followed[1].added == added


def test_a_platform_that_builds_addresses_is_used_for_all(shelf: Shelf, listed: str) -> None:
    followed = follow_stored(shelf.runtime.folder, shelf.runtime.registry, listed, {"platform": "collier"})
    assert followed is not None
    assert followed[1].added == 3
    (delay,) = all_rows("SELECT delay FROM hosts WHERE host = 'www.collierappraiser.com'")[0]
    assert delay == 3.0


def test_a_worker_follows_where_it_was_asked_to(shelf: Shelf) -> None:
    shelf.add("Marsh", {"list": LIST}, platform="generic")
    ask_to_follow(all_rows("SELECT task_id FROM tasks")[0][0], {"county": "Marsh"})
    shelf.work()
    assert all_rows("SELECT status, count(*) FROM tasks GROUP BY 1") == [("completed", 1), ("pending", 2)]


def test_a_list_stays_here_and_is_not_pending(shelf: Shelf) -> None:
    shelf.add("Marsh", {"list": LIST}, platform="generic")
    shelf.work()
    assert all_rows("SELECT stays_here, json_path FROM results") == [(1, None)]
    assert list(get_unsynced_results()) == []
    assert list(shelf.runtime.folder.pending.glob("*.json")) == []
    assert rebuild(shelf.runtime.folder) == (0, 0)


def test_a_parcel_that_turns_out_to_be_a_list_leaves_no_file_behind(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": "<html><h1>Parcel</h1><p id='pid'>00-1</p><p id='owner'>OTTER</p></html>"})
    shelf.work()
    (task_id, url), *_ = all_rows("SELECT task_id, url FROM tasks")
    assert len(list(get_unsynced_results())) == 1
    with write("test"):  # it goes round again, and a platform reads its page that knows lists
        execute("UPDATE tasks SET platform = 'generic'")
        register_in_transaction([NewTask("local_file", url, task_id=task_id, platform="generic")], refresh=True)
    shelf.pages[url] = LIST
    shelf.work()
    assert all_rows("SELECT stays_here FROM results") == [(1,)]
    rebuild(shelf.runtime.folder)
    assert list(shelf.runtime.folder.pending.glob("*.json")) == []


def test_a_page_of_one_parcel_is_no_list(shelf: Shelf) -> None:
    from tests.harness.shelf import page

    shelf.add("Marsh", {"1": page(1)})
    shelf.work()
    task_id = all_rows("SELECT task_id FROM tasks")[0][0]
    assert follow_stored(shelf.runtime.folder, shelf.runtime.registry, task_id, {}) is None


def test_links_that_are_no_addresses_are_passed_over() -> None:
    page = Page(SITE, b"<a href='javascript:x()'>00-1</a><a href='mailto:a@b'>00-2</a><a href='/p/00%203'>x</a>")
    assert parcel_links(page) == {"x": f"{SITE}/p/00%203", "00%203": f"{SITE}/p/00%203", "003": f"{SITE}/p/00%203"}


def test_a_calendar_has_nothing_to_follow() -> None:
    record = {"parcels": [{"auction": {"date": "2024-05-01"}}]}
    assert list(listed_parcels(record, Page(SITE, b""), Target(), default_registry())) == []


FILES = {
    "comma.csv": 'Adv Number,Parcel ID,Owner Name,Face Amount\n1,"00-1","OTTER, IDA",10.00\n2,00-2,HERON JO,20.00\n',
    "tab.txt": "ADV NUM\tPARCEL\tOWNER NAME\tFACE AMOUNT\n1\t00-1\tOTTER IDA\t10.00\n2\t00-2\tHERON JO\t20.00\n",
    "pipe.txt": "AdvNumber|Account|OWNER NAME|OWNER NAME|Amount\n1|00-1|OTTER IDA|X|10.00\n2|00-2|HERON JO||20.00\n",
    "colorado.csv": "SCHEDULE NUMBER,OWNER,TOTAL DUE\n00-1,OTTER IDA,10\n00-2,HERON JO,20\n",
    "jersey.csv": "Block/Lot/Qual,Owner,Face Value\n00-1,OTTER IDA,10\n00-2,HERON JO,20\n",
    "lee.csv": "STRAP,Owner,Face Value\n00-1,OTTER IDA,10\n00-2,HERON JO,20\n",
}


@pytest.mark.parametrize("name", FILES)
def test_auction_files_of_every_kind_are_imported(node: Node, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    where = ("--platform", "collier", "--state", "FL", "--county", "Collier")
    done = node.cli("import", str(tmp_path / name), *where)
    assert done.returncode == 0, done.stderr
    assert node.sql("SELECT parcel_id, county FROM tasks ORDER BY 1") == [("00-1", "Collier"), ("00-2", "Collier")]


def test_a_dry_run_shows_which_column_is_taken_for_what(node: Node, tmp_path: Path) -> None:
    (tmp_path / "tab.txt").write_text(FILES["tab.txt"])
    done = node.cli("import", str(tmp_path / "tab.txt"), "--platform", "collier", "--dry-run")
    assert done.returncode == 0
    assert "Columns: parcel_id = 'PARCEL'" in done.stderr
    assert "'OWNER NAME'" in done.stderr
    assert not node.data.exists()


def test_any_table_can_be_mapped(node: Node, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("Nr of the land,Ort,Who\n007 A,Collier,IDA\n")
    maps = ("--map", 'parcel_id="Nr of the land"', "--map", "county=Ort")
    done = node.cli("import", str(tmp_path / "odd.csv"), *maps, "--platform", "collier", "--state", "FL")
    assert done.returncode == 0, done.stderr
    assert node.sql("SELECT parcel_id, county, state FROM tasks") == [("007 A", "Collier", "FL")]


@pytest.mark.parametrize("choice", ["parcel_id", "parcel_id=", "colour=Who", "parcel_id=Nowhere"])
def test_a_mapping_that_cannot_be_used_is_one_sentence(node: Node, tmp_path: Path, choice: str) -> None:
    (tmp_path / "odd.csv").write_text("Parcel,Who\n007 A,IDA\n")
    done = node.cli("import", str(tmp_path / "odd.csv"), "--map", choice, "--platform", "collier")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_scrape_follows_a_list(node: Node, tmp_path: Path) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if "robots" not in self.path else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(LIST.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = node.cli("scrape", f"http://127.0.0.1:{server.server_port}/list", "--follow", "--county", "Marsh")
    finally:
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert "3 items: 2 new tasks, 0 already known, 1 without an address" in done.stderr
    assert node.sql("SELECT count(*) FROM outbox WHERE topic LIKE 'upload%'") == [(0,)]
    node.doctor()
